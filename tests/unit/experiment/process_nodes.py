"""Nodes without a network, which say what a node says; and a learner that only counts."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from unlinkabledfl.errors import LearnerError
from unlinkabledfl.experiment.backends.process import messages as say
from unlinkabledfl.experiment.backends.process.launcher_link import LauncherLink
from unlinkabledfl.experiment.backends.process.learner import ProcessLearner
from unlinkabledfl.node.learner import Metrics, State


class CountingLearner:
    """Its state is how often it was trained. It does in a round what its settings say."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._rounds = np.zeros(1, np.int64)

    def state(self) -> State:
        return {"rounds": self._rounds.copy()}

    def load(self, state: State) -> None:
        self._rounds = np.array(state["rounds"])

    def train(self, round_number: int) -> Metrics:
        self._rounds += 1
        if self._settings.get(f"round_{round_number}") == "hang":
            while True:
                signal.pause()
        return {"niceness": float(os.nice(0)), "process": float(os.getpid())}

    def evaluate(self) -> Metrics:
        return {"accuracy": 0.5}


def main(connection: socket.socket) -> int:
    """Run a node that is told in its configuration, a JSON object, what to do."""
    return asyncio.run(_run(connection))


async def _run(connection: socket.socket) -> int:
    launcher = LauncherLink(connection)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, launcher.stop)
    orders: dict[str, Any] = json.loads((await launcher.configured).config)
    if "fail" in orders:
        launcher.report(say.Failed(error="ConfigError", text=orders["fail"]))
        launcher.close()
        return 2
    learner = ProcessLearner(
        "tests.unit.experiment.process_nodes:CountingLearner",
        orders,
        start=launcher.start_worker,
        turn=launcher.turn,
    )
    async with asyncio.TaskGroup() as tasks:
        living = [
            tasks.create_task(_live(launcher, learner, orders)),
            tasks.create_task(_beat(launcher)),
        ]
        await launcher.stopping.wait()
        for task in living:
            task.cancel()
    learner.close()
    launcher.report(say.Stopped(at_s=launcher.at_s, counters={"rounds": orders["rounds"]}))
    launcher.close()
    return 0


async def _live(launcher: LauncherLink, learner: ProcessLearner, orders: Mapping[str, Any]) -> None:
    await learner.open()
    addresses = await launcher.introduce(f"nowhere:{orders['index']}")
    launcher.report(say.Ready(links=len(addresses) - 1, missing=()))
    await launcher.begin()
    for round_number in range(1, orders["rounds"] + 1):
        await _do(orders.get(f"node_{round_number}"), launcher)
        await _one_round(launcher, learner, round_number)
    launcher.report(say.Finished(at_s=launcher.at_s, ending="done"))


async def _beat(launcher: LauncherLink) -> None:
    while True:
        launcher.report(say.GaugesReport(at_s=launcher.at_s, metrics={}))
        await asyncio.sleep(0.2)


async def _one_round(launcher: LauncherLink, learner: ProcessLearner, round_number: int) -> None:
    try:
        state, metrics = await learner.train(round_number)
    except LearnerError as error:
        state, metrics = await learner.state(), {}
        launcher.report(say.Note(at_s=launcher.at_s, kind="note", text=str(error)))
    evaluation = await learner.adopt(state, evaluate=True)
    measured = {
        **metrics,
        **evaluation,
        "trained": float(state["rounds"][0]),
        "torch": float("torch" in sys.modules),
        "learner": float(learner.process_id or 0),
    }
    launcher.report(say.RoundReport(at_s=launcher.at_s, round_number=round_number, metrics=measured))


async def _do(order: str | None, launcher: LauncherLink) -> None:
    match order:
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "crash":
            raise RuntimeError("a bug in a node")
        case "hang":
            while True:
                signal.pause()
        case "hear":
            launcher.report(say.PhaseReport(at_s=launcher.at_s, round_number=7, phase="exchange"))
            async with asyncio.timeout(30.0):
                if (heard := await launcher.trained.get()) != 7:
                    raise RuntimeError(f"heard of round {heard}")
        case "wait":
            await asyncio.Event().wait()
        case _:
            return
