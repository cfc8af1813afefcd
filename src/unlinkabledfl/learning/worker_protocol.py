"""What a node's mix process and its learner worker say to each other, and where the vectors lie.

A message is a kind, a round number, a slot and a JSON object:

    kind (1) | round (4) | slot (1) | JSON, UTF-8

Model states do not travel in messages. They lie in one block of shared memory with two slots. Nothing is pickled.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from multiprocessing.shared_memory import SharedMemory
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from unlinkabledfl.errors import LocalProtocolError
from unlinkabledfl.node.learner import State

__all__ = ["SLOTS", "Array", "Kind", "Layout", "Message", "Slots"]

SLOTS: Final = 2
_HEAD: Final = struct.Struct(">BIB")
_ALIGNMENT: Final = 64  # a cache line, which also suits every vector instruction


class Kind(IntEnum):
    """What a message is about. Requests go to the worker, replies come back, one for each request."""

    ATTACH = 1  # request: the shared block is called so; write your state into the slot
    LOAD = 2  # request: take the state in the slot
    TRAIN = 3  # request: train one round, then write your state into the slot
    EVALUATE = 4  # request
    READY = 5  # reply, once, unasked: built, and this is the layout of the state
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
    """Two states in one block of shared memory. Close it on both sides; whoever created it removes it."""

    def __init__(self, layout: Layout, *, name: str | None = None) -> None:
        size_bytes = max(SLOTS * layout.size_bytes, 1)
        self._layout = layout
        self._creator = name is None
        self._memory = SharedMemory(name, create=self._creator, size=size_bytes)

    @property
    def name(self) -> str:
        """How the other side finds it."""
        return self._memory.name

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
        if self._creator:
            self._memory.unlink()

    def _views(self, slot: int) -> list[NDArray[Any]]:
        base = slot * self._layout.size_bytes
        return [
            np.ndarray(array.shape, array.dtype, self._memory.buf, base + array.start) for array in self._layout.arrays
        ]
