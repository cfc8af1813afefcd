"""Who may be linked, where they are, and by which certificate they are known.

An endpoint asks its `PeerBook` how to reach a peer, and whether a dialler holds the certificate of the peer that it
says it is. It keeps no list of its own, so that what a descriptor teaches counts at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from unlinkabledfl.errors import ConfigError, DescriptorError
from unlinkabledfl.mixnet.descriptor import FINGERPRINT_BYTES, Descriptor, check_address
from unlinkabledfl.sphinx import NodeId

__all__ = ["Contact", "Contacts", "PeerBook"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    """How to reach a peer: the fingerprint of its link certificate, and addresses `host:port`, tried in turn."""

    fingerprint: bytes = field(repr=False)
    addresses: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.fingerprint) != FINGERPRINT_BYTES:
            raise ConfigError(
                key="node.contacts.fingerprint",
                got=self.fingerprint.hex(),
                takes=f"the SHA-256 of the peer's link certificate, {FINGERPRINT_BYTES} bytes",
            )
        for address in self.addresses:
            try:
                check_address(address, allow_loopback=True)
            except DescriptorError:
                raise ConfigError(
                    key="node.contacts.addresses",
                    got=address,
                    takes="host:port, as name:4433, 192.0.2.1:4433 or [2001:db8::1]:4433",
                ) from None


class PeerBook(Protocol):
    """What an endpoint knows of peers."""

    def contact(self, peer: NodeId) -> Contact | None:
        """Return how to reach the peer, and by what it is known; None if nobody has told us."""
        ...

    def admit(self, peer: NodeId, *, fingerprint: bytes, introduction: bytes) -> bool:
        """Say whether a peer without a contact may be linked all the same: a stranger.

        It has proved to hold the certificate of this fingerprint, and nothing more: that the certificate is this
        peer's has to follow from its `introduction`, which is empty or its signed descriptor.
        """
        ...


class Contacts:
    """A book over the operator's contacts, live, and the descriptors that peers spread.

    `described` returns a peer's descriptor: `PeerView.descriptor`. The operator's word on a certificate overrules a
    descriptor; the addresses of both are tried, the operator's first. `welcomes` says of a stranger, by the descriptor
    that it introduced itself with and `parse` accepted, whether it may be linked; without both, nobody else may.
    """

    def __init__(
        self,
        contacts: Mapping[NodeId, Contact],
        *,
        described: Callable[[NodeId], Descriptor | None] = lambda _: None,
        parse: Callable[[bytes], Descriptor] | None = None,
        welcomes: Callable[[Descriptor], bool] = lambda _: False,
    ) -> None:
        self._contacts = contacts
        self._described = described
        self._parse = parse
        self._welcomes = welcomes

    def contact(self, peer: NodeId) -> Contact | None:
        given, descriptor = self._contacts.get(peer), self._described(peer)
        if descriptor is None:
            return given
        if given is None:
            return Contact(fingerprint=descriptor.fingerprint, addresses=descriptor.addresses)
        others = tuple(address for address in descriptor.addresses if address not in given.addresses)
        return Contact(fingerprint=given.fingerprint, addresses=given.addresses + others) if others else given

    def admit(self, peer: NodeId, *, fingerprint: bytes, introduction: bytes) -> bool:
        if self._parse is None:
            return False
        try:
            descriptor = self._parse(introduction)
        except DescriptorError:
            return False
        # The descriptor is signed by the node that it is of: it says which certificate is that node's.
        is_theirs = (descriptor.node_id, descriptor.fingerprint) == (peer, fingerprint)
        return is_theirs and self._welcomes(descriptor)
