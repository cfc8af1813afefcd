"""Feed broken input to everything that a link parses: datagrams, handshakes, cells, and whole conversations.

    python tests/fuzz/fuzz_link.py                     for FUZZ_SECONDS, 60 by default
    python tests/fuzz/fuzz_link.py -runs=1000          or with any option of libFuzzer
    python tests/fuzz/fuzz_link.py crash-0123abcd      one input again

The first byte of an input says what to do with the rest of it.
"""

import os
import random
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from typing import Final

try:
    import atheris
except ImportError:  # the module stays importable, so that type checks and tests see it
    atheris = None

with atheris.instrument_imports(include=["unlinkabledfl"]) if atheris else nullcontext():
    from unlinkabledfl.errors import ControlError
    from unlinkabledfl.sphinx import NodeId
    from unlinkabledfl.transport.cells import CellFormat, CellReader
    from unlinkabledfl.transport.certificates import LinkIdentity
    from unlinkabledfl.transport.datagrams import Initial, RetryTokens, connection_id_of, parse_initial, split
    from unlinkabledfl.transport.handshake import Dialling, Listening
    from unlinkabledfl.transport.link import Closed, Link, Opened
    from unlinkabledfl.transport.quic import Connections
    from unlinkabledfl.transport.settings import EndpointSettings

SETTINGS: Final = EndpointSettings(packet_bytes=4_000)
CELLS: Final = CellFormat(SETTINGS.packet_bytes)
DIALLER, LISTENER = NodeId(b"d" * 32), NodeId(b"l" * 32)
IDENTITIES: Final = {DIALLER: LinkIdentity.generate(), LISTENER: LinkIdentity.generate()}
CONNECTIONS: Final = {node_id: Connections(identity, SETTINGS) for node_id, identity in IDENTITIES.items()}
ADDRESSES: Final = {DIALLER: ("192.0.2.1", 1), LISTENER: ("192.0.2.2", 2)}
TOKENS: Final = RetryTokens(random.Random(1).randbytes)
STEPS_MAX: Final = 12
OPTIONS: Final = ("-max_len=4096", "-timeout=10", "-rss_limit_mb=1024")


def knows(peer: NodeId, fingerprint: bytes, _: bytes) -> bool:
    """Return whether this is the dialler."""
    return peer == DIALLER and fingerprint == IDENTITIES[DIALLER].fingerprint


def listening() -> Listening:
    """Return the honest listener."""
    return Listening(
        identity=IDENTITIES[LISTENER],
        cell_bytes=CELLS.cell_bytes,
        knows=knows,
        entropy=random.Random(2).randbytes,
    )


def dialling() -> Dialling:
    """Return the honest dialler."""
    return Dialling(
        node_id=DIALLER,
        identity=IDENTITIES[DIALLER],
        listener_fingerprint=IDENTITIES[LISTENER].fingerprint,
        cell_bytes=CELLS.cell_bytes,
        entropy=random.Random(3).randbytes,
    )


