"""Link certificates: made, kept, and refused where they are not safe to use."""

import hashlib
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.transport.certificates import CERTIFICATE_MAX_BYTES, LinkIdentity, fingerprint_of, verify


def saved(folder: Path) -> tuple[LinkIdentity, Path, Path]:
    identity = LinkIdentity.generate()
    certificate_file, key_file = folder / "link.crt", folder / "link.key"
    identity.save(certificate_file=certificate_file, key_file=key_file)
    return identity, certificate_file, key_file


def test_an_identity_comes_back_from_its_files(tmp_path: Path) -> None:
    identity, certificate_file, key_file = saved(tmp_path)

    assert LinkIdentity.load(certificate_file=certificate_file, key_file=key_file) == identity


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    _, certificate_file, key_file = saved(tmp_path)

    modes = {stat.S_IMODE(path.stat().st_mode) for path in (certificate_file, key_file)}

    assert modes == {0o600}


def test_an_identity_is_not_overwritten(tmp_path: Path) -> None:
    identity, certificate_file, key_file = saved(tmp_path)

    with pytest.raises(ConfigError) as refused:
        LinkIdentity.generate().save(certificate_file=certificate_file, key_file=key_file)

    assert refused.value.key == "node.certificate_key"
    assert LinkIdentity.load(certificate_file=certificate_file, key_file=key_file) == identity


def test_a_key_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    _, certificate_file, key_file = saved(tmp_path)
    key_file.chmod(0o640)

    with pytest.raises(ConfigError, match="chmod 600"):
        LinkIdentity.load(certificate_file=certificate_file, key_file=key_file)


@pytest.mark.parametrize("which", ["certificate", "key"])
@pytest.mark.parametrize("damage", ["missing", "empty", "garbage"])
def test_files_that_are_no_good_are_named(tmp_path: Path, which: str, damage: str) -> None:
    _, certificate_file, key_file = saved(tmp_path)
    bad = certificate_file if which == "certificate" else key_file
    if damage == "missing":
        bad.unlink()
    else:
        bad.write_bytes(b"" if damage == "empty" else b"\xff\x00 garbage")

    with pytest.raises(ConfigError) as refused:
        LinkIdentity.load(certificate_file=certificate_file, key_file=key_file)

    assert refused.value.key == ("node.certificate" if which == "certificate" else "node.certificate_key")
    assert bad.name in str(refused.value)


def test_another_certificates_key_is_refused(tmp_path: Path) -> None:
    _, certificate_file, key_file = saved(tmp_path)
    stranger = Ed25519PrivateKey.generate()
    key_file.write_bytes(stranger.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    with pytest.raises(ConfigError, match="belong together"):
        LinkIdentity.load(certificate_file=certificate_file, key_file=key_file)


def test_a_fingerprint_is_the_sha256_of_the_certificate() -> None:
    identity = LinkIdentity.generate()

    assert identity.fingerprint == fingerprint_of(identity.certificate) == hashlib.sha256(identity.certificate).digest()
    assert len(identity.certificate) <= CERTIFICATE_MAX_BYTES


def test_only_the_certificates_own_signature_of_this_message_verifies() -> None:
    identity, other = LinkIdentity.generate(), LinkIdentity.generate()
    signature = identity.sign(b"message")

    assert verify(identity.certificate, signature=signature, message=b"message")
    assert not verify(identity.certificate, signature=signature, message=b"massage")
    assert not verify(other.certificate, signature=signature, message=b"message")
    assert not verify(identity.certificate, signature=signature[:-1], message=b"message")
    assert not verify(b"no certificate", signature=signature, message=b"message")


def test_nothing_secret_is_shown() -> None:
    identity = LinkIdentity.generate()

    assert identity.private_key.hex() not in repr(identity)
    assert "private_key" not in repr(identity)
