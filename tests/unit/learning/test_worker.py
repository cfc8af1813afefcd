import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.unit.learning.samples import lenet_learner
from unlinkabledfl.errors import ConfigError, LearnerError, LocalProtocolError
from unlinkabledfl.learning.worker import LearnerWorker
from unlinkabledfl.learning.worker_protocol import Kind, Layout, Message, Slots
from unlinkabledfl.learning.worker_start import StartWorker, fork_worker, spawn_worker

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unlinkabledfl.node.learner import Learner

SAMPLES = "tests.unit.learning.samples"


def fragile(
    fault: str, *, restarts: int = 3, limit_s: float | None = None, start: StartWorker | None = None
) -> LearnerWorker:
    return LearnerWorker(f"{SAMPLES}:FragileLearner", {"fault": fault}, restarts=restarts, limit_s=limit_s, start=start)


def test_a_worker_trains_exactly_as_the_same_learner_does_here() -> None:
    here: Learner = lenet_learner(seed=7)
    with LearnerWorker(f"{SAMPLES}:from_settings", {"seed": 7}) as worker:
        there: Learner = worker
        for round_number in (1, 2):
            assert there.train(round_number) == pytest.approx(here.train(round_number))
        assert there.evaluate() == pytest.approx(here.evaluate())
        state = there.state()

        there.load({name: np.zeros_like(array) for name, array in state.items()})

        assert not any(array.any() for array in there.state().values())
    assert all(np.allclose(state[name], array, atol=1e-6) for name, array in here.state().items())


@pytest.mark.parametrize("start", [fork_worker, spawn_worker])
def test_a_worker_has_a_lower_priority_and_another_process(start: StartWorker) -> None:
    with fragile("nothing", start=start) as worker:
        metrics = worker.evaluate()

    assert metrics["niceness"] == min(os.nice(0) + 10, 19)
    assert metrics["process"] != os.getpid()


def test_an_exception_in_training_is_told_and_the_state_is_the_one_before() -> None:
    with fragile("raise") as worker:
        worker.train(1)
        process_id = worker.process_id

        with pytest.raises(LearnerError, match="training round 2: RuntimeError: not enough memory"):
            worker.train(2)

        assert worker.process_id == process_id
        assert worker.train(3) == {"rounds": 2.0}


@pytest.mark.parametrize("start", [fork_worker, spawn_worker])
@pytest.mark.parametrize(("fault", "said"), [("exit", "exit code 9"), ("kill", "SIGKILL")])
def test_a_worker_that_dies_is_told_of_and_started_again_with_the_last_state(
    fault: str, said: str, start: StartWorker
) -> None:
    with fragile(fault, start=start) as worker:
        worker.train(1)
        process_id = worker.process_id

        with pytest.raises(LearnerError, match=f"{said} while training round 2; a new one has taken over"):
            worker.train(2)

        assert worker.process_id != process_id
        assert worker.state()["rounds"].tolist() == [1]
        assert worker.train(3) == {"rounds": 2.0}


def test_a_worker_that_hangs_is_replaced_after_its_limit() -> None:
    with fragile("hang", limit_s=20.0) as worker:
        worker.train(1)
        # The start may take its time, and the test need not.
        worker._limit_s, worker._restarts_left = 0.2, 0  # noqa: SLF001

        with pytest.raises(LearnerError, match=r"gave no reply in 0\.2 s while training round 2"):
            worker.train(2)


def test_a_worker_that_keeps_dying_is_given_up() -> None:
    with fragile("kill", restarts=1) as worker:
        for _ in range(2):
            with pytest.raises(LearnerError):
                worker.train(2)

        with pytest.raises(LearnerError, match="not running"):
            worker.train(3)
        assert worker.state()["rounds"].tolist() == [0]


def test_a_worker_killed_between_two_calls_is_replaced_at_the_next() -> None:
    with fragile("nothing") as worker:
        worker.train(1)
        os.kill(worker.process_id or 0, signal.SIGKILL)

        with pytest.raises(LearnerError, match="SIGKILL"):
            worker.train(2)

        assert worker.train(2) == {"rounds": 2.0}


def test_a_learner_that_cannot_be_built_says_why() -> None:
    with (
        pytest.raises(LearnerError, match="FileNotFoundError: no dataset at /nowhere"),
        LearnerWorker(f"{SAMPLES}:broken", {"path": "/nowhere"}),
    ):
        pass


def test_a_state_of_another_model_does_not_reach_the_worker() -> None:
    with fragile("nothing") as worker:
        with pytest.raises(ConfigError) as caught:
            worker.load({"rounds": np.zeros(2, np.int64)})

        assert caught.value.key == "model.rounds"


def test_a_worker_needs_a_factory_it_can_find() -> None:
    with pytest.raises(ConfigError):
        LearnerWorker("samples", {})


def test_messages_survive_the_trip_and_broken_ones_are_our_mistake() -> None:
    message = Message(kind=Kind.TRAIN, round_number=7, slot=1, body={"loss": 0.5})

    assert Message.from_bytes(message.to_bytes()) == message
    for data in (b"", b"\x00" * 20, message.to_bytes()[:-1], b"\x63" + message.to_bytes()[1:]):
        with pytest.raises(LocalProtocolError):
            Message.from_bytes(data)


def test_two_slots_hold_two_states_of_any_type() -> None:
    states: list[dict[str, NDArray[Any]]] = [
        {"weight": np.full((2, 3), slot, np.float32), "count": np.array(slot, np.int64), "none": np.zeros((0, 4))}
        for slot in (1, 2)
    ]
    slots = Slots(Layout.of(states[0]))
    try:
        for slot, state in enumerate(states):
            slots.write(slot, state)
        found = [slots.read(slot) for slot in range(2)]
    finally:
        slots.close()

    for state, copy in zip(states, found, strict=True):
        assert copy.keys() == state.keys()
        assert all(
            np.array_equal(copy[name], array) and copy[name].dtype == array.dtype for name, array in state.items()
        )


def test_the_side_that_mixes_packets_does_not_load_pytorch() -> None:
    code = "import sys, unlinkabledfl.learning.worker; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
