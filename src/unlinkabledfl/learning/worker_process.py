"""The learner worker's own side: build a learner, then answer one request at a time until the socket closes.

An exception of the learner becomes a FAILED reply and the process lives on; whatever kills the process is seen by the
other side as a closed socket.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any, assert_never, cast

from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.learning.worker_protocol import Kind, Layout, Message, Slots, receive_descriptor
from unlinkabledfl.node.learner import Learner

__all__ = ["LearnerFactory", "find_factory", "give_back_memory", "run"]

LearnerFactory = Callable[[Mapping[str, Any]], Learner]
"""Builds a learner from settings that are JSON: a model's name, a dataset's path, a partition's indices."""


def find_factory(name: str) -> LearnerFactory:
    """Return the function that `package.module:function` names."""
    module, _, function = name.partition(":")
    return cast("LearnerFactory", getattr(import_module(module), function))


def run(connection: Connection, niceness: int) -> None:
    """Serve until the other side closes the socket. This is the main function of the process."""
    # Ctrl-C reaches the whole process group; when to stop is for the other side to decide.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(niceness)
    try:
        _serve(connection)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _serve(connection: Connection) -> None:
    request = Message.from_bytes(connection.recv_bytes())
    try:
        learner = find_factory(request.body["factory"])(request.body["settings"])
        layout = Layout.of(learner.state())
    except Exception as error:  # noqa: BLE001 - whatever it is, the other side reports it
        connection.send_bytes(_failed(error))
        return
    connection.send_bytes(Message(kind=Kind.READY, body={"layout": layout.to_json()}).to_bytes())
    server = _Server(connection, learner, layout)
    try:
        while True:
            answer = server.answer(connection.recv_bytes())
            # Before the answer: whoever gets it may let the next learner of the host compute.
            give_back_memory()
            connection.send_bytes(answer)
    finally:
        server.close()


def give_back_memory() -> None:
    """Hand the pages of freed tensors back to the system: half of a learner's memory, while it waits for its peers."""
    with suppress(OSError, AttributeError):  # not every C library has it
        ctypes.CDLL(None).malloc_trim(0)


class _Server:
    def __init__(self, connection: Connection, learner: Learner, layout: Layout) -> None:
        self._connection = connection
        self._learner = learner
        self._layout = layout
        self._slots: Slots | None = None

    def answer(self, data: bytes) -> bytes:
        try:
            return Message(kind=Kind.DONE, body=self._do(Message.from_bytes(data))).to_bytes()
        except Exception as error:  # noqa: BLE001 - whatever it is, the other side reports it
            return _failed(error)

    def close(self) -> None:
        if self._slots is not None:
            self._slots.close()

    def _do(self, request: Message) -> dict[str, Any]:
        match request.kind:
            case Kind.ATTACH:
                self._slots = Slots(self._layout, descriptor=receive_descriptor(self._connection))
                self._write(request.slot)
                return {}
            case Kind.LOAD:
                self._learner.load(self._memory().read(request.slot))
                return {}
            case Kind.TRAIN:
                metrics = dict(self._learner.train(request.round_number))
                self._write(request.slot)
                return metrics
            case Kind.EVALUATE:
                return dict(self._learner.evaluate())
            case Kind.BUILD | Kind.READY | Kind.DONE | Kind.FAILED:
                raise LocalProtocolError(f"{request.kind.name} is no request")
            case _:
                assert_never(request.kind)

    def _write(self, slot: int) -> None:
        self._memory().write(slot, self._learner.state())

    def _memory(self) -> Slots:
        if self._slots is None:
            raise LocalProtocolError("the first request attaches the shared memory")
        return self._slots


def _failed(error: Exception) -> bytes:
    return Message(kind=Kind.FAILED, body={"error": type(error).__name__, "message": str(error)}).to_bytes()


if __name__ == "__main__":
    with Connection(int(sys.argv[1])) as _pipe:
        run(_pipe, niceness=int(sys.argv[2]))
