from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from unlinkabledfl.experiment.backends.process.supervisor import (
    EndNode,
    NodeLost,
    RunOver,
    SendBegin,
    SendContacts,
    SendLost,
    SendStop,
    Supervisor,
    SupervisorEvent,
    SupervisorSettings,
)
from unlinkabledfl.experiment.records import Status

SETTINGS = SupervisorSettings(start_timeout_s=100.0, stop_timeout_s=5.0, silence_timeout_s=60.0)


def drain(supervisor: Supervisor) -> list[SupervisorEvent]:
    events = []
    while (event := supervisor.next_event()) is not None:
        events.append(event)
    return events


def started(nodes: int = 3, joins: dict[int, int] | None = None) -> Supervisor:
    supervisor = Supervisor(nodes=nodes, settings=SETTINGS, joins=joins)
    supervisor.start(now_s=0.0)
    return supervisor


def linking(nodes: int = 3, joins: dict[int, int] | None = None) -> Supervisor:
    supervisor = started(nodes, joins)
    for index in range(nodes):
        supervisor.node_bound(index, address=f"host:{index}", now_s=1.0)
    return supervisor


def running(nodes: int = 3, joins: dict[int, int] | None = None) -> Supervisor:
    supervisor = linking(nodes, joins)
    for index in range(nodes):
        if index not in (joins or {}):
            supervisor.node_ready(index, now_s=2.0)
    drain(supervisor)
    return supervisor


def test_a_run_goes_from_bound_to_linked_to_begun_to_its_end() -> None:
    supervisor = linking(2)
    addresses = {0: "host:0", 1: "host:1"}
    assert drain(supervisor) == [SendContacts(nodes=(0, 1), addresses=addresses)]

    supervisor.node_ready(1, now_s=2.0)
    assert drain(supervisor) == []
    supervisor.node_ready(0, now_s=3.0)
    assert drain(supervisor) == [SendBegin(nodes=(0, 1))]

    supervisor.node_finished(0, leaves=False, now_s=50.0)
    assert drain(supervisor) == []
    supervisor.node_finished(1, leaves=False, now_s=51.0)
    assert drain(supervisor) == [SendStop(nodes=(0, 1))]

    supervisor.node_ended(0, how="ended", now_s=51.5)
    supervisor.node_ended(1, how="ended", now_s=51.6)
    assert drain(supervisor) == [RunOver(status=Status.FINISHED)]
    assert supervisor.next_timer_s() is None


def test_nobody_is_introduced_before_the_last_has_its_port() -> None:
    supervisor = started(3)
    supervisor.node_bound(0, address="host:0", now_s=1.0)
    supervisor.node_bound(2, address="host:2", now_s=1.0)

    assert drain(supervisor) == []


def test_a_node_that_dies_before_it_is_bound_is_left_out() -> None:
    supervisor = started(3)
    supervisor.node_bound(0, address="host:0", now_s=1.0)
    supervisor.node_bound(2, address="host:2", now_s=1.0)
    supervisor.node_failed(1, reason="process.base_port: taken", now_s=1.0)
    supervisor.node_ended(1, how="ended with exit code 2", now_s=1.1)

    assert drain(supervisor) == [
        NodeLost(node=1, reason="process.base_port: taken (ended with exit code 2)"),
        SendContacts(nodes=(0, 2), addresses={0: "host:0", 2: "host:2"}),
    ]


def test_a_node_that_is_not_up_in_time_is_ended_and_the_others_go_on() -> None:
    supervisor = started(3)
    supervisor.node_bound(0, address="host:0", now_s=1.0)
    supervisor.node_bound(1, address="host:1", now_s=1.0)

    assert supervisor.next_timer_s() == 100.0
    supervisor.handle_timer(now_s=100.0)
    assert drain(supervisor) == [
        EndNode(node=2),
        SendContacts(nodes=(0, 1), addresses={0: "host:0", 1: "host:1"}),
    ]
    supervisor.node_ended(2, how="was killed by SIGKILL", now_s=100.1)
    assert drain(supervisor) == [NodeLost(node=2, reason="was not up after 100 s (was killed by SIGKILL)")]


