"""What a person or a script sees of the command: codes, sentences, and which stream carries what."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

import unlinkabledfl
from unlinkabledfl.cli import bench, main
from unlinkabledfl.cli.exit_codes import ExitCode
from unlinkabledfl.errors import ConfigError, NoRouteError, UnlinkableError

BENCHMARK = """
def measure(*, rounds: int = 3) -> dict[str, object]:
    return {"hop_us": 84.5, "rounds": rounds}

def render(document: dict[str, object]) -> str:
    return f"a hop costs {document['hop_us']} µs"
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A source checkout whose only benchmark is instant, in place of ours."""
    (tmp_path / "benchmarks").mkdir()
    # A package, like ours: it comes before others of that name, of which an installed one may be among the modules.
    (tmp_path / "benchmarks" / "__init__.py").touch()
    (tmp_path / "benchmarks" / "packet.py").write_text(BENCHMARK, encoding="utf-8")
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(bench, "SOURCE_ROOT", tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        del sys.modules[name]


def failing_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, root: Path) -> NoReturn:
        raise error

    monkeypatch.setattr(bench, "load", load)


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])

    assert left.value.code == ExitCode.OK
    assert capsys.readouterr().out == f"unlinkabledfl {unlinkabledfl.__version__}\n"


def test_help_names_the_commands_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--help"])

    printed = " ".join(capsys.readouterr().out.split())
    assert left.value.code == ExitCode.OK
    assert "train a scenario over the mixnet" in printed
    assert "measure speed on this machine" in printed
    assert "0 done, 1 a bug, 2 arguments or configuration cannot work, 3 the job failed, 130 interrupted" in printed


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["bench"], ["bench", "nonsense"], ["bench", "packet", "--x"]])
def test_arguments_that_make_no_sense_are_a_usage_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)

    captured = capsys.readouterr()
    assert left.value.code == ExitCode.CONFIG
    assert captured.out == ""
    assert captured.err.startswith("usage: unlinkabledfl")


@pytest.mark.parametrize("rounds", ["0", "-1", "many", ""])
def test_an_impossible_number_of_rounds_is_a_usage_error(rounds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["bench", "packet", "--rounds", rounds])

    assert left.value.code == ExitCode.CONFIG
    assert f"got {rounds!r}, takes a whole number from 1" in capsys.readouterr().err


@pytest.mark.usefixtures("checkout")
def test_json_goes_to_stdout_as_one_document_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["bench", "packet", "--rounds", "7", "--json"])

    captured = capsys.readouterr()
    assert code == ExitCode.OK
    assert json.loads(captured.out) == {"hop_us": 84.5, "rounds": 7}
    assert "a hop costs" not in captured.err


@pytest.mark.usefixtures("checkout")
def test_what_is_for_people_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["bench", "packet"])

    captured = capsys.readouterr()
    assert code == ExitCode.OK
    assert captured.out == ""
    assert captured.err == "a hop costs 84.5 µs\n"


@pytest.mark.usefixtures("checkout")
def test_all_benchmarks_make_one_document(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(bench, "NAMES", ("packet",))

    assert main(["bench", "all", "--json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out) == {"packet": {"hop_us": 84.5, "rounds": 3}}


@pytest.mark.usefixtures("checkout")
def test_a_benchmark_that_is_not_there_is_a_sentence_before_any_is_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "NAMES", ("packet", "simulation"))

    code = main(["bench", "all", "--json"])

    captured = capsys.readouterr()
    assert code == ExitCode.CONFIG
    assert captured.out == ""
    assert captured.err == (
        "unlinkabledfl: bench: got 'simulation', takes a benchmark of a source checkout, and this installation has "
        "none (clone the repository and run `make setup` there)\n"
    )


def test_a_benchmark_without_rounds_refuses_the_option(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = BENCHMARK.replace("*, rounds: int = 3", "").replace(', "rounds": rounds', "")
    (checkout / "benchmarks" / "packet.py").write_text(source, encoding="utf-8")

    assert main(["bench", "packet", "--rounds", "3"]) == ExitCode.CONFIG
    assert capsys.readouterr().err == "unlinkabledfl: --rounds: got 3, takes no value for the benchmark 'packet'\n"


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (ConfigError(key="a.b", got=1, takes="2"), ExitCode.CONFIG, "unlinkabledfl: a.b: got 1, takes 2\n"),
        (NoRouteError("3 peers cannot carry 5 hops"), ExitCode.FAILED, "unlinkabledfl: 3 peers cannot carry 5 hops\n"),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, "unlinkabledfl: interrupted\n"),
    ],
)
def test_an_error_is_one_sentence_and_its_code(
    error: BaseException,
    code: ExitCode,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    failing_with(error, monkeypatch)

    assert main(["bench", "packet"]) == code
    assert capsys.readouterr().err == sentence


def test_debug_shows_where_an_error_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    failing_with(UnlinkableError("inside"), monkeypatch)

    with pytest.raises(UnlinkableError, match="inside"):
        main(["bench", "packet", "--debug"])


def test_a_bug_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    failing_with(ZeroDivisionError(), monkeypatch)

    with pytest.raises(ZeroDivisionError):
        main(["bench", "packet"])


def test_a_reader_that_goes_away_ends_the_command_quietly(checkout: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from unlinkabledfl.cli import bench, main;"
        "bench.SOURCE_ROOT = Path(sys.argv[1]); sys.exit(main(['bench', 'packet', '--json']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, checkout], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()

    assert (process.returncode, errors) == (ExitCode.READER_GONE, b"")


def test_help_imports_neither_cryptography_nor_the_tables() -> None:
    program = (
        "import sys\nfrom unlinkabledfl.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'cryptography', 'nacl', 'rich', 'asyncio', 'unlinkabledfl.sphinx'} & set(sys.modules)))"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert finished.stdout.splitlines()[-1] == "[]"
