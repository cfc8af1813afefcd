"""The learning of a virtual world: the models of all nodes, a pool that works on them, and how long that takes there.

A round of training takes the seconds that the scenario states, on every node, and an evaluation a third of them: a
forward pass without its backward pass. Where the scenario states none, both take the CPU time that they were measured
to take on this machine; whoever wants to repeat a run to the last bit states them.

Where the seconds are stated, nobody waits for an evaluation: the node is told that it is over, and its figures come
when there was time to compute them, mostly during the next exchange. `take_evaluations` hands them out.

Invariant: a node's model changes only when its training is done, or when it adopts another; each evaluation that was
asked for is handed out once.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from unlinkabledfl.experiment.backends.learner_pool import LearnerPool, Pending
from unlinkabledfl.node.learner import Metrics, State
from unlinkabledfl.simulation.learners import Outcome

__all__ = ["Evaluation", "VirtualLearning"]

EVALUATION_SHARE: Final = 1 / 3
_LEAST_SHARE: Final = 0.5
_EVALUATIONS_PER_NODE: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What an evaluation found that nobody waited for."""

    node: int
    round_number: int
    metrics: Metrics


class VirtualLearning:
    """`simulation.Learning` over a pool. `models` are what the nodes begin with; `note` is told of what fails."""

    def __init__(
        self,
        pool: LearnerPool,
        *,
        models: Mapping[int, State],
        training_time_s: float,
        note: Callable[[int, str], None],
    ) -> None:
        self.models = dict(models)
        self._pool = pool
        self._training_time_s = training_time_s
        self._note = note
        self._cpu_s: defaultdict[int, float] = defaultdict(float)
        self._shortest_s: dict[bool, float] = {}
        self._evaluations: deque[tuple[int, int, Pending]] = deque()

    def train(self, *, node: int, round_number: int) -> "_Work":
        """Have the pool train the node's model."""
        pending = self._pool.train(node=node, round_number=round_number, state=self.models[node])
        return self._work(pending, node=node, is_training=True)

    def adopt(self, *, node: int, round_number: int, state: State, evaluate: bool) -> "_Work | None":
        """Replace the node's model, and have the pool evaluate it if that is asked for."""
        self.models[node] = state
        if not evaluate:
            return None
        pending = self._pool.evaluate(node=node, state=state)
        if not self._training_time_s:
            return self._work(pending, node=node, is_training=False)
        self._evaluations.append((node, round_number, pending))
        return _Work(_Nothing(), lambda _: None, duration_s=EVALUATION_SHARE * self._training_time_s, least_s=0.0)

    def take_evaluations(self, *, wait: bool = False) -> Iterator[Evaluation]:
        """Hand out what has been evaluated since the last call; all of it with `wait`, or if too much is open."""
        for _ in range(len(self._evaluations)):
            node, round_number, pending = self._evaluations.popleft()
            # Each holds a model until it is done.
            is_too_much = len(self._evaluations) >= _EVALUATIONS_PER_NODE * len(self.models)
            if wait or is_too_much or pending.is_done():
                outcome = pending.outcome()
                self._cpu_s[node] += outcome.cpu_s
                if outcome.failure is not None:
                    self._note(node, f"evaluation failed: {outcome.failure}")
                yield Evaluation(node=node, round_number=round_number, metrics=outcome.metrics)
            else:
                self._evaluations.append((node, round_number, pending))

    def take_cpu_s(self, node: int) -> float:
        """Return the CPU seconds of the node's work that has ended since the last call."""
        return self._cpu_s.pop(node, 0.0)

    def _work(self, pending: Pending, *, node: int, is_training: bool) -> "_Work":
        stated_s = self._training_time_s * (1.0 if is_training else EVALUATION_SHARE)
        least_s = _LEAST_SHARE * self._shortest_s.get(is_training, 0.0)

        def ended(outcome: Outcome) -> None:
            self._cpu_s[node] += outcome.cpu_s
            shortest_s = self._shortest_s.get(is_training, outcome.cpu_s)
            self._shortest_s[is_training] = min(shortest_s, outcome.cpu_s)
            if outcome.failure is not None:
                self._note(node, f"training failed: {outcome.failure}")
            if outcome.state is not None:
                self.models[node] = outcome.state

        return _Work(pending, ended, duration_s=stated_s or None, least_s=least_s)


class _Nothing:
    """What there is to wait for when nobody waits."""

    def is_done(self) -> bool:
        return True

    def outcome(self) -> Outcome:
        return Outcome(metrics={})

    def abandon(self) -> None:
        """The figures of a node that has crashed since are still those of its model."""


class _Work:
    """A request to the pool, with its length in the virtual world."""

    __slots__ = ("_ended", "_outcome", "_pending", "duration_s", "least_s")

    def __init__(
        self, pending: Pending, ended: Callable[[Outcome], None], *, duration_s: float | None, least_s: float
    ) -> None:
        self.duration_s = duration_s
        self.least_s = least_s
        self._pending = pending
        self._ended = ended
        self._outcome: Outcome | None = None

    def outcome(self) -> Outcome:
        if self._outcome is None:
            self._outcome = self._pending.outcome()
            self._ended(self._outcome)
        return self._outcome

    def abandon(self) -> None:
        self._pending.abandon()
