"""A learner of which the mix process knows no more than a socket, and what its end means for the node."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection

import pytest

from unlinkabledfl.errors import LearnerError
from unlinkabledfl.experiment.backends.process.learner import HandedWorker, ProcessLearner
from unlinkabledfl.learning.worker_protocol import Kind, Message


@asynccontextmanager
async def turn() -> AsyncIterator[None]:
    yield


def test_a_learner_that_cannot_be_built_says_why_once_and_can_still_be_given_up() -> None:
    told: list[str] = []
    ours, theirs = socket.socketpair()
    worker = Connection(theirs.detach())
    refusal = Message(kind=Kind.FAILED, body={"error": "ConfigError", "message": "there is no such model"})
    worker.send_bytes(refusal.to_bytes())

    async def run() -> None:
        learner = ProcessLearner(
            "some:factory", {}, start=lambda: HandedWorker(1, ours.detach()), turn=turn, on_failure=told.append
        )
        try:
            await learner.open()
        finally:
            learner.close()

    with worker, pytest.raises(LearnerError, match="could not be built: ConfigError: there is no such model"):
        asyncio.run(run())

    # Whoever asked for it tells; a note beside that would say the same again.
    assert told == []