def test_nobody_waits_for_a_link_to_a_node_that_died_before_it_was_linked() -> None:
    supervisor = linking(4)
    supervisor.node_ready(0, now_s=2.0)
    drain(supervisor)

    supervisor.node_ended(3, how="was killed by SIGKILL", now_s=3.0)

    assert drain(supervisor) == [
        NodeLost(node=3, reason="was killed by SIGKILL"),
        SendLost(nodes=(1, 2), lost=3),
    ]


def test_those_who_are_linked_do_not_wait_for_ever_for_those_who_are_not() -> None:
    supervisor = linking(3)
    supervisor.node_ready(0, now_s=2.0)
    drain(supervisor)

    supervisor.handle_timer(now_s=100.0)

    assert drain(supervisor) == [SendBegin(nodes=(0, 1, 2))]


def test_a_node_that_dies_in_a_round_is_told_of_and_the_others_finish() -> None:
    supervisor = running(3)

    supervisor.node_ended(1, how="was killed by SIGKILL", now_s=10.0)
    assert drain(supervisor) == [NodeLost(node=1, reason="was killed by SIGKILL")]

    for index in (0, 2):
        supervisor.node_finished(index, leaves=False, now_s=20.0)
    assert drain(supervisor) == [SendStop(nodes=(0, 2))]


def test_the_run_fails_when_fewer_than_two_nodes_are_left() -> None:
    supervisor = running(3)
    supervisor.node_ended(1, how="was killed by SIGKILL", now_s=10.0)
    supervisor.node_ended(2, how="was killed by SIGKILL", now_s=10.0)
    supervisor.node_ended(0, how="ended", now_s=11.0)

    assert drain(supervisor)[2:] == [
        SendStop(nodes=(0,)),
        RunOver(
            status=Status.FAILED,
            reason="2 of 3 nodes have ended, and it takes 2 to go on;"
            " the last words were of node 2: was killed by SIGKILL",
        ),
    ]


def test_a_run_in_which_no_node_could_be_started_is_over_at_once() -> None:
    supervisor = Supervisor(nodes=2, settings=SETTINGS)
    for index in range(2):
        supervisor.node_ended(index, how="could not be started", now_s=0.0)
    supervisor.start(now_s=0.0)

    assert drain(supervisor)[-1] == RunOver(
        status=Status.FAILED,
        reason="2 of 2 nodes have ended, and it takes 2 to go on; the last words were of node 1: could not be started",
    )


def test_a_node_that_leaves_by_schedule_is_stopped_and_is_not_lost() -> None:
    supervisor = running(3)

    supervisor.node_finished(1, leaves=True, now_s=10.0)
    supervisor.node_ended(1, how="ended", now_s=11.0)

    assert drain(supervisor) == [SendStop(nodes=(1,))]


def test_a_node_that_joins_later_is_introduced_when_the_round_before_is_over() -> None:
    supervisor = linking(3, joins={2: 3})
    addresses = {0: "host:0", 1: "host:1", 2: "host:2"}
    assert drain(supervisor) == [SendContacts(nodes=(0, 1), addresses={0: "host:0", 1: "host:1"})]
    supervisor.node_ready(0, now_s=2.0)
    supervisor.node_ready(1, now_s=2.0)
    assert drain(supervisor) == [SendBegin(nodes=(0, 1))]

    supervisor.round_finished(0, round_number=1, now_s=5.0)
    assert drain(supervisor) == []
    supervisor.round_finished(1, round_number=2, now_s=9.0)
    assert drain(supervisor) == [SendContacts(nodes=(2,), addresses=addresses)]
    supervisor.node_ready(2, now_s=9.5)
    assert drain(supervisor) == [SendBegin(nodes=(2,))]

    for index in range(3):
        supervisor.node_finished(index, leaves=False, now_s=20.0)
    assert drain(supervisor) == [SendStop(nodes=(0, 1, 2))]


def test_a_node_that_says_nothing_for_long_is_ended() -> None:
    supervisor = running(3)
    for index in (0, 2):
        supervisor.node_said(index, now_s=50.0)

    assert supervisor.next_timer_s() == 62.0
    supervisor.handle_timer(now_s=62.0)

    assert drain(supervisor) == [EndNode(node=1)]
    assert supervisor.next_timer_s() == 110.0


