"""The same work done by sphinxmix, the Sphinx implementation that systems of this kind are usually built on.

It runs with its defaults (group P-224, 16-byte keys, a 192-byte header, which carries five hops because its node names
are one byte long) and a body of the same size. A longer header for 32-byte names would only cost it more. Its
`sphinx_process` returns the replay tag instead of checking it; the check, a set lookup, is not added.
"""

from collections.abc import Callable, Sequence
from typing import Any


class SphinxMix:
    """Nodes 0 to 4, with their keys, and packets between them."""

    def __init__(self, body_bytes: int) -> None:
        from sphinxmix.SphinxClient import Nenc, create_forward_message, create_surb
        from sphinxmix.SphinxNode import sphinx_process
        from sphinxmix.SphinxParams import SphinxParams

        self._parameters = SphinxParams(body_len=body_bytes)
        group = self._parameters.group
        self._secrets = [group.gensecret() for _ in range(5)]
        self._keys = [group.expon(group.g, [secret]) for secret in self._secrets]
        self._names = [Nenc(bytes([index])) for index in range(5)]
        # Its own framing of the message takes less than this.
        self._message = bytes(body_bytes - 64)
        self._create: Callable[..., Any] = create_forward_message
        self._create_surb: Callable[..., Any] = create_surb
        self._process: Callable[..., Any] = sphinx_process

    def create(self, hops: int) -> tuple[object, object]:
        """Return a packet's header and body."""
        header, body = self._create(
            self._parameters, self._names[:hops], self._keys[:hops], b"destination", self._message
        )
        return header, body

    def create_surb(self, hops: int) -> object:
        """Return a reply block."""
        return self._create_surb(self._parameters, self._names[:hops], self._keys[:hops], b"maker")

    def process(self, packets: Sequence[tuple[object, object]]) -> None:
        """Do the first hop's work for each packet."""
        for header, body in packets:
            self._process(self._parameters, self._secrets[0], header, body)


def sphinxmix(body_bytes: int) -> SphinxMix | None:
    """Return the opponent, or None where it is not installed."""
    try:
        return SphinxMix(body_bytes)
    except ImportError:
        return None
