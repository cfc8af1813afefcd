"""What nodes take down becomes a recording: whole where the logs are whole, and not wrong where they are not."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unlinkabledfl.analysis.trace import UNKNOWN, PublicSettings, Recording
from unlinkabledfl.errors import ConfigError, RunError
from unlinkabledfl.experiment.conduct import create_run
from unlinkabledfl.experiment.scenario import preset
from unlinkabledfl.experiment.tracing import recording as traces
from unlinkabledfl.experiment.tracing.logs import NodeLog, TraceFolder
from unlinkabledfl.experiment.tracing.merging import Merged, merge
from unlinkabledfl.experiment.tracing.recording import begin_trace, falling_order, public_settings
from unlinkabledfl.fragments.framing import Header
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.mixnet.journal import DROP, MESSAGE
from unlinkabledfl.mixnet.mixers import PoissonSettings
from unlinkabledfl.mixnet.topology import full
from unlinkabledfl.sphinx import NodeId

NODES = 4
NAMES = [NodeId(bytes([index + 1]) * 32) for index in range(NODES)]
PUBLIC = PublicSettings(
    topology=full(NODES),
    route="overlay",
    path_length=3,
    mixer=PoissonSettings(),
    destinations=tuple(tuple(other for other in range(NODES) if other != node) for node in range(NODES)),
    own_rate_per_s=1.0,
)
SIZE = 100
MESSAGE_ID = MessageId(b"m" * 16)


class Network:
    """Four nodes with a log each, and packets that travel by hand."""

    def __init__(self, folder: Path, *, most: int = 1_000) -> None:
        self._folder = TraceFolder(path=folder, most=most)
        self._logs = [self._folder.open(index) for index in range(NODES)]
        self.nodes = [NodeLog(name, logs) for name, logs in zip(NAMES, self._logs, strict=True)]

    def cross(self, source: int, target: int, packet: bytes, *, left_s: float, takes_s: float | None = 0.1) -> None:
        self.nodes[source].left(left_s, NAMES[target], packet, size_bytes=SIZE)
        if takes_s is not None:
            self.nodes[target].arrived(left_s + takes_s, NAMES[source], packet, size_bytes=SIZE)

    def travel(
        self, path: Sequence[int], *, at_s: float, name: str, kind: str = MESSAGE, message: MessageId = MESSAGE_ID
    ) -> None:
        """Send a packet along the path, a second a relay; a message arrives at its end."""
        packets = [f"{name}/{hop}".encode() for hop in range(len(path) - 1)]
        self.nodes[path[0]].originated(packets[0], kind=kind, path=[], message_id=message if kind == MESSAGE else None)
        for hop, packet in enumerate(packets):
            self.cross(path[hop], path[hop + 1], packet, left_s=at_s + hop)
            if hop + 1 < len(packets):
                self.nodes[path[hop + 1]].relayed(packet, packets[hop + 1])
        if kind == MESSAGE:
            data = Header(codec=1, round=7, start=0, stop=4).to_bytes()
            self.nodes[path[-1]].delivered(packets[-1], message_id=message, data=data)

    def merged(self, *, full_at: int = 0, begun_at_s: float = 0.0) -> Merged:
        for logs in self._logs:
            logs.close()
        return merge(self._folder.path, NAMES, PUBLIC, full_at=full_at, begun_at_s=begun_at_s)

    def recording(self) -> Recording:
        return self.merged().recording


def test_a_packet_is_followed_from_its_origin_to_its_end(tmp_path: Path) -> None:
    network = Network(tmp_path)
    network.travel([0, 1, 2, 3], at_s=10.0, name="one")

    recording = network.recording()

    crossings = recording.crossings
    assert crossings.source.tolist() == [0, 1, 2]
    assert crossings.target.tolist() == [1, 2, 3]
    assert crossings.arrived_at_s.tolist() == pytest.approx([10.1, 11.1, 12.1])
    assert recording.before.tolist() == [UNKNOWN, 0, 1]
    assert recording.targets.tolist() == [2]
    assert recording.oracle.origin.tolist() == [0]
    assert recording.oracle.path == ((1, 2, 3),)


def test_instants_count_from_when_the_run_began(tmp_path: Path) -> None:
    network = Network(tmp_path)
    network.cross(0, 1, b"p", left_s=9.0)

    assert network.merged(begun_at_s=10.0).recording.crossings.left_at_s.tolist() == [-1.0]


def test_what_is_lost_left_and_did_not_arrive(tmp_path: Path) -> None:
    network = Network(tmp_path)
    network.cross(0, 1, b"p", left_s=1.0, takes_s=None)

    recording = network.recording()

    assert np.isnan(recording.crossings.arrived_at_s).all()
    assert recording.targets.tolist() == []


def test_equal_bytes_on_two_links_are_two_packets_and_look_different(tmp_path: Path) -> None:
    network = Network(tmp_path)
    network.cross(0, 1, b"control", left_s=1.0)
    network.cross(0, 2, b"control", left_s=1.0, takes_s=0.5)
    network.cross(0, 1, b"control", left_s=2.0)

    crossings = network.recording().crossings

    assert crossings.arrived_at_s.tolist() == pytest.approx([1.1, 1.5, 2.1])
    assert len(set(crossings.wire_hash.tolist())) == 3


def test_of_a_message_that_came_twice_the_first_time_is_the_target(tmp_path: Path) -> None:
    network = Network(tmp_path)
    network.travel([0, 1, 3], at_s=1.0, name="first")
    network.travel([0, 2, 3], at_s=5.0, name="resend")

    recording = network.recording()

    assert recording.oracle.path == ((1, 3),)
    assert recording.targets.tolist() == [1]


def test_cover_is_no_target_and_its_kind_is_told_to_nobody_but_the_oracle(tmp_path: Path) -> None:
    network = Network(tmp_path)
    network.travel([0, 1, 3], at_s=1.0, name="cover", kind=DROP)
    network.travel([2, 1, 3], at_s=1.5, name="real")

    recording = network.recording()

    assert recording.packets is not None
    assert recording.packets.kind.tolist() == [1, 0]
    assert recording.packets.origin.tolist() == [0, 2]
    assert recording.oracle.origin.tolist() == [2]


def test_fragments_of_one_model_have_one_number(tmp_path: Path) -> None:
    network = Network(tmp_path)
    network.travel([0, 1, 3], at_s=1.0, name="a", message=MessageId(b"a" * 16))
    network.travel([0, 2, 3], at_s=1.1, name="b", message=MessageId(b"b" * 16))
    network.travel([1, 2, 3], at_s=1.2, name="c", message=MessageId(b"c" * 16))

    recording = network.recording()

    assert recording.oracle.origin.tolist() == [0, 0, 1]
    assert recording.groups is not None
    assert recording.groups.tolist() == [0, 0, 1]


def test_a_relay_that_died_leaves_a_gap_and_no_wrong_sender(tmp_path: Path) -> None:
    network = Network(tmp_path)
    network.travel([0, 1, 2, 3], at_s=1.0, name="one")
    network.merged()
    (tmp_path / "node-0001.sealed").unlink()

    recording = merge(tmp_path, NAMES, PUBLIC).recording

    assert recording.targets.tolist() == []
    assert recording.packets is not None
    assert recording.packets.last.tolist() == [0]


def test_a_record_cut_off_is_left_out(tmp_path: Path) -> None:
    network = Network(tmp_path)
    network.cross(0, 1, b"p", left_s=1.0)
    network.merged()
    log = tmp_path / "node-0001.links"
    log.write_bytes(log.read_bytes()[:-1])

    assert np.isnan(merge(tmp_path, NAMES, PUBLIC).recording.crossings.arrived_at_s).all()


def test_when_one_log_is_full_the_trace_ends_for_all(tmp_path: Path) -> None:
    network = Network(tmp_path, most=2)
    for second in range(6):
        network.cross(0, 1, b"p%d" % second, left_s=float(second))
        network.cross(2, 3, b"q%d" % second, left_s=float(second) + 0.5)

    merged = network.merged(full_at=4)

    # Node 0 has taken down four departures, the last at three seconds; what comes then or later is in no log for sure.
    assert merged.cut_at_s == 3.0
    assert merged.recording.crossings.left_at_s.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]


def test_the_logs_of_another_run_are_refused(tmp_path: Path) -> None:
    network = Network(tmp_path)
    network.cross(0, 1, b"p", left_s=1.0)
    network.merged()

    with pytest.raises(RunError, match="none of this run"):
        merge(tmp_path, NAMES[:1], PUBLIC)


def test_nothing_taken_down_is_an_empty_recording(tmp_path: Path) -> None:
    assert len(merge(tmp_path, NAMES, PUBLIC).recording.crossings) == 0


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.permutations(range(NODES)), st.integers(2, NODES), st.floats(0.0, 50.0), st.booleans()),
        max_size=20,
    )
)
def test_whatever_travels_every_target_leads_to_its_sender_over_its_path(
    tmp_path_factory: pytest.TempPathFactory, journeys: list[tuple[list[int], int, float, bool]]
) -> None:
    network = Network(tmp_path_factory.mktemp("logs"))
    sent = {}
    for number, (order, length, at_s, is_message) in enumerate(journeys):
        message = MessageId(number.to_bytes(16))
        path = list(order[:length])
        network.travel(path, at_s=at_s, name=str(number), kind=MESSAGE if is_message else DROP, message=message)
        if is_message:
            sent[number] = path

    recording = network.recording()

    told = sorted((origin, *path) for origin, path in zip(recording.oracle.origin, recording.oracle.path, strict=True))
    assert told == sorted(tuple(path) for path in sent.values())
    assert len(recording.crossings) == sum(length - 1 for _, length, _, _ in journeys)


def test_a_scenario_that_asks_for_no_trace_gets_no_folder(tmp_path: Path) -> None:
    assert begin_trace(preset("demo"), tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_what_a_former_part_of_the_run_left_is_taken_away(tmp_path: Path) -> None:
    (tmp_path / "observed.parquet").write_bytes(b"old")

    folder = begin_trace(preset("demo", ["monitoring.trace=true"]), tmp_path)

    assert folder is not None
    assert [path.name for path in tmp_path.iterdir()] == ["trace"]
    assert folder.path.stat().st_mode & 0o077 == 0


def test_without_pyarrow_a_traced_run_is_refused_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise ConfigError(key="monitoring.trace", got="no pyarrow", takes="the extra")

    monkeypatch.setattr(traces, "arrow", missing)

    with pytest.raises(ConfigError, match="no pyarrow"):
        create_run(preset("demo", ["monitoring.trace=true"]), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_nodes_fall_in_an_order_of_the_seed() -> None:
    one, same, other = (falling_order(preset("demo", [f"run.seed={seed}"])) for seed in (1, 1, 2))

    assert one == same != other
    assert sorted(one) == list(range(len(one)))


@pytest.mark.parametrize(("name", "route"), [("direct", "direct"), ("strong", "overlay"), ("paper", "walk")])
def test_what_is_public_of_a_preset(name: str, route: str) -> None:
    scenario = preset(name)

    public = public_settings(scenario)

    assert (public.route, public.path_length) == (route, scenario.mixnet.path_length)
    assert len(public.destinations) == scenario.topology.nodes


def test_a_full_disk_ends_the_log_and_not_the_node(tmp_path: Path) -> None:
    folder = TraceFolder(path=tmp_path, most=1_000_000)
    (tmp_path / "world.links").symlink_to("/dev/full")

    opened = folder.open()
    log = NodeLog(NAMES[0], opened)
    for second in range(10_000):
        log.left(float(second), NAMES[1], b"p", size_bytes=SIZE)
    opened.close()

    assert opened.problem == "No space left on device"
