"""The claims of `symbols` and `bodies` about noise. Seeds are fixed; each test states its significance."""

from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pytest

from tests.statistics_ks import ks_p_value
from tests.unit.fragments.models import vector
from unlinkabledfl.fragments import Vector
from unlinkabledfl.fragments.bodies import decode_body, encode_relative
from unlinkabledfl.fragments.lossless import Lossless
from unlinkabledfl.fragments.symbols import (
    ESCAPE,
    Dither,
    draw_dither,
    quantize_dithered,
    quantize_stochastic,
    restore_dithered,
    restore_stepped,
)

Figures = npt.NDArray[np.float64]
SIGNIFICANCE = 1e-6
REPEATS = 4_000
STEP = 0.125
# Values on a step, between two, on either side of zero, tiny and large.
VALUES = np.concatenate([[0.0, STEP, -STEP, STEP / 2, -STEP / 2, 1e-6, 15.0, -15.0], vector(192)]).astype(np.float32)


def dithered(values: Vector, rng: np.random.Generator, *, step: float = STEP) -> Vector:
    dither = draw_dither(rng)
    symbols, escapes = quantize_dithered(values, largest=float(np.abs(values).max()), step=step, dither=dither)
    return restore_dithered(symbols, escapes, step=step, dither=dither)


def stochastic(values: Vector, rng: np.random.Generator) -> Vector:
    symbols = quantize_stochastic(values, step=STEP, levels=127, rng=rng)
    return restore_stepped(symbols, values[:0], step=STEP)


def errors(quantize: Callable[[Vector, np.random.Generator], Vector], seed: int) -> Figures:
    rng = np.random.default_rng(seed)
    found: Figures = np.stack([quantize(VALUES, rng) for _ in range(REPEATS)]).astype(np.float64) - VALUES
    return found


def greatest_allowed_z(comparisons: int) -> float:
    return NormalDist().inv_cdf(1.0 - SIGNIFICANCE / (2 * comparisons))


def allowed_mean(variance: Figures, bound: Figures | float, repeats: int) -> Figures:
    """How far the mean of errors with that variance and bound may be from zero, by Bernstein's inequality.

    No normal law here: a value close to a step is moved so rarely that its mean is far from normal.
    """
    doubt = np.log(2 * variance.size / SIGNIFICANCE)
    linear = bound * doubt / 3
    allowed: Figures = (linear + np.sqrt(linear**2 + 2 * repeats * variance * doubt)) / repeats
    return allowed


def rounding_variance(values: Vector, step: Figures | float) -> Figures:
    """Of stochastic rounding."""
    fraction = values.astype(np.float64) / step % 1.0
    variance: Figures = fraction * (1.0 - fraction) * step**2
    return variance


def test_the_mean_over_subtracted_dither_is_the_value() -> None:
    means = errors(dithered, seed=1).mean(axis=0)

    assert (np.abs(means) <= allowed_mean(np.full(VALUES.size, STEP**2 / 12), STEP / 2, REPEATS)).all()


def test_the_mean_over_stochastic_rounding_is_the_value() -> None:
    means = errors(stochastic, seed=1).mean(axis=0)

    assert (np.abs(means) <= allowed_mean(rounding_variance(VALUES, STEP), STEP, REPEATS)).all()


def test_the_error_of_subtracted_dither_is_uniform_whatever_the_value() -> None:
    found = errors(dithered, seed=2)
    p_values = [ks_p_value(column.tolist(), lambda x: min(1.0, max(0.0, x / STEP + 0.5))) for column in found.T[:40]]

    assert np.abs(found).max() <= STEP / 2 * (1 + 1e-4)
    assert min(p_values) > SIGNIFICANCE / len(p_values)


def test_the_variance_of_subtracted_dither_is_a_twelfth_of_the_squared_step() -> None:
    found = errors(dithered, seed=3)

    # The squared error has mean s²/12 and variance s⁴/180.
    z = (np.square(found).mean(axis=0) - STEP**2 / 12) / (STEP**2 / np.sqrt(180 * REPEATS))
    assert np.abs(z).max() < greatest_allowed_z(VALUES.size)


