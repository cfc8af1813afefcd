"""The driver: what happens to a node in the real world, one thing at a time, and how it ends."""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest

from tests.unit.transport.virtual import (
    PACKET_BYTES,
    Book,
    Place,
    entropy,
    identity,
    node_id,
    packet,
    quiet,
    run,
    until,
)
from unlinkabledfl.errors import ConfigError, LearnerError
from unlinkabledfl.mixnet.config import MixSettings, build_mix_node
from unlinkabledfl.mixnet.descriptor import Descriptor, sign
from unlinkabledfl.mixnet.destinations import ReachDestinations
from unlinkabledfl.mixnet.events import MessageAcknowledged, MessageReceived, PeerChanged, SendControl, SendPacket
from unlinkabledfl.mixnet.keys import KeyRotated
from unlinkabledfl.mixnet.mixers import PoissonSettings
from unlinkabledfl.mixnet.peers import PeerSettings, PeerView
from unlinkabledfl.mixnet.routes import OverlayRoutes
from unlinkabledfl.mixnet.sphinx_packets import SphinxPackets
from unlinkabledfl.node.events import Ending, Finished, ModelReady, RoundFinished, TrainRequested
from unlinkabledfl.node.learner import Metrics, State
from unlinkabledfl.sphinx import Geometry, NodeId, Sphinx
from unlinkabledfl.transport.book import Contact, Contacts
from unlinkabledfl.transport.driver import DrivenEvent, NodeClock, NodeDriver
from unlinkabledfl.transport.endpoint import Endpoint
from unlinkabledfl.transport.settings import EndpointSettings

STATE: State = {"weight": np.ones(3, dtype=np.float32)}
Call = tuple[str, Any]


class Scribe:
    """A node that writes down what it is told, and says what the test has put in its mouth."""

    def __init__(self, number: int = 1) -> None:
        self.node_id = node_id(number)
        self.calls: list[Call] = []
        self.at_s: list[float] = []
        self.events: deque[DrivenEvent] = deque()
        self.timers_s: deque[float] = deque()
        self.answers: dict[str, Sequence[DrivenEvent] | Exception] = {}

    def start(self, *, now_s: float) -> None:
        self._note("start", None, now_s)

    def begin(self, *, now_s: float) -> None:
        self._note("begin", None, now_s)

    def receive_packet(self, packet: Any, *, from_peer: NodeId, now_s: float) -> None:
        self._note("packet", (from_peer[0], packet), now_s)

    def receive_control(self, data: bytes, *, from_peer: NodeId, now_s: float) -> None:
        self._note("control", (from_peer[0], data), now_s)

    def link_up(self, peer: NodeId, *, now_s: float) -> bool:
        self._note("up", peer[0], now_s)
        return True

    def link_down(self, peer: NodeId, *, now_s: float) -> None:
        self._note("down", peer[0], now_s)

    def dial_failed(self, peer: NodeId, *, now_s: float) -> None:
        self._note("failed", peer[0], now_s)

    def packet_unsent(self, event: SendPacket, *, now_s: float) -> None:
        self._note("unsent", event.packet, now_s)

    def control_unsent(self, event: SendControl, *, now_s: float) -> None:
        self._note("control unsent", event.data, now_s)

    def training_finished(self, *, round_number: int, state: State, metrics: Metrics, now_s: float) -> None:
        self._note("trained", (round_number, state, dict(metrics)), now_s)

    def training_failed(self, *, round_number: int, reason: str, now_s: float) -> None:
        self._note("training failed", (round_number, reason), now_s)

    def peer_trained(self, *, round_number: int, now_s: float) -> None:
        self._note("peer trained", round_number, now_s)

    def evaluation_finished(self, *, round_number: int, metrics: Metrics, now_s: float) -> None:
        self._note("evaluated", (round_number, dict(metrics)), now_s)

    def next_timer_s(self) -> float | None:
        return self.timers_s[0] if self.timers_s else None

    def handle_timer(self, *, now_s: float) -> None:
        due_s = self.timers_s.popleft()
        assert now_s >= due_s
        self._note("timer", due_s, now_s)

    def next_event(self) -> DrivenEvent | None:
        return self.events.popleft() if self.events else None

    def heard(self, *kinds: str) -> list[Any]:
        return [what for kind, what in self.calls if kind in kinds]

    def _note(self, kind: str, what: Any, now_s: float) -> None:
        self.calls.append((kind, what))
        self.at_s.append(now_s)
        answer = self.answers.pop(kind, ())
        if isinstance(answer, Exception):
            raise answer
        self.events.extend(answer)


