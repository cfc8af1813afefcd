/* What one hop costs when nothing but its primitives is left: no Python, no parsing, no copies, keys already loaded.

   Two X25519 multiplications, the key derivation, the header's MAC and key stream, and the payload's wide-block cipher,
   in the sizes of docs/packet.md with five hops. Prints CPU microseconds a hop with AES in counter mode, and with
   AES-GCM, whose key stream is the same and which some processors run faster.

   Usage: packet_floor ITERATIONS BODY_BYTES */

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CONTEXT = 37, HEADER_MACCED = 298, BETA_AND_SLOT = 318, DERIVED = 304, KEY = 32, MAC = 16 };

static void check(int ok, const char *what)
{
    if (ok <= 0) {
        fprintf(stderr, "%s failed\n", what);
        exit(1);
    }
}

static EVP_PKEY_CTX *exchange(void)
{
    EVP_PKEY *ours = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
    EVP_PKEY *theirs = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(ours, NULL);
    check(context && EVP_PKEY_derive_init(context) > 0 && EVP_PKEY_derive_set_peer(context, theirs) > 0, "X25519");
    return context;
}

static void stream(EVP_CIPHER_CTX *context, const EVP_CIPHER *cipher, unsigned char *key, unsigned char *data, int size)
{
    static const unsigned char nonce[16];
    int written;
    check(EVP_EncryptInit_ex(context, cipher, NULL, key, nonce), "AES key");
    check(EVP_EncryptUpdate(context, data, &written, data, size), "AES");
}

static void gmac(EVP_CIPHER_CTX *context, const EVP_CIPHER *gcm, unsigned char *key, unsigned char *data, int size)
{
    static const unsigned char nonce[12];
    int written;
    check(EVP_EncryptInit_ex(context, gcm, NULL, key, nonce), "GMAC key");
    check(EVP_EncryptUpdate(context, NULL, &written, data, size), "GMAC");
    check(EVP_EncryptFinal_ex(context, data, &written), "GMAC");
    check(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, MAC, key), "GMAC tag");
}

static double hop_us(const EVP_CIPHER *cipher, const EVP_CIPHER *gcm, long iterations, int body)
{
    EVP_PKEY_CTX *shared = exchange(), *blinded = exchange();
    EVP_CIPHER_CTX *aes = EVP_CIPHER_CTX_new();
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    EVP_CIPHER_CTX *hash = EVP_CIPHER_CTX_new();
    EVP_MD *shake = EVP_MD_fetch(NULL, "SHAKE256", NULL);
    EVP_MAC_CTX *mac = EVP_MAC_CTX_new(EVP_MAC_fetch(NULL, "BLAKE2BMAC", NULL));
    size_t mac_bytes = MAC, key_bytes = KEY, length;
    OSSL_PARAM key_size[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &key_bytes), OSSL_PARAM_construct_end()};
    OSSL_PARAM mac_size[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &mac_bytes), OSSL_PARAM_construct_end()};
    unsigned char *packet = calloc(1, (size_t)body + BETA_AND_SLOT);
    unsigned char keys[DERIVED + KEY] = {0}, small[CONTEXT + 3 * KEY] = {0};
    check(aes && hash && digest && shake && mac && packet, "setting up");

    clock_t start = clock();
    for (long i = 0; i < iterations; i++) {
        length = KEY;
        check(EVP_PKEY_derive(shared, small, &length), "X25519");
        check(EVP_DigestInit_ex2(digest, shake, NULL) && EVP_DigestUpdate(digest, small, sizeof small) &&
                  EVP_DigestFinalXOF(digest, keys, DERIVED),
              "SHAKE256");
        check(EVP_MAC_init(mac, keys, KEY, mac_size) && EVP_MAC_update(mac, packet, HEADER_MACCED) &&
                  EVP_MAC_final(mac, small, &length, MAC),
              "BLAKE2b");
        stream(aes, cipher, keys, packet + body, BETA_AND_SLOT);
        for (int round = 0; round < 2; round++) {
            gmac(hash, gcm, keys, packet + KEY, body - KEY);
            check(EVP_MAC_init(mac, keys, KEY, key_size) && EVP_MAC_update(mac, keys, MAC) &&
                      EVP_MAC_final(mac, keys + KEY, &length, KEY),
                  "BLAKE2b");
            stream(aes, cipher, keys + KEY, packet + KEY, body - KEY);
        }
        length = KEY;
        check(EVP_PKEY_derive(blinded, small, &length), "X25519");
    }
    return (double)(clock() - start) / CLOCKS_PER_SEC * 1e6 / (double)iterations;
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    long iterations = atol(arguments[1]);
    int body = atoi(arguments[2]);
    EVP_CIPHER *ctr = EVP_CIPHER_fetch(NULL, "AES-256-CTR", NULL), *gcm = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    check(ctr && gcm, "AES");
    double in_ctr = hop_us(ctr, gcm, iterations, body);
    printf("%.3f %.3f\n", in_ctr, hop_us(gcm, gcm, iterations, body));
    return 0;
}
