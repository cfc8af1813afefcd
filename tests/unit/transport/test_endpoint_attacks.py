"""What a stranger, a man in the middle or a hostile peer can do to a node's links: cost it a counter."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.unit.transport.intruder import Intruder
from tests.unit.transport.virtual import (
    Place,
    Relay,
    entropy,
    identity,
    node_id,
    packet,
    pair,
    quiet,
    run,
    throw,
    until,
)
from unlinkabledfl.transport.cells import CellFormat
from unlinkabledfl.transport.certificates import LinkIdentity
from unlinkabledfl.transport.datagrams import parse_initial
from unlinkabledfl.transport.quic import Connections
from unlinkabledfl.transport.settings import EndpointSettings

FORMAT = CellFormat(4_000)
CHALLENGE_BYTES = 37


async def facing_an_intruder(number: int = 1) -> tuple[Place, Intruder]:
    """Node 2, which knows node 1, and somebody who has got through TLS with the certificate of `number`."""
    target = await Place(2).open()
    known = Place(1)
    target.knows(known)
    intruder = Intruder(target, identity=identity(number))
    await until(lambda: len(intruder.heard) == CHALLENGE_BYTES)
    return target, intruder


def test_the_intruder_of_these_tests_would_get_in_if_it_behaved() -> None:
    async def main() -> None:
        target, intruder = await facing_an_intruder()

        intruder.send(intruder.proof(node_id(1)))
        await until(lambda: len(intruder.heard) == CHALLENGE_BYTES + 1)
        intruder.send(FORMAT.packet(packet(7)))
        await until(lambda: bool(target.packets))

        assert (target.heard, target.packets) == ([("up", 1)], [(1, packet(7))])

    run(main())


@dataclass(frozen=True)
class Attack:
    name: str
    cause: str
    act: Callable[[Intruder], None]
    number: int = 1


def stolen(intruder: Intruder) -> bytes:
    """Node 1's certificate, with a key of one's own."""
    theft = type(intruder.identity)(certificate=identity(1).certificate, private_key=intruder.identity.private_key)
    return intruder.proof(node_id(1), identity=theft)


ATTACKS = [
    Attack("another version", "link_bad_version", lambda i: i.send(b"\x02")),
    Attack("garbage", "link_bad_version", lambda i: i.send(entropy(1)(5_000))),
    Attack("garbage of our version", "link_other_cells", lambda i: i.send(b"\x01" * 5_000)),
    Attack("silence", "link_timeout", lambda i: None),
    Attack("half a proof, then silence", "link_timeout", lambda i: i.send(i.proof(node_id(1))[:300])),
    Attack("a stranger's certificate", "link_unknown_certificate", lambda i: i.send(i.proof(node_id(3))), number=3),
    Attack("a peer's name", "link_unknown_certificate", lambda i: i.send(i.proof(node_id(1))), number=3),
    Attack("a peer's certificate", "link_bad_proof", lambda i: i.send(stolen(i)), number=3),
    Attack(
        "a proof for another listener",
        "link_bad_proof",
        lambda i: i.send(i.proof(node_id(1), listener_fingerprint=identity(3).fingerprint)),
    ),
    Attack("other cells", "link_other_cells", lambda i: i.send(b"\x01" + (99).to_bytes(4) + i.proof(node_id(1))[5:])),
    Attack("an endless proof", "link_proof_too_long", lambda i: i.send(i.proof(node_id(1))[:69] + b"\xff" * 6)),
    Attack("a cell before the proof", "link_other_cells", lambda i: i.send(FORMAT.packet(packet(1)))),
    Attack("a cell right behind the proof", "link_early_data", lambda i: i.send(i.proof(node_id(1)) + b"\x01")),
    Attack("another stream", "link_other_stream", lambda i: i.send(i.proof(node_id(1)), stream=6)),
    Attack("a stream for both directions", "link_other_stream", lambda i: i.send(i.proof(node_id(1)), stream=0)),
    Attack("an end of the stream", "link_other_stream", lambda i: i.send(i.proof(node_id(1)), end=True)),
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_nobody_gets_in_without_the_proof(attack: Attack) -> None:
    async def main() -> None:
        target, intruder = await facing_an_intruder(attack.number)

        attack.act(intruder)
        await until(lambda: intruder.closed is not None)
        await quiet()

        assert (target.heard, target.packets, target.control) == ([], [], [])
        assert {name for name in target.endpoint.counters if name != "udp_unknown_connection"} == {attack.cause}
        assert target.endpoint.counters[attack.cause] == 1
        assert intruder.heard[CHALLENGE_BYTES:] == b""

    run(main())


def test_a_refusal_does_not_say_why() -> None:
    async def main() -> None:
        codes = set()
        for attack in ATTACKS:
            if attack.cause != "link_timeout":
                _, intruder = await facing_an_intruder(attack.number)
                attack.act(intruder)
                await until(lambda intruder=intruder: intruder.closed is not None)  # type: ignore[misc]
                codes.add(intruder.closed)

        assert len(codes) == 1

    run(main())


@pytest.mark.parametrize(
    ("cells", "cause"),
    [
        (b"\x09" + bytes(4), "cell_bad_type"),
        (b"\x01" + (3_999).to_bytes(4), "cell_bad_length"),
        (b"\x02" + (2**32 - 1).to_bytes(4), "cell_bad_length"),
        (b"\x02" + (3).to_bytes(4) + b"\x00\x05ab".ljust(FORMAT.content_bytes, b"\0"), "cell_truncated"),
    ],
)
def test_a_peer_that_sends_broken_cells_loses_its_link_and_nothing_else_is_read(cells: bytes, cause: str) -> None:
    async def main() -> None:
        target, intruder = await facing_an_intruder()
        intruder.send(intruder.proof(node_id(1)))
        await until(lambda: len(intruder.heard) == CHALLENGE_BYTES + 1)

        intruder.send(FORMAT.packet(packet(1)))
        await until(lambda: bool(target.packets))
        intruder.send(cells + FORMAT.packet(packet(2)))
        await until(lambda: intruder.closed is not None)

        assert (target.heard, target.packets) == ([("up", 1), ("down", 1)], [(1, packet(1))])
        assert target.endpoint.counters[cause] == 1

    run(main())


def test_the_dialler_refuses_anybody_but_the_listener_that_it_dialled() -> None:
    async def main() -> None:
        one, other = await pair(linked=False)
        mallory = await Place(3).open()
        mallory.knows(one)
        host, port = mallory.address
        one.knows(other, f"{host}:{port}")  # somebody has bent the way there

        one.endpoint.send_packet(other.id, packet(1))
        await until(lambda: bool(one.heard))

        assert (one.heard, mallory.heard, mallory.packets) == ([("failed", 2)], [], [])
        assert one.endpoint.counters["link_quic_error"] == 1

    run(main())


def test_a_listener_that_shows_a_certificate_without_its_key_gets_nowhere() -> None:
    async def main() -> None:
        one, other = await pair(linked=False)
        thief = Place(3)
        thief.use(LinkIdentity(certificate=other.identity.certificate, private_key=identity(3).private_key))
        await thief.open()
        host, port = thief.address
        one.knows(other, f"{host}:{port}")
        thief.knows(one)

        one.endpoint.send_packet(other.id, packet(1))
        await until(lambda: bool(one.heard))

        assert (one.heard, thief.heard, thief.packets) == ([("failed", 2)], [], [])

    run(main())


def test_a_man_in_the_middle_cannot_use_the_proof_that_he_was_given() -> None:
    # Node 1 dials Mallory, a peer of hers. He dials node 2 as node 1 and gives her node 2's challenge to sign.
    async def main() -> None:
        target, intruder = await facing_an_intruder(3)
        victim = intruder.greeting(node_id(1), identity=identity(1), listener_fingerprint=identity(3).fingerprint)
        relayed = victim.receive(intruder.heard)
        assert isinstance(relayed, bytes)

        intruder.send(relayed)
        await until(lambda: intruder.closed is not None)

        assert (target.heard, target.endpoint.counters["link_bad_proof"]) == ([], 1)

    run(main())


def test_a_proof_cannot_be_used_twice() -> None:
    async def main() -> None:
        target, intruder = await facing_an_intruder()
        recorded = intruder.proof(node_id(1))
        intruder.send(recorded)
        await until(lambda: target.heard == [("up", 1)])
        again = Intruder(target, identity=identity(1))
        await until(lambda: len(again.heard) == CHALLENGE_BYTES)

        again.send(recorded)
        await until(lambda: again.closed is not None)

        assert (target.heard, target.endpoint.counters["link_bad_proof"]) == ([("up", 1)], 1)

    run(main())


def test_strangers_are_admitted_only_if_the_book_says_so_and_it_sees_their_introduction() -> None:
    async def main() -> None:
        for admits in (False, True):
            host = await Place(1).open()
            host.book.strangers = admits
            guest = await Place(2, introduction=b"I am two").open()
            guest.knows(host)

            guest.endpoint.dial(host.id)
            await until(lambda guest=guest: bool(guest.heard))  # type: ignore[misc]

            assert host.book.introductions == [b"I am two"]
            assert guest.heard == [("up" if admits else "failed", 1)]
            assert host.heard == ([("up", 2)] if admits else [])

    run(main())


def test_a_peer_cannot_claim_to_be_us() -> None:
    async def main() -> None:
        target = await Place(2).open()
        target.book.strangers = True
        intruder = Intruder(target, identity=identity(3))
        await until(lambda: len(intruder.heard) == CHALLENGE_BYTES)

        intruder.send(intruder.proof(node_id(2)))
        await until(lambda: intruder.closed is not None)

        assert (target.heard, target.endpoint.counters["link_unknown_certificate"]) == ([], 1)

    run(main())


# -- floods --------------------------------------------------------------------------------------------------------


def initials(target: Place, count: int) -> list[bytes]:
    """First datagrams of honest diallers."""
    connections = Connections(identity(4), EndpointSettings(packet_bytes=4_000))
    found = []
    for _ in range(count):
        quic = connections.dial(target.address, fingerprint=bytes(32), datagram_bytes=1_280, now_s=1_000.0)
        found.append(quic.datagrams_to_send(1_000.0)[0][0])
    return found


def test_a_flood_of_first_datagrams_is_bounded_and_an_honest_dialler_still_gets_in() -> None:
    async def main() -> None:
        target = await Place(2, handshakes_unchecked=5, handshakes_max=20).open()
        honest = await Place(1).open()
        honest.knows(target)
        target.knows(honest)
        throw(target, initials(target, 200))
        await until(lambda: target.endpoint.counters["link_address_checked"] == 195)
        assert target.endpoint.gauges()["links_unproved"] == 5.0

        honest.endpoint.dial(target.id)
        await until(lambda: bool(honest.heard))

        assert honest.heard == [("up", 2)]
        await quiet(30.0)
        assert target.endpoint.gauges()["links_unproved"] == 0.0

    run(main())


def test_one_source_gets_so_many_handshakes_at_once() -> None:
    async def main() -> None:
        target = await Place(2, handshakes_unchecked=100, handshakes_per_source=3).open()
        throw(target, initials(target, 10))
        await until(lambda: target.endpoint.counters["link_too_many_from_one_source"] == 7)

        assert target.endpoint.gauges()["links_unproved"] == 3.0

    run(main())


def test_a_peer_that_exchanges_connection_ids_for_ever_does_not_fill_the_table() -> None:
    async def main() -> None:
        target, intruder = await facing_an_intruder()
        intruder.send(intruder.proof(node_id(1)))
        await until(lambda: target.heard == [("up", 1)])
        sizes = []
        for _ in range(60):
            intruder.quic.change_connection_id()
            intruder.send(FORMAT.packet(packet(1)))
            await quiet(0.5)
            sizes.append(target.endpoint.gauges()["links_connection_ids"])

        assert len(target.packets) == 60
        assert max(sizes) < 16.0

    run(main())


def test_garbage_datagrams_cost_a_counter_each() -> None:
    async def main() -> None:
        target = await Place(2).open()
        whole = initials(target, 1)[0]
        rubbish = [
            b"\x00",
            bytes(1_300),
            b"\xff" * 1_300,
            entropy(3)(1_300),
            whole[:1_199],
            whole[:1] + b"\x00\x00\x00\x02" + whole[5:],
            whole[:5] + b"\x07" + whole[6:],
        ]
        assert [parse_initial(datagram) for datagram in rubbish] == [None] * len(rubbish)
        throw(target, rubbish)
        await until(lambda: target.endpoint.counters["udp_unknown_connection"] == len(rubbish))

        assert target.endpoint.gauges()["links_unproved"] == 0.0

    run(main())


def test_datagrams_of_a_link_from_another_address_are_dropped() -> None:
    async def main() -> None:
        one, other = await pair(linked=False)
        copies: list[bytes] = []

        def copy(data: bytes) -> bool:
            copies.append(data)
            return True

        relay = Relay(other, passes=copy)
        one.knows(other, relay.address)
        one.endpoint.dial(other.id)
        await until(lambda: bool(one.heard and other.heard))
        copies.clear()
        one.endpoint.send_packet(other.id, packet(1))
        await until(lambda: bool(other.packets))
        short = [data for data in copies if not data[0] & 0x80]

        throw(other, short)
        await until(lambda: other.endpoint.counters["udp_other_address"] > 0)
        one.endpoint.send_packet(other.id, packet(2))
        await until(lambda: len(other.packets) == 2)

        assert (one.heard, other.heard) == ([("up", 2)], [("up", 1)])

    run(main())
