import numpy as np

from tests.unit.fragments.models import vector
from unlinkabledfl.fragments import ErrorFeedback, FragmentDecoder, FragmentEncoder, Grid, Vector, codec_by_name

GRID = Grid(2_000, 500)


def mean_sent(rounds: int, *, feedback: bool) -> tuple[Vector, Vector, ErrorFeedback]:
    """What a receiver of every round would think of a model that does not change."""
    encoder = FragmentEncoder(GRID, codec_by_name("q4"), capacity_bytes=1_000)
    decoder = FragmentDecoder(GRID, capacity_bytes=1_000)
    memory = ErrorFeedback(GRID.values)
    rng = np.random.default_rng(1)
    flat = vector(2_000)
    total = np.zeros(2_000)
    for round_number in range(rounds):
        wanted = memory.compensate(flat) if feedback else flat
        for data in encoder.encode(wanted, round_number=round_number, rng=rng):
            fragment = decoder.decode(data)
            total[fragment.start : fragment.stop] += fragment.values
            if feedback:
                memory.record(wanted, fragment)
    return flat, (total / rounds).astype(np.float32), memory


def test_with_feedback_the_mean_over_rounds_converges_faster() -> None:
    errors = {}
    for feedback in (False, True):
        flat, mean, _ = mean_sent(16, feedback=feedback)
        errors[feedback] = float(np.linalg.norm(mean - flat))

    # Errors of 16 rounds fall with the root of the rounds without it, with the rounds themselves with it.
    assert errors[True] < errors[False] / 2


def test_the_residual_stays_within_a_step() -> None:
    flat, _, memory = mean_sent(50, feedback=True)

    residual = memory.compensate(np.zeros(2_000, dtype=np.float32))

    # The step is a seventh of the largest value, which the residual itself may raise by one step.
    assert np.abs(residual).max() <= np.abs(flat).max() / 7 * 1.2


def test_ranges_not_sent_keep_their_residual() -> None:
    encoder = FragmentEncoder(GRID, codec_by_name("q4"), capacity_bytes=1_000)
    decoder = FragmentDecoder(GRID, capacity_bytes=1_000)
    memory = ErrorFeedback(GRID.values)
    flat = vector(2_000)
    (data,) = encoder.encode(flat, round_number=0, rng=np.random.default_rng(1), ranges=[2])

    fragment = decoder.decode(data)
    memory.record(flat, fragment)

    owed = memory.compensate(np.zeros(2_000, dtype=np.float32))
    assert np.array_equal(owed[1_000:1_500], flat[1_000:1_500] - fragment.values)
    assert not owed[:1_000].any()
    assert not owed[1_500:].any()