class Pupil:
    """A learner that takes as long as it is told to."""

    def __init__(self, *, takes_s: float = 0.0, error: Exception | None = None) -> None:
        self.takes_s = takes_s
        self.error = error
        self.cancelled = 0
        self.adopted: list[tuple[State, bool]] = []

    async def train(self, round_number: int) -> tuple[State, Metrics]:
        await self._work()
        return STATE, {"loss": float(round_number)}

    async def adopt(self, state: State, *, evaluate: bool) -> Metrics:
        await self._work()
        self.adopted.append((state, evaluate))
        return {"accuracy": 0.5} if evaluate else {}

    async def state(self) -> State:
        return STATE

    async def _work(self) -> None:
        try:
            await asyncio.sleep(self.takes_s)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error


def endpoint(number: int, book: Book, **settings: Any) -> Endpoint:
    return Endpoint(
        node_id=node_id(number),
        identity=identity(number),
        book=book,
        settings=EndpointSettings(packet_bytes=PACKET_BYTES, allow_loopback=True, **settings),
        entropy=entropy(number),
    )


class Driven:
    """A scribe under its driver."""

    def __init__(self, *, wanted: Sequence[int] = (), learner: Pupil | None = None, **arguments: Any) -> None:
        self.node = arguments.pop("node", None) or Scribe()
        self.book = Book()
        self.told: list[DrivenEvent] = []
        self.driver = NodeDriver(
            node=self.node,
            endpoint=endpoint(1, self.book, **arguments.pop("settings", {})),
            learner=learner,
            wanted=[node_id(number) for number in wanted],
            on_event=lambda event, now_s: self.told.append(event),
            clock=asyncio.get_running_loop().time,
            **arguments,
        )

    @asynccontextmanager
    async def running(self) -> Any:
        """Run it until the block ends; what `run` raises is raised there."""
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self.driver.run())
            await quiet(0.001)
            yield task
            self.driver.stop()

    async def knows(self, place: Place) -> Place:
        place.book.contacts[node_id(1)] = Contact(fingerprint=identity(1).fingerprint)
        self.book.contacts[place.id] = Contact(
            fingerprint=place.identity.fingerprint, addresses=(f"{place.address[0]}:{place.address[1]}",)
        )
        return place

    def say(self, *events: DrivenEvent) -> None:
        """Have the node say this at a timer that is due now."""
        self.node.answers["timer"] = events
        self.wake_at(self.driver.now_s())

    def wake_at(self, *instants_s: float) -> None:
        """Have the node ask for timers, as it would at the end of a step."""
        self.node.timers_s.extend(instants_s)
        self.driver._arm()  # noqa: SLF001 -- a sans-IO node does not speak unasked


def test_packets_and_control_messages_reach_the_node_and_leave_it() -> None:
    async def main() -> None:
        driven = Driven(wanted=[2])
        peer = await driven.knows(await Place(2).open())
        async with driven.running():
            await driven.driver.ready.wait()
            driven.say(SendPacket(to=peer.id, packet=packet(1)), SendControl(to=peer.id, data=b"hello"))
            await until(lambda: bool(peer.packets and peer.control))
            peer.endpoint.send_packet(node_id(1), packet(2))
            peer.endpoint.send_control(node_id(1), b"well")
            await until(lambda: len(driven.node.heard("packet", "control")) == 2)

        assert (peer.packets, peer.control) == ([(1, packet(1))], [(1, b"hello")])
        assert sorted(driven.node.heard("packet", "control")) == [(2, packet(2)), (2, b"well")]
        assert driven.told == []

    run(main())