def test_stopping_ends_those_who_do_not_listen() -> None:
    supervisor = running(3)

    supervisor.stop(status=Status.INTERRUPTED, reason="interrupted", now_s=10.0)
    supervisor.node_ended(1, how="ended", now_s=11.0)
    assert supervisor.next_timer_s() == 15.0
    supervisor.handle_timer(now_s=15.0)
    for index in (0, 2):
        supervisor.node_ended(index, how="was killed by SIGKILL", now_s=15.1)

    assert drain(supervisor) == [
        SendStop(nodes=(0, 1, 2)),
        EndNode(node=0),
        EndNode(node=2),
        RunOver(status=Status.INTERRUPTED, reason="interrupted"),
    ]


class AnyRun(RuleBasedStateMachine):
    """Nodes that report and die in any order, and time that passes."""

    NODES = 4

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.supervisor = Supervisor(nodes=self.NODES, settings=SETTINGS, joins={3: 2})
        self.ended: set[int] = set()
        self.lost: list[int] = []
        self.told: dict[type, list[int]] = {SendContacts: [], SendBegin: [], SendStop: []}
        self.over: list[RunOver] = []
        self.started = False

    @rule()
    @precondition(lambda self: not self.started)
    def start(self) -> None:
        self.started = True
        self.supervisor.start(now_s=self.now_s)
        self.follow()

    @rule(
        node=st.integers(0, 3), what=st.sampled_from(["bound", "ready", "said", "round", "finished", "left", "failed"])
    )
    def report(self, node: int, what: str) -> None:
        if node in self.ended:
            return
        now_s = self.now_s
        match what:
            case "bound":
                self.supervisor.node_bound(node, address=f"host:{node}", now_s=now_s)
            case "ready":
                self.supervisor.node_ready(node, now_s=now_s)
            case "said":
                self.supervisor.node_said(node, now_s=now_s)
            case "round":
                self.supervisor.round_finished(node, round_number=1, now_s=now_s)
            case "finished" | "left":
                self.supervisor.node_finished(node, leaves=what == "left", now_s=now_s)
            case _:
                self.supervisor.node_failed(node, reason="it says so", now_s=now_s)
        self.follow()

    @rule(node=st.integers(0, 3))
    def end(self, node: int) -> None:
        if node not in self.ended:
            self.ended.add(node)
            self.supervisor.node_ended(node, how="ended", now_s=self.now_s)
            self.follow()

    @rule()
    def stop(self) -> None:
        self.supervisor.stop(status=Status.INTERRUPTED, reason="asked to", now_s=self.now_s)
        self.follow()

    @rule(after_s=st.floats(0.0, 200.0))
    def wait(self, after_s: float) -> None:
        self.now_s += after_s
        due_s = self.supervisor.next_timer_s()
        if due_s is not None and due_s <= self.now_s:
            self.supervisor.handle_timer(now_s=self.now_s)
            self.follow()

    def follow(self) -> None:
        for event in drain(self.supervisor):
            match event:
                case SendContacts(nodes=nodes) | SendBegin(nodes=nodes) | SendStop(nodes=nodes):
                    self.told[type(event)] += nodes
                case NodeLost(node=node):
                    self.lost.append(node)
                case RunOver():
                    self.over.append(event)
                case EndNode(node=node):
                    assert node not in self.ended

    @invariant()
    def the_run_is_over_exactly_when_it_was_to_end_and_all_have_ended(self) -> None:
        assert len(self.over) <= 1
        if self.over:
            assert self.ended == set(range(self.NODES))
        if self.started and len(self.ended) == self.NODES:
            assert self.over

    @invariant()
    def a_node_is_told_each_thing_once_and_lost_once_and_only_after_its_end(self) -> None:
        for nodes in (*self.told.values(), self.lost):
            assert len(set(nodes)) == len(nodes)
        assert set(self.lost) <= self.ended
        assert set(self.told[SendBegin]) <= set(self.told[SendContacts])
        # Whoever was told to stop and then ended did as it was told; everybody else who ended was lost.
        assert self.ended <= set(self.lost) | set(self.told[SendStop])


TestAnyRun = AnyRun.TestCase
TestAnyRun.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
