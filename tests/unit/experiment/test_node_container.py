"""A node in a container, without the container: its side of the socket."""

import asyncio
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from unlinkabledfl.errors import LearnerError
from unlinkabledfl.experiment import node_container
from unlinkabledfl.experiment.backends.process import messages as say
from unlinkabledfl.experiment.backends.process.channel import Channel
from unlinkabledfl.experiment.backends.process.learner import ProcessLearner
from unlinkabledfl.learning.worker_start import spawn_worker

LEARNER = "tests.unit.experiment.process_nodes:CountingLearner"


def test_a_node_whose_configuration_is_none_says_so_and_ends(tmp_path: Path) -> None:
    heard: list[say.FromNode] = []

    async def lead() -> int:
        closed = asyncio.Event()
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(tmp_path / "control"))
            listener.listen()
            listener.setblocking(False)
            command = [sys.executable, "-m", node_container.__name__, str(tmp_path / "control")]
            node = await asyncio.create_subprocess_exec(*command)
            end, _ = await asyncio.get_running_loop().sock_accept(listener)
        channel = Channel(
            end, on_message=lambda body: heard.append(say.parse_from_node(body)), on_close=lambda _: closed.set()
        )
        channel.send(say.Configure(config="{}"))
        await closed.wait()
        return await node.wait()

    assert asyncio.run(lead()) == 2
    (failed,) = heard
    assert isinstance(failed, say.Failed)
    assert (failed.error, failed.text.partition(":")[0]) == ("ConfigError", "node.run_id")


def test_closing_in_the_middle_of_a_training_ends_the_process_at_once() -> None:
    @asynccontextmanager
    async def turn() -> AsyncIterator[None]:
        yield

    async def close_while_it_trains() -> float:
        learner = ProcessLearner(LEARNER, {"round_1": "hang"}, start=spawn_worker, turn=turn)
        await learner.open()
        async with asyncio.TaskGroup() as tasks:
            training = tasks.create_task(_fails(learner))
            await asyncio.sleep(0)
            began_s = time.monotonic()
            learner.close()
            await training
        return time.monotonic() - began_s

    assert asyncio.run(close_while_it_trains()) < 30.0


async def _fails(learner: ProcessLearner) -> None:
    with pytest.raises(LearnerError):
        await learner.train(1)