def test_the_node_starts_before_its_links_and_begins_once_all_wanted_ones_are_up() -> None:
    async def main() -> None:
        ready: list[str] = []
        driven = Driven(wanted=[2, 3], on_ready=lambda: ready.append("ready"))
        for number in (2, 3):
            await driven.knows(await Place(number).open())
        async with driven.running():
            await driven.driver.ready.wait()
            assert driven.driver.missing == frozenset()
            driven.driver.begin()

        kinds = [kind for kind, _ in driven.node.calls]
        assert kinds[:4] == ["start", "up", "up", "begin"]
        assert kinds.count("begin") == 1
        assert ready == ["ready"]

    run(main())


def test_a_dead_peer_at_the_start_is_waited_for_only_so_long() -> None:
    async def main() -> None:
        driven = Driven(wanted=[2, 3], patience_s=25.0)
        await driven.knows(await Place(2).open())
        dead = await driven.knows(await Place(3).open())
        await dead.endpoint.close()
        async with driven.running():
            begun_at_s = driven.driver.now_s()
            await driven.driver.ready.wait()

            assert driven.driver.now_s() - begun_at_s == pytest.approx(25.0, abs=0.01)
            assert driven.driver.missing == {node_id(3)}
            assert driven.node.heard("begin") == [None]
            assert 3 in driven.node.heard("failed")

    run(main())


def test_the_first_round_waits_for_begin_where_that_is_asked_for() -> None:
    async def main() -> None:
        driven = Driven(begin_when_ready=False)
        async with driven.running():
            await driven.driver.ready.wait()
            assert driven.node.heard("begin") == []
            driven.driver.begin()
            driven.driver.begin()

            assert driven.node.heard("begin") == [None]

    run(main())


def test_timers_fire_when_they_are_due_and_never_before() -> None:
    async def main() -> None:
        driven = Driven()
        async with driven.running():
            now_s = driven.driver.now_s()
            driven.wake_at(*(now_s + gap for gap in (0.0, 0.5, 0.5, 0.75, 30.0)))
            await quiet(40.0)

        calls = zip(driven.node.calls, driven.node.at_s, strict=True)
        timers = [at_s - now_s for (kind, _), at_s in calls if kind == "timer"]
        assert timers == pytest.approx([0.0, 0.5, 0.5, 0.75, 30.0], abs=0.001)

    run(main())


def test_training_and_evaluation_are_answered() -> None:
    async def main() -> None:
        pupil = Pupil(takes_s=3.0)
        driven = Driven(learner=pupil)
        async with driven.running():
            driven.say(TrainRequested(round_number=4))
            await until(lambda: bool(driven.node.heard("trained")))
            driven.say(ModelReady(round_number=4, state=STATE, evaluate=True))
            await until(lambda: bool(driven.node.heard("evaluated")))

        assert driven.node.heard("trained") == [(4, STATE, {"loss": 4.0})]
        assert driven.node.heard("evaluated") == [(4, {"accuracy": 0.5})]
        assert pupil.adopted == [(STATE, True)]
        assert [type(event) for event in driven.told] == [TrainRequested, ModelReady]

    run(main())


def test_what_whoever_started_the_node_knows_of_its_peers_reaches_it() -> None:
    async def main() -> None:
        driven = Driven(learner=Pupil())
        async with driven.running():
            driven.driver.peer_trained(3)

        assert driven.node.heard("peer trained") == [3]

    run(main())