def changed(good: bytes, data: bytes) -> bytes:
    """Change bytes of something good: each three of `data` are a position and a mask; what is left is appended."""
    result = bytearray(good)
    for at in range(0, len(data) - 2, 3):
        result[int.from_bytes(data[at : at + 2]) % len(result)] ^= data[at + 2]
    return bytes(result) + data[3 * (len(data) // 3) :]


def datagram(data: bytes) -> None:
    """Look at any datagram as the switchboard does."""
    initial = parse_initial(data)
    if initial is not None and initial.destination != connection_id_of(data):
        raise AssertionError("two readings of one connection id")
    pieces = split(data, 1 + len(data) // 3)
    if pieces is not None and b"".join(pieces) != data:
        raise AssertionError("a read was not cut but changed")
    if TOKENS.check(Initial(destination=b"x" * 8, source=b"", token=data), ADDRESSES[DIALLER], now_s=1.0) is not None:
        raise AssertionError("a token was made up")


def cells(data: bytes) -> None:
    """Read cells: some good ones, changed, in pieces."""
    if not data:
        return
    good = CELLS.packet(bytes(CELLS.packet_bytes)) + CELLS.control([b"a" * 40, b"", b"b"])[0]
    stream = changed(good, data[1:])
    reader = CellReader(CELLS)
    step = 1 + 37 * data[0]
    with suppress(ControlError):
        for start in range(0, len(stream), step):
            reader.feed(stream[start : start + step])
            if reader.pending_bytes >= CELLS.cell_bytes:
                raise AssertionError(f"{reader.pending_bytes} bytes of one cell")


def proof(data: bytes) -> None:
    """Answer a listener: with anything, or with a good proof, changed."""
    listener = listening()
    good = dialling().receive(listener.challenge())
    if not isinstance(good, bytes) or not data:
        return
    answer = data[1:] if data[0] & 1 else changed(good, data[1:])
    with suppress(ControlError):
        # The padding is empty and everything else is signed: only the proof itself passes.
        if listener.receive(answer) is not None and answer != good:
            raise AssertionError("a changed proof was accepted")


def welcome(data: bytes) -> None:
    """Answer a dialler: with anything, or after a good challenge."""
    dialler = dialling()
    with suppress(ControlError):
        if data[:1] == b"\x00":
            dialler.receive(listening().challenge())
        dialler.receive(data[1:])


class Conversation:
    """Two links, and a network that changes, drops and repeats datagrams as the input says."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.now_s = 1_000.0
        quic = CONNECTIONS[DIALLER].dial(
            ADDRESSES[LISTENER],
            fingerprint=IDENTITIES[LISTENER].fingerprint,
            datagram_bytes=1_280,
            now_s=self.now_s,
        )
        self.dialler = self._link(quic, dialling(), LISTENER)
        accepted = CONNECTIONS[LISTENER].accept(
            original_connection_id=quic.original_destination_connection_id,
            retry_connection_id=None,
            first_datagram_bytes=1_280,
        )
        self.listener = self._link(accepted, listening(), DIALLER)

    def _link(self, quic: object, greeting: Dialling | Listening, other: NodeId) -> Link:
        return Link(
            quic,  # type: ignore[arg-type]
            greeting=greeting,
            cells=CELLS,
            settings=SETTINGS,
            address=ADDRESSES[other],
            now_s=self.now_s,
        )

    def hold(self) -> None:
        """Let both talk."""
        for _ in range(STEPS_MAX):
            for one, other in ((self.dialler, self.listener), (self.listener, self.dialler)):
                for sent in one.datagrams(now_s=self.now_s):
                    for arrived in self.tampered(sent):
                        other.receive(arrived, len(arrived), now_s=self.now_s)
                self.follow(other)
            self.now_s += 0.05
            for link in (self.dialler, self.listener):
                link.handle_timer(now_s=self.now_s)

    def tampered(self, sent: bytes) -> list[bytes]:
        """Return what becomes of a datagram."""
        if not self.data:
            return [sent]
        verdict, position, mask = self.data[0], self.data[1:3], self.data[3:4]
        self.data = self.data[4:]
        match verdict % 4:
            case 0:
                return [changed(sent, position.ljust(2, b"\0") + (mask or b"\1"))]
            case 1:
                return []
            case 2:
                return [sent, sent]
            case _:
                return [sent]

    def follow(self, link: Link) -> None:
        """Do what an endpoint does."""
        over = False
        while (event := link.next_event()) is not None:
            if over:
                raise AssertionError("an event after the last one")
            if isinstance(event, Closed):
                over = True
            elif isinstance(event, Opened):
                link.send_packet(bytes(CELLS.packet_bytes), now_s=self.now_s)
            else:
                if event.peer != DIALLER:
                    raise AssertionError("somebody else was proved")
                link.welcome(now_s=self.now_s)
        if link.take_cells() and not (link.is_open or link.is_closed):
            raise AssertionError("cells on a link that was never open")


def conversation(data: bytes) -> None:
    """Let two links talk over a bad network."""
    Conversation(data).hold()


def first_datagram(data: bytes) -> None:
    """Open a connection with a first datagram that was changed."""
    talk = Conversation(b"")
    for sent in talk.dialler.datagrams(now_s=talk.now_s):
        talk.listener.receive(changed(sent, data), len(sent), now_s=talk.now_s)
    talk.follow(talk.listener)
    talk.listener.datagrams(now_s=talk.now_s)


WAYS: Final[Sequence[Callable[[bytes], None]]] = (datagram, cells, proof, welcome, conversation, first_datagram)


def fuzz_one(data: bytes) -> None:
    """Try one input."""
    selector, rest = (data[0], data[1:]) if data else (0, b"")
    WAYS[selector % len(WAYS)](rest)


def main(arguments: Sequence[str]) -> None:
    """Run libFuzzer, for a limited time unless the arguments say how long."""
    if atheris is None:
        sys.exit("atheris is not installed; `make fuzz` installs it")
    limits = [] if arguments else [f"-max_total_time={os.environ.get('FUZZ_SECONDS', '60')}"]
    atheris.Setup([sys.argv[0], *OPTIONS, *limits, *arguments], fuzz_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
