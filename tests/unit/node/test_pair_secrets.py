import pytest
from nacl.bindings import crypto_sign_seed_keypair

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.node.pair_secrets import PairSecrets
from unlinkabledfl.sphinx import NodeId

SEEDS = [bytes([number]) * 32 for number in range(3)]
IDS = [NodeId(crypto_sign_seed_keypair(seed)[0]) for seed in SEEDS]


def test_both_ends_of_a_pair_have_one_secret_and_no_other_pair_has_it() -> None:
    ends = [PairSecrets(seed, context=b"run") for seed in SEEDS]

    secrets = [ends[a](IDS[b]) for a, b in [(0, 1), (1, 0), (0, 2), (1, 2)]]

    assert secrets[0] == secrets[1]
    assert len(set(secrets)) == 3
    assert ends[0](IDS[1]) == secrets[0]


def test_another_run_has_other_secrets() -> None:
    assert PairSecrets(SEEDS[0], context=b"a")(IDS[1]) != PairSecrets(SEEDS[0], context=b"b")(IDS[1])


def test_the_secret_of_two_seeds_stays_what_it_is() -> None:
    secret = PairSecrets(SEEDS[0], context=b"run")(IDS[1])

    assert secret.hex() == "65407e10b5a23c48dcc39c1bc6d0c63fec045d0260a0d03020a0b840019a3fd2"


@pytest.mark.parametrize("peer", [bytes(32), b"\x01" + bytes(31), b"\xff" * 32])
def test_an_id_that_is_no_key_is_refused_by_name(peer: bytes) -> None:
    with pytest.raises(ConfigError, match=r"node\.graph.*Ed25519"):
        PairSecrets(SEEDS[0], context=b"run")(NodeId(peer))