def test_emission_goes_on_at_its_instants_while_the_node_trains() -> None:
    async def main() -> None:
        driven = Driven(learner=Pupil(takes_s=50.0))
        async with driven.running():
            driven.say(TrainRequested(round_number=1))
            await quiet(0.01)
            now_s = driven.driver.now_s()
            due_s = [now_s + 0.1 * number for number in range(1, 400)]
            driven.wake_at(*due_s)
            await quiet(45.0)

            assert driven.node.heard("timer")[1:] == due_s
            assert driven.node.heard("trained") == []

    run(main())


def test_a_training_that_fails_is_reported_with_its_reason() -> None:
    async def main() -> None:
        driven = Driven(learner=Pupil(error=LearnerError("out of memory")))
        async with driven.running():
            driven.say(TrainRequested(round_number=2), ModelReady(round_number=2, state=STATE, evaluate=False))
            await until(lambda: len(driven.node.heard("training failed", "evaluated")) == 2)

        assert driven.node.heard("training failed") == [(2, "out of memory")]
        assert driven.node.heard("evaluated") == [(2, {})]

    run(main())


@pytest.mark.parametrize("where", ["start", "timer", "up", "packet", "begin"])
def test_what_the_node_raises_comes_out_of_run_after_the_links_are_closed(where: str) -> None:
    async def main() -> None:
        driven = Driven(wanted=[2])
        peer = await driven.knows(await Place(2).open())
        driven.node.answers[where] = ZeroDivisionError("a bug")
        driven.node.timers_s.append(driven.driver.now_s() + 5.0)

        peer.reactions.append(lambda: peer.endpoint.send_packet(node_id(1), packet(1)))

        with pytest.raises(ZeroDivisionError, match="a bug"):
            await driven.driver.run()
        await quiet()
        assert peer.heard in ([], [("up", 1), ("down", 1)])

    run(main())


@pytest.mark.parametrize("callback", ["on_ready", "on_link"])
def test_what_a_callback_raises_comes_out_of_run(callback: str) -> None:
    async def main() -> None:
        def broken(*_: Any) -> None:
            raise ZeroDivisionError("a bug")

        callbacks: dict[str, Any] = {callback: broken}
        driven = Driven(wanted=[2], **callbacks)
        await driven.knows(await Place(2).open())

        with pytest.raises(ZeroDivisionError, match="a bug"):
            await driven.driver.run()

    run(main())


def test_what_the_learner_raises_beyond_its_own_error_comes_out_of_run() -> None:
    async def main() -> None:
        driven = Driven(learner=Pupil(error=ZeroDivisionError("a bug")))
        driven.node.answers["start"] = [TrainRequested(round_number=1)]

        with pytest.raises(ZeroDivisionError, match="a bug"):
            await driven.driver.run()

    run(main())


def test_packets_that_a_full_link_refuses_are_the_nodes_again() -> None:
    async def main() -> None:
        driven = Driven(wanted=[2], settings={"send_window_packets": 3, "dial_queue_packets": 3})
        peer = await driven.knows(await Place(2).open())
        async with driven.running():
            await driven.driver.ready.wait()
            driven.say(*(SendPacket(to=peer.id, packet=packet(number)) for number in range(5)))
            await until(lambda: len(peer.packets) == 3)

        assert driven.node.heard("unsent") == [packet(3), packet(4)]

    run(main())


def test_a_control_message_without_a_link_is_the_nodes_again() -> None:
    async def main() -> None:
        driven = Driven()
        async with driven.running():
            driven.say(SendControl(to=node_id(2), data=b"hello"))
            await until(lambda: bool(driven.node.heard("control unsent")))

        assert driven.node.heard("control unsent") == [b"hello"]

    run(main())


