"""What two nodes share that know each other's id, without a word between them.

A node id is an Ed25519 key. Its curve has a second form, in which two keys agree on a secret (X25519); both ends bring
theirs into that form. The secret lasts as long as the identities, so everything drawn from it is bound to a context,
such as the name of a run.

Invariant: `PairSecrets(seed_a, …)(id_b) == PairSecrets(seed_b, …)(id_a)` for one context, and nobody else can make it.
"""

from hashlib import blake2b

from nacl.bindings import (
    crypto_scalarmult,
    crypto_sign_ed25519_pk_to_curve25519,
    crypto_sign_ed25519_sk_to_curve25519,
    crypto_sign_seed_keypair,
)
from nacl.exceptions import CryptoError

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.sphinx import NodeId

_PERSON = b"udfl/pair/v1"
_SECRET_BYTES = 32


class PairSecrets:
    """The secrets of one node, each worked out when it is first asked for."""

    __slots__ = ("_context", "_known", "_own_id", "_private_key")

    def __init__(self, signing_seed: bytes, *, context: bytes) -> None:
        public, secret = crypto_sign_seed_keypair(signing_seed)
        self._own_id = NodeId(public)
        self._private_key = crypto_sign_ed25519_sk_to_curve25519(secret)
        self._context = context
        self._known: dict[NodeId, bytes] = {}

    def __call__(self, peer: NodeId) -> bytes:
        """Return what we share with this peer."""
        secret = self._known.get(peer)
        if secret is None:
            secret = self._known[peer] = self._agree(peer)
        return secret

    def _agree(self, peer: NodeId) -> bytes:
        try:
            shared = crypto_scalarmult(self._private_key, crypto_sign_ed25519_pk_to_curve25519(peer))
        except (CryptoError, RuntimeError) as error:
            takes = "node ids that are Ed25519 keys of other nodes"
            raise ConfigError(key="node.graph", got=peer.hex(), takes=takes) from error
        first, second = sorted((self._own_id, peer))
        digest = blake2b(shared, digest_size=_SECRET_BYTES, person=_PERSON)
        digest.update(first + second + self._context)
        return digest.digest()
