"""A model state, by name, to one flat vector and back.

    [ floating tensors, in the state's order ............ | normalization layers: weights, biases and statistics ]

| what | travels | comes back |
|---|---|---|
| floating tensors (16, 32, 64 bits) | as float32, averaged | in their own type; where unchanged, exactly as they were |
| tensors of a normalization layer | as float32, averaged, in ranges of their own | likewise |
| integers and booleans, as `num_batches_tracked` | not at all | those of the local state, exactly |

An integer of a state is a counter or a constant of its owner's own training: a mean of counters counts nothing, and
rounding one may break the model; so each node keeps its own.

Normalization layers stand apart because their values differ in size by orders of magnitude, and because a running
variance that a coarse quantizer moves to zero, or below, makes the model divide by nothing. They are quantized
relative to each value (`codecs`), which also keeps its sign. They are recognized by the names that PyTorch gives their
statistics; a caller with other names passes its own test.

Invariant: `unflatten(flatten(state), state)` is `state`, bit for bit.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.fragments.arrays import Vector

State = Mapping[str, npt.NDArray[np.generic]]
STATISTICS = ("running_mean", "running_var")
"""The last parts of the names of BatchNorm's statistics in PyTorch."""


@dataclass(frozen=True, slots=True)
class _Tensor:
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    start: int
    """Where its values begin in the vector; -1: it does not travel."""

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def stop(self) -> int:
        return self.start + self.size


class StateLayout:
    """Names, shapes and types of a model state, and where each tensor lies in the vector."""

    __slots__ = ("_tensors", "parameters", "statistics")

    def __init__(self, state: State, *, is_statistics: Callable[[str], bool] | None = None) -> None:
        apart = _normalization(state) if is_statistics is None else {name for name in state if is_statistics(name)}
        places: dict[str, int] = {}
        end = 0
        for wanted in (False, True):
            for name, array in state.items():
                if _travels(name, array) and (name in apart) is wanted:
                    places[name] = end
                    end += array.size
            if not wanted:
                self.parameters = end
        self.statistics = end - self.parameters
        self._tensors = tuple(
            _Tensor(name, array.shape, array.dtype, places.get(name, -1)) for name, array in state.items()
        )
        if not end:
            raise ConfigError(key="model state", got=sorted(state), takes="at least one floating value")

    @property
    def values(self) -> int:
        """How long the vector is."""
        return self.parameters + self.statistics

    def typical_deviations(self) -> Vector:
        """Return how large values of such a model are about, by its shapes alone: 1/√fan-in, as they are drawn first.

        A tensor of one dimension, such as a bias, counts by its length.
        """
        sizes = np.empty(self.values, dtype=np.float32)
        for tensor in self._tensors:
            if tensor.start >= 0:
                inputs = np.prod(tensor.shape[1:]) if len(tensor.shape) > 1 else tensor.size
                sizes[tensor.start : tensor.stop] = 1.0 / np.sqrt(max(float(inputs), 1.0))
        return sizes

    def flatten(self, state: State) -> Vector:
        """Return a fresh vector of the state's floating values."""
        vector = np.empty(self.values, dtype=np.float32)
        for tensor, array in self._match(state):
            if tensor.start >= 0:
                # What exceeds float32 becomes an infinity, which the encoder refuses to send.
                with np.errstate(over="ignore"):
                    vector[tensor.start : tensor.stop] = array.reshape(-1)
        return vector

    def unflatten(self, vector: Vector, state: State) -> dict[str, npt.NDArray[np.generic]]:
        """Return a state with the vector's values, in fresh arrays; `state` gives what does not travel."""
        if vector.shape != (self.values,):
            raise ConfigError(key="model vector", got=vector.shape, takes=f"{self.values} values")
        result = {}
        for tensor, array in self._match(state):
            if tensor.start < 0:
                result[tensor.name] = array.copy()
            else:
                result[tensor.name] = _restored(vector[tensor.start : tensor.stop].reshape(tensor.shape), array)
        return result

    def _match(self, state: State) -> Iterator[tuple[_Tensor, npt.NDArray[np.generic]]]:
        """Pair each tensor with its array, or say which one changed."""
        if state.keys() != {tensor.name for tensor in self._tensors}:
            odd = sorted(state.keys() ^ {tensor.name for tensor in self._tensors})
            raise ConfigError(key="model state", got=odd[0], takes="the tensors it began with", hint="missing or new")
        for tensor in self._tensors:
            array = state[tensor.name]
            if (array.shape, array.dtype) != (tensor.shape, tensor.dtype):
                raise ConfigError(
                    key=f"model state {tensor.name}",
                    got=f"{array.dtype}{list(array.shape)}",
                    takes=f"{tensor.dtype}{list(tensor.shape)}, as it began",
                )
            yield tensor, array


def _travels(name: str, array: npt.NDArray[np.generic]) -> bool:
    if array.dtype.kind in "iub":
        return False
    if array.dtype.kind == "f" and array.dtype.itemsize <= np.dtype(np.float64).itemsize:
        return True
    takes = "float16, float32, float64, integers or booleans"
    raise ConfigError(key=f"model state {name}", got=str(array.dtype), takes=takes)


def _normalization(state: State) -> set[str]:
    """Return the names of everything in a layer that keeps statistics."""
    layers = {name.rpartition(".")[0] for name in state if name.rpartition(".")[2] in STATISTICS}
    return {name for name in state if name.rpartition(".")[0] in layers}


def _restored(values: Vector, local: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Return the values in the type of `local`, and its own where they are merely its image in float32."""
    if local.dtype == np.float32:
        return values.copy()
    limit = np.finfo(local.dtype).max  # type: ignore[type-var]  # only floating tensors come here
    with np.errstate(over="ignore"):
        unchanged = local.astype(np.float32) == values
        inside = np.clip(values.astype(np.float64), -float(limit), float(limit)).astype(local.dtype)
    return np.where(unchanged, local, inside)