def test_who_asks_is_told_which_links_come_and_go() -> None:
    async def main() -> None:
        links: list[tuple[int, bool]] = []
        driven = Driven(wanted=[2], on_link=lambda peer, up: links.append((peer[0], up)))
        peer = await driven.knows(await Place(2).open())
        async with driven.running():
            await driven.driver.ready.wait()
            peer.endpoint.hang_up(node_id(1))
            await until(lambda: len(links) == 3)

        assert links[:3] == [(2, True), (2, False), (2, True)]

    run(main())


def test_a_node_that_takes_batches_gets_what_arrived_together() -> None:
    class Batching(Scribe):
        def receive_packets(self, packets: Sequence[tuple[NodeId, Any]], *, now_s: float) -> None:
            self.calls.append(("batch", [(peer[0], data) for peer, data in packets]))

    async def main() -> None:
        driven = Driven(wanted=[2], node=Batching())
        peer = await driven.knows(await Place(2).open())
        async with driven.running():
            await driven.driver.ready.wait()
            for number in range(6):
                peer.endpoint.send_packet(node_id(1), packet(number))
            await until(lambda: sum(map(len, driven.node.heard("batch"))) == 6)

        batches = driven.node.heard("batch")
        assert [one for batch in batches for one in batch] == [(2, packet(number)) for number in range(6)]
        assert max(map(len, batches)) > 1
        assert driven.node.heard("packet") == []

    run(main())


def test_stop_closes_links_cancels_training_and_returns_within_two_seconds() -> None:
    async def main() -> None:
        pupil = Pupil(takes_s=1_000.0)
        driven = Driven(wanted=[2], learner=pupil)
        peer = await driven.knows(await Place(2).open())
        async with driven.running() as task:
            await driven.driver.ready.wait()
            driven.say(TrainRequested(round_number=1))
            await quiet()
            stopped_at_s = driven.driver.now_s()
            calls = len(driven.node.calls)
            driven.node.timers_s.append(stopped_at_s + 1.0)
            driven.driver.stop()
            assert await task is Ending.DONE

        assert driven.driver.now_s() - stopped_at_s < 2.0
        assert pupil.cancelled == 1
        await until(lambda: ("down", 1) in peer.heard)
        assert len(driven.node.calls) == calls

    run(main())


def test_a_driver_that_is_stopped_before_it_runs_returns_at_once() -> None:
    async def main() -> None:
        driven = Driven(wanted=[2])
        driven.driver.stop()

        assert await driven.driver.run() is Ending.DONE
        assert driven.node.calls == []

    run(main())


def test_a_node_that_is_done_goes_on_relaying_and_one_that_exits_leaves() -> None:
    async def main() -> None:
        driven = Driven()
        async with driven.running() as task:
            metrics = RoundFinished(round_number=9, metrics={"loss": 1.0})
            driven.say(metrics, Finished(ending=Ending.DONE))
            await quiet(100.0)
            assert not task.done()
            driven.say(Finished(ending=Ending.EXIT))

            assert await task is Ending.EXIT
        assert driven.told == [metrics, Finished(ending=Ending.DONE), Finished(ending=Ending.EXIT)]

    run(main())


def test_a_taken_port_is_reported_by_run() -> None:
    async def main() -> None:
        taken = await Place(2).open()

        with pytest.raises(ConfigError, match=r"process\.base_port"):
            await Driven().driver.run(port=taken.address[1])

    run(main())


def test_the_nodes_clock_does_not_run_backwards() -> None:
    async def main() -> None:
        instants = iter([5.0, 4.0, 6.0, 5.5])
        driven = Driven()
        driver = NodeDriver(node=driven.node, endpoint=endpoint(1, Book()), clock=lambda: next(instants))

        assert [driver.now_s() for _ in range(4)] == [5.0, 5.0, 6.0, 6.0]

    run(main())


def test_the_default_clock_shows_the_time_of_day() -> None:
    clock = NodeClock()

    assert clock() > 1_700_000_000.0
    assert clock() <= clock()


# -- with the real mix ---------------------------------------------------------------------------------------------