def test_errors_of_different_values_are_unrelated_under_subtracted_dither() -> None:
    found = errors(dithered, seed=4)[:, -192:] / STEP

    # Over pairs of values, the covariance given the fixed table has mean 0 and deviation at most 1/12.
    covariances = np.cov(found.T)[np.triu_indices(192, 1)]
    assert abs(covariances.mean()) < 0.01 / 12
    assert abs(found.sum(axis=1).var() / (192 / 12) - 1.0) < 0.5


def test_the_variance_of_stochastic_rounding_is_what_the_fraction_says() -> None:
    found = errors(stochastic, seed=5)
    expected = rounding_variance(VALUES, STEP)

    assert np.abs(found).max() < STEP
    # A sum of bounded terms: its deviation is at most half a squared step over the root of the repeats.
    z = (np.square(found).mean(axis=0) - expected) / (STEP**2 / 2 / np.sqrt(REPEATS))
    assert np.abs(z).max() < greatest_allowed_z(VALUES.size)
    assert np.square(found).mean(axis=0).max() < STEP**2 / 4 * 1.1


def test_subtracted_dither_has_half_the_variance_of_stochastic_rounding() -> None:
    values = vector(20_000, deviation=1.0)
    rng = np.random.default_rng(6)
    symbols = quantize_stochastic(values, step=STEP, levels=127, rng=rng)

    rounded = np.square(restore_stepped(symbols, values[:0], step=STEP) - values).mean()
    subtracted = np.square(dithered(values, rng) - values).mean()

    assert rounded / subtracted == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("mantissa_bits", [7, 3, 0])
def test_relative_values_are_unbiased_keep_their_sign_and_are_near(mantissa_bits: int) -> None:
    values = np.concatenate([np.geomspace(1e-30, 1e3, 100), -np.geomspace(1e-6, 1e3, 99), [0.0]]).astype(np.float32)
    rng = np.random.default_rng(7)
    lossless = Lossless()

    def once() -> Vector:
        body = encode_relative(values, lossless, mantissa_bits=mantissa_bits, rng=rng)
        return decode_body(2, memoryview(body), values.size, lossless)

    found = np.stack([once() for _ in range(1_000)]).astype(np.float64)

    assert np.array_equal(np.sign(found), np.broadcast_to(np.sign(values), found.shape))
    sizes = np.abs(values[:-1].astype(np.float64))
    error, step = (found - values)[:, :-1], 2.0 ** (np.floor(np.log2(sizes)) - mantissa_bits)
    assert (np.abs(error) <= step).all()
    assert (np.abs(error).max(axis=0) <= 2.0**-mantissa_bits * sizes).all()
    assert (np.abs(error.mean(axis=0)) <= allowed_mean(rounding_variance(values[:-1], step), step, 1_000)).all()


def test_values_too_large_for_a_symbol_travel_exactly_and_leave_the_others_alone() -> None:
    values = vector(1_000)
    values[[3, 500, 999]] = [900.0, -900.0, 16.1]
    dither = Dither(5, 2**31)

    symbols, escapes = quantize_dithered(values, largest=900.0, step=STEP, dither=dither)
    restored = restore_dithered(symbols, escapes, step=STEP, dither=dither)

    assert np.flatnonzero(symbols == ESCAPE).tolist() == [3, 500, 999]
    assert restored[[3, 500, 999]].tolist() == values[[3, 500, 999]].tolist()
    assert np.abs(restored - values).max() <= STEP / 2 * (1 + 1e-4)


@pytest.mark.parametrize("largest", [124.0, 125.4, 125.6, 126.4, 127.4, 127.6, 128.4])
def test_no_value_near_the_last_symbol_is_mistaken(largest: float) -> None:
    values = np.array([largest, -largest, 0.0], dtype=np.float32)
    for phase in range(0, 2**32, 2**28):
        dither = Dither(0, phase)
        symbols, escapes = quantize_dithered(values, largest=largest, step=1.0, dither=dither)

        restored = restore_dithered(symbols, escapes, step=1.0, dither=dither)

        assert np.abs(restored - values).max() <= 0.5 * (1 + 1e-4)
