"""What a node's mix process and its learner worker say to each other, and where the vectors lie.

A message is a kind, a round number, a slot and a JSON object:

    kind (1) | round (4) | slot (1) | JSON, UTF-8

Model states do not travel in messages. They lie in one block of shared memory with two slots. Nothing is pickled.
The block has no name: its descriptor travels over the same socket, so nothing is left behind however the two end.
"""

import json
import mmap
import os
import socket
import struct
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from multiprocessing.connection import Connection
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.node.learner import State

__all__ = ["SLOTS", "Array", "Kind", "Layout", "Message", "Slots", "receive_descriptor", "send_descriptor"]

SLOTS: Final = 2
_HEAD: Final = struct.Struct(">BIB")
_ALIGNMENT: Final = 64  # a cache line, which also suits every vector instruction


class Kind(IntEnum):
    """What a message is about. Requests go to the worker, replies come back, one for each request."""

    BUILD = 0  # request, the first: `factory` and `settings` of the learner; READY or FAILED answers it
    ATTACH = 1  # request: the shared block's descriptor follows; write your state into the slot
    LOAD = 2  # request: take the state in the slot
    TRAIN = 3  # request: train one round, then write your state into the slot
    EVALUATE = 4  # request
    READY = 5  # reply: built, and this is the layout of the state
    DONE = 6  # reply: metrics
    FAILED = 7  # reply: `error` and `message`


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One request or reply."""

    kind: Kind
    round_number: int = 0
    slot: int = 0
    body: Mapping[str, Any] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return its bytes."""
        return _HEAD.pack(self.kind, self.round_number, self.slot) + json.dumps(self.body).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Message":
        """Parse it. Both ends are ours, so bytes that do not parse are our mistake."""
        try:
            kind, round_number, slot = _HEAD.unpack_from(data)
            body = json.loads(data[_HEAD.size :])
            return cls(kind=Kind(kind), round_number=round_number, slot=slot, body=body)
        except (struct.error, ValueError) as error:
            raise LocalProtocolError(f"a learner worker's message does not parse: {error}") from error


@dataclass(frozen=True, slots=True)
class Array:
    """One layer: where it lies in a slot, and as what."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    start: int


class Layout:
    """The layers of a state, one after another."""

    __slots__ = ("arrays", "size_bytes")

    def __init__(self, layers: Sequence[tuple[str, Sequence[int], str]]) -> None:
        arrays = []
        start = 0
        for name, shape, dtype in layers:
            arrays.append(Array(name, tuple(shape), dtype, start))
            size_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
            start += -(-size_bytes // _ALIGNMENT) * _ALIGNMENT
        self.arrays = tuple(arrays)
        self.size_bytes = start

    @classmethod
    def of(cls, state: State) -> "Layout":
        """Return the layout of a state."""
        return cls([(name, array.shape, array.dtype.str) for name, array in state.items()])

    def to_json(self) -> list[list[Any]]:
        """Return what the constructor takes, as JSON has it."""
        return [[array.name, list(array.shape), array.dtype] for array in self.arrays]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.arrays == other.arrays

    __hash__ = None  # type: ignore[assignment]


class Slots:
    """Two states in one block of shared memory, the one behind `descriptor` or a new one. Close it on both sides."""

    def __init__(self, layout: Layout, *, descriptor: int | None = None) -> None:
        size_bytes = max(SLOTS * layout.size_bytes, 1)
        self._layout = layout
        self.descriptor = _make_block(size_bytes) if descriptor is None else descriptor
        self._memory = mmap.mmap(self.descriptor, size_bytes)

    def write(self, slot: int, state: State) -> None:
        """Copy a state into a slot."""
        for array, view in zip(self._layout.arrays, self._views(slot), strict=True):
            view[...] = state[array.name]

    def read(self, slot: int) -> dict[str, NDArray[Any]]:
        """Return a copy of the state in a slot."""
        views = self._views(slot)
        return {array.name: view.copy() for array, view in zip(self._layout.arrays, views, strict=True)}

    def close(self) -> None:
        """Let go of the memory."""
        self._memory.close()
        os.close(self.descriptor)

    def _views(self, slot: int) -> list[NDArray[Any]]:
        base = slot * self._layout.size_bytes
        return [np.ndarray(array.shape, array.dtype, self._memory, base + array.start) for array in self._layout.arrays]


def send_descriptor(connection: Connection, descriptor: int) -> None:
    """Hand an open file over to the process at the other end."""
    with socket.socket(fileno=os.dup(connection.fileno())) as end:
        socket.send_fds(end, [b"\0"], [descriptor])


def receive_descriptor(connection: Connection) -> int:
    """Take an open file that the process at the other end hands over now."""
    with socket.socket(fileno=os.dup(connection.fileno())) as end:
        data, descriptors, _, _ = socket.recv_fds(end, 1, 1)
    if not data:
        raise EOFError
    if len(descriptors) != 1:
        raise LocalProtocolError("a message that hands over a file came without one")
    return descriptors[0]


def _make_block(size_bytes: int) -> int:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("learner-states")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size_bytes)
    return descriptor