PACKETS = SphinxPackets(Sphinx(Geometry(max_hops=3, body_bytes=2_048), backend="pynacl"))


class Mixing:
    """A real mix node under its driver, with descriptors that say where it is."""

    def __init__(self, number: int) -> None:
        self.seed = (number + 1).to_bytes(32)
        self.identity = identity(number)
        self.told: list[DrivenEvent] = []
        self.id = sign(
            self.seed,
            serial=0,
            epoch=0,
            public_key=b"k",
            fingerprint=self.identity.fingerprint,
            valid_until_s=1,
            addresses=[],
        ).node_id
        self.contacts: dict[NodeId, Contact] = {}
        view = PeerView(own_id=self.id, settings=PeerSettings(allow_loopback=True))
        routes = OverlayRoutes(peers=view, path_length=2)
        self.mix = build_mix_node(
            MixSettings(mixer=PoissonSettings()),
            node_id=self.id,
            packets=PACKETS,
            peers=view,
            routes=routes,
            destinations=ReachDestinations(source=self.id, routes=routes),
            entropy=entropy(number),
            describe=self.describe,
        )
        self.driver = NodeDriver(
            node=self.mix,
            endpoint=Endpoint(
                node_id=self.id,
                identity=self.identity,
                book=Contacts(self.contacts, described=view.descriptor),
                settings=EndpointSettings(packet_bytes=PACKETS.packet_bytes, allow_loopback=True),
                entropy=entropy(number),
            ),
            wanted=(),
            on_event=lambda event, now_s: self.told.append(event),
            clock=asyncio.get_running_loop().time,
        )

    def describe(self, key: KeyRotated, now_s: float) -> Descriptor:
        host, port = self.driver.address
        return sign(
            self.seed,
            serial=key.serial,
            epoch=key.epoch,
            public_key=key.public_key,
            fingerprint=self.identity.fingerprint,
            valid_until_s=int(now_s) + 10_000,
            addresses=[f"{host}:{port}"],
            allow_loopback=True,
        )


def test_nodes_that_know_one_neighbour_learn_of_the_others_and_exchange_messages_over_relays() -> None:
    async def main() -> None:
        nodes = [Mixing(number) for number in range(4)]
        drivers = [node.driver for node in nodes]
        async with asyncio.TaskGroup() as tasks:
            await start_in_turn(tasks, nodes)
            await until(lambda: all(node.mix.peers.routable_count == 3 for node in nodes), look_s=0.2)
            for node in nodes:
                for other in nodes:
                    if other is not node:
                        node.mix.send_message(other.id, node.id[:4] + other.id[:4], now_s=node.driver.now_s())
            await until(lambda: all(count(node, MessageAcknowledged) == 3 for node in nodes), look_s=0.2)
            for driver in drivers:
                driver.stop()

        for node in nodes:
            received = sorted(event.data for event in node.told if isinstance(event, MessageReceived))
            assert received == sorted(other.id[:4] + node.id[:4] for other in nodes if other is not node)
            assert count(node, PeerChanged) >= 3

    run(main())


async def start_in_turn(tasks: asyncio.TaskGroup, nodes: Sequence[Mixing]) -> None:
    """Run each node once the one before it listens, which is the one that it is told of."""
    before: Mixing | None = None
    for node in nodes:
        if before is not None:
            host, port = before.driver.address
            node.contacts[before.id] = Contact(fingerprint=before.identity.fingerprint, addresses=(f"{host}:{port}",))
            before.contacts[node.id] = Contact(fingerprint=node.identity.fingerprint)
        tasks.create_task(node.driver.run())
        await until(lambda node=node: node.driver.address[1] > 0)  # type: ignore[misc]
        if before is not None:
            node.driver._endpoint.want(before.id)  # noqa: SLF001 -- `wanted` would have had to be known before
        before = node


def count(node: Mixing, kind: type) -> int:
    return sum(isinstance(event, kind) for event in node.told)
