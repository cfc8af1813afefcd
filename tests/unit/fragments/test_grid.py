import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.fragments import Grid, Range
from unlinkabledfl.fragments.grid import even_slice

SIZES = st.integers(0, 500)


@given(SIZES.filter(bool), st.integers(1, 99), SIZES, st.integers(1, 99))
def test_ranges_cover_the_vector_once_and_never_cross_into_the_statistics(
    parameters: int, slice_values: int, statistics: int, statistics_slice: int
) -> None:
    grid = Grid(parameters, slice_values, statistics, statistics_slice)

    covered = [index for place in grid.ranges for index in range(place.start, place.stop)]

    assert covered == list(range(parameters + statistics))
    assert all(len(place) > 0 for place in grid.ranges)
    assert all(
        (place.start >= parameters) == grid.is_statistics(at) == (place.stop > parameters)
        for at, place in enumerate(grid.ranges)
    )


def test_a_range_is_found_by_both_its_ends() -> None:
    grid = Grid(10, 4, 3, 2)

    assert grid.ranges == (Range(0, 4), Range(4, 8), Range(8, 10), Range(10, 12), Range(12, 13))
    assert [grid.index_of(place.start, place.stop) for place in grid.ranges] == [0, 1, 2, 3, 4]
    assert [grid.index_of(*ends) for ends in ((0, 8), (1, 4), (8, 12), (4, 4), (-4, 0))] == [None] * 5


@pytest.mark.parametrize(
    "sizes", [(0, 4), (-1, 4), (4, 0), (4, 65_536), (2**32, 4), (4, 4, -1), (4, 4, 4, 0), (4, 4, 4, 65_536)]
)
def test_a_grid_that_cannot_be_is_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match=r"fragments\."):
        Grid(*sizes)


@given(st.integers(0, 10_000), st.integers(1, 300))
def test_even_slices_are_as_few_as_can_be(values: int, most: int) -> None:
    length = even_slice(values, most)

    assert 1 <= length <= most
    assert -(-values // length) == -(-values // most)
