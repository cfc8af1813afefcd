"""One of the processes that train the nodes of a virtual world, seen from inside: many nodes' data, a model at a time.

A request carries everything that it is about, so its answer does not depend on what the process did before, nor on how
many such processes there are. What crosses the pipe is a JSON object and, behind it, a model as its arrays' bytes:

    length of the JSON (4) | JSON, UTF-8 | arrays, in the order and at the places of the layout

An exception becomes a reply and the process lives on. It ends when its pipe closes.
"""

import json
import os
import signal
import struct
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any, Final, Protocol, cast

import numpy as np

from unlinkabledfl.errors import ConfigError, DatasetError, LearnerError, LocalProtocolError, UnlinkableError
from unlinkabledfl.learning.worker_protocol import Layout
from unlinkabledfl.node.learner import Metrics, State

__all__ = ["NodeLearners", "NodeLearnersFactory", "Parcel", "find_factory", "pack", "serve", "unpack"]

_LENGTH: Final = struct.Struct(">I")


class NodeLearners(Protocol):
    """The learners of many nodes. Equal calls give equal results, in whatever order they come."""

    def initial(self) -> State:
        """Return the model with which every node begins."""
        ...

    def train(self, node: int, *, round_number: int, state: State) -> tuple[State, Metrics]:
        """Train this model on the node's data for one round; LearnerError if that fails."""
        ...

    def evaluate(self, node: int, *, state: State) -> Metrics:
        """Measure this model."""
        ...


NodeLearnersFactory = Callable[[Mapping[str, Any]], NodeLearners]
"""Makes them from settings that are JSON."""


class Parcel:
    """What crosses the pipe: a JSON object, and with it a model, or none."""

    __slots__ = ("body", "model")

    def __init__(self, body: Mapping[str, Any], model: bytes = b"") -> None:
        self.body = body
        self.model = model

    def to_bytes(self) -> bytes:
        """Return its bytes."""
        head = json.dumps(self.body).encode()
        return b"".join((_LENGTH.pack(len(head)), head, self.model))

    @classmethod
    def from_bytes(cls, data: bytes) -> "Parcel":
        """Parse it. Both ends are ours, so bytes that do not parse are our mistake."""
        try:
            (length,) = _LENGTH.unpack_from(data)
            end = _LENGTH.size + length
            return cls(json.loads(data[_LENGTH.size : end]), data[end:])
        except (struct.error, ValueError) as error:
            raise LocalProtocolError(f"a learner process sent what does not parse: {error}") from error


def pack(layout: Layout, state: State) -> bytes:
    """Return the arrays of a state, one after another as the layout says."""
    data = bytearray(layout.size_bytes)
    for array in layout.arrays:
        np.ndarray(array.shape, array.dtype, data, array.start)[...] = state[array.name]
    return bytes(data)


def unpack(layout: Layout, data: bytes) -> State:
    """Return the state in these bytes. The arrays are read-only views of them."""
    return {array.name: np.ndarray(array.shape, array.dtype, data, array.start) for array in layout.arrays}


def find_factory(name: str) -> NodeLearnersFactory:
    """Return the function that `package.module:function` names."""
    module, _, function = name.partition(":")
    return cast("NodeLearnersFactory", getattr(import_module(module), function))


def serve(connection: Connection, factory: str, settings: str, niceness: int) -> None:
    """Build the learners, say which model they begin with, then answer. This is the main function of the process."""
    # Ctrl-C reaches the whole process group; when to stop is for the other side to decide.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(niceness)
    try:
        try:
            learners = find_factory(factory)(json.loads(settings))
            initial = learners.initial()
            layout = Layout.of(initial)
            ready = Parcel({"layout": layout.to_json()}, pack(layout, initial))
        except Exception as error:  # noqa: BLE001 - whatever it is, the other side reports it
            connection.send_bytes(Parcel(describe_error(error)).to_bytes())
            return
        connection.send_bytes(ready.to_bytes())
        while True:
            request = Parcel.from_bytes(connection.recv_bytes())
            connection.send_bytes(_answer(learners, layout, request).to_bytes())
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def describe_error(error: Exception) -> dict[str, Any]:
    """Return an exception as JSON, with what its attributes say where it was raised on purpose."""
    fields: dict[str, Any] = {}
    if isinstance(error, ConfigError):
        fields = {"key": error.key, "got": error.got, "takes": error.takes, "hint": error.hint}
        if not isinstance(error.got, str | int | float | bool | None):
            fields["got"] = repr(error.got)
    elif isinstance(error, DatasetError):
        fields = {"file": error.file, "problem": error.problem, "hint": error.hint}
    planned = isinstance(error, UnlinkableError)
    message = str(error) if planned else f"{type(error).__name__}: {error}"
    return {"error": type(error).__name__, "fields": fields, "message": message}


def _answer(learners: NodeLearners, layout: Layout, request: Parcel) -> Parcel:
    body = request.body
    state = unpack(layout, request.model)
    started_s = time.process_time()
    try:
        if body["do"] == "train":
            trained, metrics = learners.train(body["node"], round_number=body["round"], state=state)
            model = pack(layout, trained)
        else:
            metrics, model = learners.evaluate(body["node"], state=state), b""
    except LearnerError as error:
        return Parcel({"failure": str(error), "cpu_s": time.process_time() - started_s})
    except Exception as error:  # noqa: BLE001 - whatever it is, the other side reports it
        return Parcel(describe_error(error))
    return Parcel({"metrics": dict(metrics), "cpu_s": time.process_time() - started_s}, model)
