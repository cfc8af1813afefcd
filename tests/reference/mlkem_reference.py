"""ML-KEM-768 encapsulation with chosen randomness, as FIPS 203 writes it down.

Libraries keep the randomness of an encapsulation to themselves, so a published ciphertext cannot be made with them.
This can, slowly, which is enough to check key generation, decapsulation and X-Wing against a published value.
"""

from collections.abc import Sequence
from hashlib import sha3_256, sha3_512, shake_128, shake_256

Q = 3329
RANK = 3
ETA = 2
BITS_U, BITS_V = 10, 4
KEY_BYTES = 384 * RANK + 32

Polynomial = list[int]


def _reversed_bits(number: int) -> int:
    return int(f"{number:07b}"[::-1], 2)


ZETAS = [pow(17, _reversed_bits(i), Q) for i in range(128)]
GAMMAS = [pow(17, 2 * _reversed_bits(i) + 1, Q) for i in range(128)]


def encapsulate(public_key: bytes, message: bytes) -> tuple[bytes, bytes]:
    """The shared secret and the ciphertext: algorithm 17."""
    if (len(public_key), len(message)) != (KEY_BYTES, 32):
        raise ValueError("takes a public key of 1,184 bytes and a message of 32")
    material = sha3_512(message + sha3_256(public_key).digest()).digest()
    return material[:32], _encrypt(public_key, message, material[32:])


def _encrypt(public_key: bytes, message: bytes, randomness: bytes) -> bytes:
    """Algorithm 14."""
    key = [_unpacked(public_key[384 * i : 384 * (i + 1)], 12) for i in range(RANK)]
    seed = public_key[384 * RANK :]
    noise = [_binomial(shake_256(randomness + bytes([n])).digest(64 * ETA)) for n in range(2 * RANK + 1)]
    secret = [_ntt(polynomial) for polynomial in noise[:RANK]]
    ciphertext = b""
    for i in range(RANK):
        column = [_uniform(seed + bytes([i, j])) for j in range(RANK)]
        u = _sum(_inverse_ntt(_inner(column, secret)), noise[RANK + i])
        ciphertext += _packed([_compressed(value, BITS_U) for value in u], BITS_U)
    embedded = [(Q + 1) // 2 * bit for bit in _unpacked(message, 1)]
    v = _sum(_sum(_inverse_ntt(_inner(key, secret)), noise[2 * RANK]), embedded)
    return ciphertext + _packed([_compressed(value, BITS_V) for value in v], BITS_V)


def _unpacked(data: bytes, width: int) -> Polynomial:
    number = int.from_bytes(data, "little")
    return [number >> width * i & (1 << width) - 1 for i in range(256)]


def _packed(values: Sequence[int], width: int) -> bytes:
    number = sum(value << width * i for i, value in enumerate(values))
    return number.to_bytes(32 * width, "little")


def _compressed(value: int, width: int) -> int:
    return ((value << width) + Q // 2) // Q % (1 << width)


def _uniform(seed: bytes) -> Polynomial:
    """Algorithm 7. The length is more than any seed has ever needed; too little would end in an exception."""
    stream = iter(shake_128(seed).digest(3 * 1024))
    values: Polynomial = []
    while len(values) < 256:
        low, middle, high = next(stream), next(stream), next(stream)
        values += [value for value in (low | (middle & 15) << 8, middle >> 4 | high << 4) if value < Q]
    return values[:256]


def _binomial(data: bytes) -> Polynomial:
    """Algorithm 8."""
    pairs = _unpacked(data, 2 * ETA)
    return [((pair & 3).bit_count() - (pair >> ETA).bit_count()) % Q for pair in pairs]


def _ntt(polynomial: Polynomial) -> Polynomial:
    """Algorithm 9."""
    f, zetas = list(polynomial), iter(ZETAS[1:])
    for length in (128, 64, 32, 16, 8, 4, 2):
        for start in range(0, 256, 2 * length):
            zeta = next(zetas)
            for j in range(start, start + length):
                product = zeta * f[j + length]
                f[j], f[j + length] = (f[j] + product) % Q, (f[j] - product) % Q
    return f


def _inverse_ntt(polynomial: Polynomial) -> Polynomial:
    """Algorithm 10."""
    f, zetas = list(polynomial), reversed(ZETAS)
    for length in (2, 4, 8, 16, 32, 64, 128):
        for start in range(0, 256, 2 * length):
            zeta = next(zetas)
            for j in range(start, start + length):
                f[j], f[j + length] = (f[j] + f[j + length]) % Q, zeta * (f[j + length] - f[j]) % Q
    return [value * pow(128, -1, Q) % Q for value in f]


def _inner(left: Sequence[Polynomial], right: Sequence[Polynomial]) -> Polynomial:
    """The sum of products in the transformed domain: algorithms 11 and 12."""
    total = [0] * 256
    for a, b in zip(left, right, strict=True):
        for i, gamma in enumerate(GAMMAS):
            a0, a1, b0, b1 = a[2 * i], a[2 * i + 1], b[2 * i], b[2 * i + 1]
            total[2 * i] += a0 * b0 + a1 * b1 * gamma
            total[2 * i + 1] += a0 * b1 + a1 * b0
    return [value % Q for value in total]


def _sum(left: Polynomial, right: Polynomial) -> Polynomial:
    return [(a + b) % Q for a, b in zip(left, right, strict=True)]
