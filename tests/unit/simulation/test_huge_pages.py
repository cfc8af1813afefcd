import sys

import pytest

from unlinkabledfl.simulation.huge_pages import use_huge_pages, whole_pages

PAGE = 2 << 20


def mapping(first: int, last: int, rest: str = "rw-p 00000000 00:00 0") -> str:
    return f"{first:x}-{last:x} {rest}"


def test_only_whole_pages_inside_a_mapping_count() -> None:
    lines = [
        mapping(PAGE, 3 * PAGE),
        mapping(10 * PAGE + 4096, 12 * PAGE + 4096),
        mapping(20 * PAGE + 4096, 21 * PAGE - 4096),
        mapping(30 * PAGE, 31 * PAGE, "rw-p 00000000 00:00 0                          [heap]"),
    ]

    assert list(whole_pages(lines)) == [(PAGE, 2 * PAGE), (11 * PAGE, PAGE), (30 * PAGE, PAGE)]


@pytest.mark.parametrize(
    "rest",
    [
        "r--p 00000000 00:00 0",
        "rw-s 00000000 00:00 0",
        "rw-p 00000000 08:01 1234      /usr/lib/libc.so.6",
        "rw-p 00000000 00:00 0         [stack]",
        "rw-p 00000000 00:00 0         [anon:somebody's own]",
    ],
)
def test_files_shared_memory_and_stacks_are_left_alone(rest: str) -> None:
    assert list(whole_pages([mapping(PAGE, 4 * PAGE, rest)])) == []


def test_asking_changes_nothing_but_where_things_lie() -> None:
    things = [bytes([number % 256]) * 64 for number in range(200_000)]

    moved = use_huge_pages()

    assert moved >= 0
    assert moved % PAGE == 0
    assert all(thing == bytes([number % 256]) * 64 for number, thing in enumerate(things))


def test_elsewhere_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    assert use_huge_pages() == 0
