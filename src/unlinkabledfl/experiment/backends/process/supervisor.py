"""Lead the nodes of one run from their start to their end, whatever becomes of each.

    starting --all bound-----------------------> SendContacts, linking
    starting --time is up, some are not bound--> EndNode, NodeLost, starting
    linking --all ready------------------------> SendBegin, running
    linking --time is up-----------------------> SendBegin, running
    running --a round before a join is over----> SendContacts, running
    running --a joiner is ready----------------> SendBegin, running
    running --a node leaves by schedule--------> SendStop, running
    running --a node says nothing for long-----> EndNode, running
    running --all have finished----------------> SendStop, stopping
    starting --a node ends---------------------> NodeLost, starting
    linking --a node ends----------------------> NodeLost, SendLost, linking
    running --a node ends----------------------> NodeLost, running
    starting --fewer than two are left---------> SendStop, stopping
    linking --fewer than two are left----------> SendStop, stopping
    running --fewer than two are left----------> SendStop, stopping
    running --told to stop---------------------> SendStop, stopping
    stopping --time is up----------------------> EndNode, stopping
    stopping --all have ended------------------> RunOver, over

A node that dies is not started again: its keys and its model are gone, and to its peers a newcomer under its name would
be a stranger. The others go on without it.

Invariant: every node ends once, by schedule, by request or as lost, and the run is over exactly when the last has
ended. Nothing waits for a node that has ended, and there is no stage without a limit in time but the rounds themselves,
which have their own.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.experiment.records import Status

__all__ = [
    "EndNode", "NodeLost", "RunOver", "SendBegin", "SendContacts", "SendLost", "SendStop", "Supervisor",
    "SupervisorEvent", "SupervisorSettings",
]  # fmt: skip

_LEAST_NODES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorSettings:
    """How long what may take."""

    start_timeout_s: float = 120.0
    """From the start until all are linked; those who are not bound then are given up, those not linked go on so."""
    stop_timeout_s: float = 5.0
    """From the request to stop until a node is ended by force; nodes allow themselves less."""
    silence_timeout_s: float = 180.0
    """A running node says something at least every few seconds. One that does not hangs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendContacts:
    """Tell these nodes where all listen that take part now, themselves included."""

    nodes: tuple[int, ...]
    addresses: Mapping[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SendLost:
    """Tell these nodes not to wait for a link to that one."""

    nodes: tuple[int, ...]
    lost: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SendBegin:
    """Tell these nodes to begin their first round."""

    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SendStop:
    """Tell these nodes to close and end."""

    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndNode:
    """End this node by force: it does not listen."""

    node: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLost:
    """This node ended when it should not have."""

    node: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOver:
    """All nodes have ended; how the run went."""

    status: Status
    reason: str = ""


SupervisorEvent: TypeAlias = SendContacts | SendLost | SendBegin | SendStop | EndNode | NodeLost | RunOver


class _Stage(IntEnum):
    """How far a node is; it only ever goes forward."""

    FORKED = 0
    BOUND = 1
    INTRODUCED = 2
    READY = 3
    RUNNING = 4
    FINISHED = 5
    STOPPING = 6
    ENDED = 7


class _Phase(IntEnum):
    STARTING = 0
    LINKING = 1
    RUNNING = 2
    STOPPING = 3
    OVER = 4


@dataclass(slots=True)
class _Node:
    first_round: int
    stage: _Stage = _Stage.FORKED
    address: str = ""
    failure: str = ""
    heard_at_s: float = 0.0
    doomed: bool = False  # to be ended by force: nobody waits for it any more

    @property
    def waits_to_join(self) -> bool:
        return self.first_round > 1 and self.stage is _Stage.BOUND


class Supervisor:
    """The state of a run. `joins` names the nodes that come with a later round than the first."""

    __slots__ = (
        "_events",
        "_last_words",
        "_nodes",
        "_phase",
        "_reason",
        "_settings",
        "_started",
        "_status",
        "_timer_s",
    )

    def __init__(self, *, nodes: int, settings: SupervisorSettings, joins: Mapping[int, int] | None = None) -> None:
        self._settings = settings
        self._nodes = [_Node(first_round=(joins or {}).get(index, 1)) for index in range(nodes)]
        self._phase = _Phase.STARTING
        self._started = False
        self._events: deque[SupervisorEvent] = deque()
        self._timer_s: float | None = None
        self._status = Status.FINISHED
        self._reason = ""
        self._last_words = ""

    @property
    def alive(self) -> tuple[int, ...]:
        """Who has not ended."""
        return self._where(lambda node: node.stage < _Stage.ENDED)

    @property
    def is_running(self) -> bool:
        """Whether rounds turn."""
        return self._phase is _Phase.RUNNING

    # -- inputs -------------------------------------------------------------------------------------------------

    def start(self, *, now_s: float) -> None:
        """All nodes have been forked, or reported as ended."""
        if self._started:
            raise LocalProtocolError("this run has been started already")
        self._started = True
        if self._phase is _Phase.STARTING:
            self._timer_s = now_s + self._settings.start_timeout_s
        self._check_enough(now_s)
        self._step(now_s)

    def node_bound(self, index: int, *, address: str, now_s: float) -> None:
        """A node listens at this address."""
        node = self._heard(index, now_s)
        if node.stage is _Stage.FORKED:
            node.stage = _Stage.BOUND
            node.address = address
        self._step(now_s)

    def node_ready(self, index: int, *, now_s: float) -> None:
        """A node is linked with all whom it can reach."""
        node = self._heard(index, now_s)
        if node.stage is _Stage.INTRODUCED:
            node.stage = _Stage.READY
        self._step(now_s)

    def node_said(self, index: int, *, now_s: float) -> None:
        """A node said anything else: it lives."""
        self._heard(index, now_s)

    def round_finished(self, index: int, *, round_number: int, now_s: float) -> None:
        """A node has finished a round: whoever joins with the next is due."""
        self._heard(index, now_s)
        if self._phase is _Phase.RUNNING:
            due = self._where(lambda node: node.waits_to_join and node.first_round <= round_number + 1)
            self._introduce(due, now_s)

    def node_finished(self, index: int, *, leaves: bool, now_s: float) -> None:
        """A node has finished its last round; it leaves, or goes on relaying."""
        node = self._heard(index, now_s)
        if node.stage is _Stage.RUNNING:
            node.stage = _Stage.FINISHED
            if leaves:
                self._stop((index,))
        self._step(now_s)

    def node_failed(self, index: int, *, reason: str, now_s: float) -> None:
        """A node said why it cannot go on. Its end follows."""
        self._heard(index, now_s).failure = reason

    def node_ended(self, index: int, *, how: str, now_s: float) -> None:
        """The process of a node has ended, or could not be started; `how` says it in words."""
        node = self._nodes[index]
        if node.stage is _Stage.ENDED:
            raise LocalProtocolError(f"node {index} has ended already")
        lost, was_introduced = node.stage is not _Stage.STOPPING, node.stage >= _Stage.INTRODUCED
        node.stage = _Stage.ENDED
        if lost:
            reason = f"{node.failure} ({how})" if node.failure else how
            self._events.append(NodeLost(node=index, reason=reason))
            self._last_words = f"node {index}: {reason}"
            if self._phase is _Phase.LINKING and was_introduced:
                waiting = self._where(lambda other: other.stage is _Stage.INTRODUCED)
                self._events.append(SendLost(nodes=waiting, lost=index))
            self._check_enough(now_s)
        self._step(now_s)

    def stop(self, *, status: Status, reason: str, now_s: float) -> None:
        """Stop all nodes now. The first reason counts."""
        if self._phase < _Phase.STOPPING:
            self._phase = _Phase.STOPPING
            self._status = status
            self._reason = reason
            self._stop(self._where(lambda node: node.stage < _Stage.STOPPING and not node.doomed))
            self._timer_s = now_s + self._settings.stop_timeout_s
        self._step(now_s)

    # -- time and events ----------------------------------------------------------------------------------------

    def next_timer_s(self) -> float | None:
        """When `handle_timer` is due."""
        if self._phase is not _Phase.RUNNING:
            return self._timer_s
        heard_at_s = [self._nodes[index].heard_at_s for index in self._watched()]
        return min(heard_at_s) + self._settings.silence_timeout_s if heard_at_s else None

    def handle_timer(self, *, now_s: float) -> None:
        """Something took too long."""
        if self._phase is _Phase.RUNNING:
            for index in self._watched():
                if now_s >= self._nodes[index].heard_at_s + self._settings.silence_timeout_s:
                    self._doom(index, f"said nothing for {self._settings.silence_timeout_s:g} s")
        elif self._timer_s is not None and now_s >= self._timer_s:
            self._timer_s = None
            if self._phase is _Phase.STARTING:
                for index in self._where(lambda node: node.stage is _Stage.FORKED):
                    self._doom(index, f"was not up after {self._settings.start_timeout_s:g} s")
            elif self._phase is _Phase.LINKING:
                self._begin_first_round(now_s)
            else:
                self._events.extend(EndNode(node=index) for index in self.alive)
        self._step(now_s)

    def next_event(self) -> SupervisorEvent | None:
        """The next thing to do."""
        return self._events.popleft() if self._events else None

    # -- stages -------------------------------------------------------------------------------------------------

    def _step(self, now_s: float) -> None:
        """Go on as far as what has been reported allows."""
        if self._phase is _Phase.STARTING and self._started and self._all_are(_Stage.BOUND):
            self._phase = _Phase.LINKING
            self._introduce(self._where(lambda node: node.first_round == 1 and node.stage is _Stage.BOUND), now_s)
        if self._phase is _Phase.LINKING and self._all_are(_Stage.READY):
            self._begin_first_round(now_s)
        if self._phase is _Phase.RUNNING:
            self._begin(self._where(lambda node: node.stage is _Stage.READY))
            if self._all_are(_Stage.FINISHED):
                self.stop(status=Status.FINISHED, reason="", now_s=now_s)
                return
        if self._phase is _Phase.STOPPING and not self.alive:
            self._phase = _Phase.OVER
            self._timer_s = None
            self._events.append(RunOver(status=self._status, reason=self._reason))

    def _begin_first_round(self, now_s: float) -> None:
        self._phase = _Phase.RUNNING
        self._timer_s = None
        for node in self._nodes:
            node.heard_at_s = now_s
        # Also those that are not linked yet: they begin as soon as they are.
        self._begin(self._where(lambda node: _Stage.INTRODUCED <= node.stage <= _Stage.READY))

    def _introduce(self, indices: tuple[int, ...], now_s: float) -> None:
        if not indices:
            return
        for index in indices:
            self._nodes[index].stage = _Stage.INTRODUCED
            self._nodes[index].heard_at_s = now_s
        there = self._where(lambda node: _Stage.INTRODUCED <= node.stage < _Stage.STOPPING)
        addresses = {index: self._nodes[index].address for index in there}
        self._events.append(SendContacts(nodes=indices, addresses=addresses))

    def _begin(self, indices: tuple[int, ...]) -> None:
        if indices:
            for index in indices:
                self._nodes[index].stage = _Stage.RUNNING
            self._events.append(SendBegin(nodes=indices))

    def _stop(self, indices: tuple[int, ...]) -> None:
        if indices:
            for index in indices:
                self._nodes[index].stage = _Stage.STOPPING
            self._events.append(SendStop(nodes=indices))

    def _doom(self, index: int, reason: str) -> None:
        node = self._nodes[index]
        node.failure = node.failure or reason
        node.doomed = True
        self._events.append(EndNode(node=index))

    def _check_enough(self, now_s: float) -> None:
        left = len(self.alive)
        if self._started and left < _LEAST_NODES:
            ended = f"{len(self._nodes) - left} of {len(self._nodes)} nodes have ended"
            reason = f"{ended}, and it takes {_LEAST_NODES} to go on; the last words were of {self._last_words}"
            self.stop(status=Status.FAILED, reason=reason, now_s=now_s)

    # -- who ----------------------------------------------------------------------------------------------------

    def _where(self, holds: Callable[[_Node], bool]) -> tuple[int, ...]:
        return tuple(index for index, node in enumerate(self._nodes) if holds(node))

    def _all_are(self, stage: _Stage) -> bool:
        """Whether all who are waited for have come at least so far."""
        counted = [node for node in self._nodes if not node.doomed]
        if stage > _Stage.BOUND:
            counted = [node for node in counted if not node.waits_to_join]
        return all(node.stage >= stage for node in counted)

    def _watched(self) -> tuple[int, ...]:
        return self._where(lambda node: _Stage.INTRODUCED <= node.stage < _Stage.ENDED and not node.doomed)

    def _heard(self, index: int, now_s: float) -> _Node:
        node = self._nodes[index]
        node.heard_at_s = now_s
        return node
