from hashlib import sha256

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.fragments import StateLayout, pair_noise

SECRET = bytes(range(32))


def test_the_noise_of_a_pair_is_the_same_on_every_machine() -> None:
    noise = pair_noise(SECRET, b"round 1", 1_000)

    assert noise.dtype == np.float32
    assert sha256(noise.astype("<f4").tobytes()).hexdigest() == (
        "3110aaaf0152291589b0efd80df856780f09e00e43172072e9bab8c7bb82544f"
    )


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=40), st.integers(1, 3_000))
def test_its_values_are_small_and_a_longer_one_begins_like_a_shorter_one(
    secret: bytes, label: bytes, count: int
) -> None:
    noise = pair_noise(secret, label, count)

    assert noise.shape == (count,)
    assert float(np.abs(noise).max()) <= 3**0.5
    assert pair_noise(secret, label, count + 7)[:count].tolist() == noise.tolist()


def test_its_mean_is_zero_and_its_deviation_one() -> None:
    noise = pair_noise(SECRET, b"long", 1_000_000).astype(np.float64)

    # Of a million values the mean strays by 0.001 and the mean square by 0.0009: this fails once in 10⁹ labels.
    assert abs(noise.mean()) < 0.006
    assert abs((noise**2).mean() - 1.0) < 0.006


def test_other_secrets_and_other_labels_have_nothing_in_common() -> None:
    noises = [pair_noise(SECRET, b"a", 40_000), pair_noise(SECRET, b"b", 40_000), pair_noise(bytes(32), b"a", 40_000)]

    overlaps = np.asarray(np.corrcoef(noises))[np.triu_indices(3, k=1)]

    # Each strays by 1/√40,000.
    assert np.abs(overlaps).max() < 0.03


def test_what_a_value_is_like_follows_from_the_shapes_alone() -> None:
    layout = StateLayout({
        "conv.weight": np.zeros((6, 1, 5, 5), dtype=np.float32),
        "conv.bias": np.full(4, 9.0, dtype=np.float32),
        "steps": np.zeros(3, dtype=np.int64),
        "scalar": np.zeros((), dtype=np.float32),
    })  # fmt: skip

    sizes = layout.typical_deviations()

    assert sizes.tolist() == [np.float32(0.2)] * 150 + [0.5] * 4 + [1.0]
