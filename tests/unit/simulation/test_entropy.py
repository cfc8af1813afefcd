from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.simulation.entropy import SeededEntropy, chances


def test_a_stream_is_decided_by_seed_and_name() -> None:
    asked = [16, 3, 0, 300, 32, 250, 250]

    def take(seed: int, name: str) -> list[bytes]:
        stream = SeededEntropy(seed, name)
        return [stream(n) for n in asked]

    assert [len(block) for block in take(1, "a")] == asked
    assert take(1, "a") == take(1, "a")
    assert take(1, "a") != take(2, "a")
    assert take(1, "a") != take(1, "b")
    assert take(1, "2/a") != take(12, "/a")


@given(st.lists(st.integers(min_value=8, max_value=600), min_size=2, max_size=40))
def test_no_eight_bytes_of_a_stream_are_given_out_twice(sizes: list[int]) -> None:
    stream = SeededEntropy(7, "node/0/0")
    given_out = Counter(block[at : at + 8] for block in map(stream, sizes) for at in range(len(block) - 7))

    assert max(given_out.values()) == 1


def test_the_first_bytes_are_pinned() -> None:
    # They decide every published run: a change here changes all of them.
    assert SeededEntropy(1, "node/0/0")(8).hex() == "2adfa507dc65a1a7"
    assert chances(1, "links").random().hex() == "0x1.8f4a1c074d1a0p-3"
