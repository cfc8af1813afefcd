"""The certificate by which a node is known on its links, and the key behind it.

A link certificate is self-signed: no authority vouches for it, a descriptor or an operator's contact does, by its
fingerprint. Nothing in it but the key is ever interpreted, not its names, not its dates. A node in an experiment gets
one for the run; a node of a federation keeps one, in two files.

Invariant: a private key is used here and in QUIC's TLS, and nowhere else. A file with a key is made with mode 0600, and
not read if others can read it.
"""

import hashlib
import os
import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
    load_pem_private_key,
)

from unlinkabledfl.errors import ConfigError, LocalProtocolError

__all__ = ["CERTIFICATE_MAX_BYTES", "SIGNATURE_BYTES", "LinkIdentity", "fingerprint_of", "verify"]

CERTIFICATE_MAX_BYTES = 2_048
SIGNATURE_BYTES = 64

_NAME = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "unlinkabledfl link")])
_NOT_BEFORE = datetime(2000, 1, 1, tzinfo=UTC)
_NOT_AFTER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)  # RFC 5280's way to say that there is no end
_OWNER_ONLY = 0o600
_OTHERS = 0o077


def fingerprint_of(certificate: bytes) -> bytes:
    """Return the fingerprint of a certificate in DER."""
    return hashlib.sha256(certificate).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkIdentity:
    """A certificate (DER) and its Ed25519 key (PKCS #8, DER): plain bytes, so that a launcher can hand them over."""

    certificate: bytes
    private_key: bytes = field(repr=False)

    @classmethod
    def generate(cls) -> "LinkIdentity":
        """Make a new key, and a certificate for it."""
        key = Ed25519PrivateKey.generate()
        certificate = (
            x509.CertificateBuilder()
            .subject_name(_NAME)
            .issuer_name(_NAME)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(_NOT_BEFORE)
            .not_valid_after(_NOT_AFTER)
            .sign(key, algorithm=None)
        )
        return cls(
            certificate=certificate.public_bytes(Encoding.DER),
            private_key=key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()),
        )

    @classmethod
    def load(cls, *, certificate_file: Path, key_file: Path) -> "LinkIdentity":
        """Read both files; ConfigError says which one is missing, unfit, or open to other users."""
        try:
            certificate = ssl.PEM_cert_to_DER_cert(certificate_file.read_text(encoding="ascii"))
            public_key = x509.load_der_x509_certificate(certificate).public_key()
        except (OSError, ValueError, UnsupportedAlgorithm) as error:
            raise _unfit("node.certificate", certificate_file, error) from error
        try:
            if key_file.stat().st_mode & _OTHERS:
                raise ConfigError(
                    key="node.certificate_key",
                    got=str(key_file),
                    takes="a file that only its owner can read",
                    hint=f"chmod 600 {key_file}, and think about who may have read it",
                )
            key = load_pem_private_key(key_file.read_bytes(), password=None)
        except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise _unfit("node.certificate_key", key_file, error) from error
        if not isinstance(key, Ed25519PrivateKey) or key.public_key() != public_key:
            raise ConfigError(
                key="node.certificate_key",
                got=str(key_file),
                takes=f"the Ed25519 key of the certificate in {certificate_file}",
                hint="the two files belong together; a node without both makes a new pair, with a new fingerprint",
            )
        return cls(
            certificate=certificate,
            private_key=key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()),
        )

    def save(self, *, certificate_file: Path, key_file: Path) -> None:
        """Write both files, which must not exist: an identity is not overwritten by mistake."""
        for path, pem in ((key_file, self.private_key_pem), (certificate_file, self.certificate_pem)):
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(pem)
            except OSError as error:
                raise _unfit("node.certificate_key" if path is key_file else "node.certificate", path, error) from error

    @property
    def fingerprint(self) -> bytes:
        """What descriptors and contacts carry of this identity."""
        return fingerprint_of(self.certificate)

    @property
    def certificate_pem(self) -> bytes:
        return ssl.DER_cert_to_PEM_cert(self.certificate).encode("ascii")

    @property
    def private_key_pem(self) -> bytes:
        return self._key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def sign(self, message: bytes) -> bytes:
        """Return the signature of the certificate's key."""
        return self._key().sign(message)

    def _key(self) -> Ed25519PrivateKey:
        key = load_der_private_key(self.private_key, password=None)
        if not isinstance(key, Ed25519PrivateKey):
            raise LocalProtocolError("the key of a link certificate is an Ed25519 key")
        return key


def verify(certificate: bytes, *, signature: bytes, message: bytes) -> bool:
    """Say whether the key of this certificate made the signature.

    Call it only with a certificate whose fingerprint is known to be a peer's: the parser behind it is large.
    """
    try:
        key = x509.load_der_x509_certificate(certificate).public_key()
        if not isinstance(key, Ed25519PublicKey):
            return False
        key.verify(signature, message)
    except (ValueError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _unfit(key: str, path: Path, error: Exception) -> ConfigError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else "it does not parse"
    return ConfigError(
        key=key,
        got=str(path),
        takes="a PEM file as `unlinkabledfl node` writes it",
        hint=f"{path.name}: {reason}",
    )
