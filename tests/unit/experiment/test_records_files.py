"""Files that a crash or a full disk leaves whole."""

import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.errors import RunError
from unlinkabledfl.experiment.records.files import SECRET, AppendedLines, replaced_file, write_file


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """Let the system refuse to write further, as it does when the disk is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def interrupted_after(sink: IO[bytes], content: bytes) -> NoReturn:
    sink.write(content)
    raise KeyboardInterrupt


def test_a_file_is_replaced_at_once_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "summary.json"
    write_file(target, "old")

    with pytest.raises(KeyboardInterrupt), replaced_file(target) as sink:
        interrupted_after(sink, b"half of the n")

    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["summary.json"]


def test_a_secret_is_readable_by_its_owner_only_and_other_files_by_all(tmp_path: Path) -> None:
    write_file(tmp_path / "key", b"k", mode=SECRET)
    write_file(tmp_path / "page", "p")

    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("key", "page")] == [0o600, 0o644]


def test_a_full_disk_is_one_sentence_and_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "metrics.parquet"
    write_file(target, "old")

    with files_of_at_most(1000), pytest.raises(RunError, match=r"metrics\.parquet cannot be written: .*--resume"):
        write_file(target, b"x" * 5000)

    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["metrics.parquet"]


def test_lines_that_do_not_fit_are_cut_off_whole_and_writing_goes_on_when_there_is_room(tmp_path: Path) -> None:
    table = AppendedLines(tmp_path / "t.csv", header="h")
    table.append("first\n")

    with files_of_at_most(20), pytest.raises(RunError, match=r"t\.csv cannot be written"):
        table.append("a line that is longer than what is left\n")
    after_failure = (tmp_path / "t.csv").read_text()
    table.append("second\n")
    table.close()

    assert after_failure == "h\nfirst\n"
    assert (tmp_path / "t.csv").read_text() == "h\nfirst\nsecond\n"


def test_a_directory_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="No such file or directory"):
        write_file(tmp_path / "gone" / "x", "x")


@given(kept=st.lists(st.text("abc,é", max_size=20), max_size=8), left=st.text("abc,é", max_size=200_000 // 1000))
def test_what_a_killed_writer_left_of_a_line_is_cut_off_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, kept: list[str], left: str
) -> None:
    path = tmp_path_factory.mktemp("lines") / "t.csv"
    whole = "".join(f"{line}\n" for line in ["h", *kept])
    path.write_text(whole + left, encoding="utf-8")

    table = AppendedLines(path, header="h")
    table.append("next\n")
    table.close()

    assert path.read_text(encoding="utf-8") == f"{whole}next\n"


def test_the_end_of_the_last_whole_line_is_found_behind_a_very_long_rest(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"h\nkept\n" + b"x" * 300_000)

    AppendedLines(path, header="h").close()

    assert path.read_bytes() == b"h\nkept\n"
