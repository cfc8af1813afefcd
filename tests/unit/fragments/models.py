"""Model states for tests: shapes like real ones, values drawn from a seed."""

from typing import Any

import numpy as np
import numpy.typing as npt

from unlinkabledfl.fragments import Vector

CAPACITY_BYTES = 9_810
LENET5 = {
    "0.weight": (6, 1, 5, 5), "0.bias": (6,), "3.weight": (16, 6, 5, 5), "3.bias": (16,), "7.weight": (120, 400),
    "7.bias": (120,), "9.weight": (84, 120), "9.bias": (84,), "11.weight": (10, 84), "11.bias": (10,),
}  # fmt: skip
# Standard deviations of a LeNet-5 trained for 2,300 steps on MNIST.
LENET5_DEVIATIONS = (0.24, 0.19, 0.108, 0.10, 0.044, 0.032, 0.068, 0.069, 0.155, 0.157)


def lenet5(seed: int = 1) -> dict[str, npt.NDArray[Any]]:
    """Weights that look trained: each layer normal with its own deviation."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.normal(0.0, deviation, shape).astype(np.float32)
        for (name, shape), deviation in zip(LENET5.items(), LENET5_DEVIATIONS, strict=True)
    }


def normalized(seed: int = 1) -> dict[str, npt.NDArray[Any]]:
    """A convolution and its normalization layer, with variances of very different size."""
    rng = np.random.default_rng(seed)
    return {
        "conv.weight": rng.normal(0.0, 0.05, (64, 32, 3, 3)).astype(np.float32),
        "norm.weight": np.ones(64, dtype=np.float32),
        "norm.bias": rng.normal(0.0, 0.1, 64).astype(np.float32),
        "norm.running_mean": rng.normal(0.0, 1.0, 64).astype(np.float32),
        "norm.running_var": np.geomspace(1e-6, 1e3, 64).astype(np.float32),
        "norm.num_batches_tracked": np.array(1234, dtype=np.int64),
        "head.weight": rng.normal(0.0, 0.05, (10, 64)).astype(np.float32),
    }


def vector(values: int, *, seed: int = 1, deviation: float = 0.05) -> Vector:
    """A normal vector."""
    return np.random.default_rng(seed).normal(0.0, deviation, values).astype(np.float32)
