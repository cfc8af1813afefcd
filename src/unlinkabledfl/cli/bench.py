"""`unlinkabledfl bench`: measure, on this machine, what the README claims.

The benchmarks live in the source checkout, not in the package: they compare with other people's packages and are of no
use to a running node. Each is a module of the `benchmarks` directory with two functions: `measure`, which returns the
JSON document and whose keywords are its options, and `render(document)`, which makes of it what people see.
"""

import argparse
import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import unlinkabledfl
from unlinkabledfl.cli.output import print_document, show, waiting
from unlinkabledfl.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import RenderableType

NAMES = ("packet", "link", "node", "runs", "simulation", "payload", "learning", "manager")
_OPTIONS = ("rounds", "runs", "datasets", "sizes", "seeds", "keep")
SOURCE_ROOT = Path(unlinkabledfl.__file__).resolve().parents[2]


class Benchmark(Protocol):
    """What a module of the `benchmarks` directory offers."""

    measure: Callable[..., dict[str, Any]]
    render: Callable[[dict[str, Any]], "RenderableType"]


def add_to(subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser) -> None:
    """Add the subcommand to the command line."""
    parser = subcommands.add_parser("bench", parents=[common], help="measure speed on this machine")
    parser.add_argument("name", choices=[*NAMES, "all"], help="what to measure")
    parser.add_argument(
        "--rounds",
        type=_positive,
        metavar="N",
        help="how often; the medians get steadier. Of `runs`: how many rounds of training; the rest is extrapolated",
    )
    parser.add_argument("--runs", type=_names, metavar="A,B", help="of the benchmark `runs`: only these")
    learning = parser.add_argument_group("of the benchmark `learning`")
    learning.add_argument("--datasets", type=_names, metavar="A,B", help="only these datasets")
    learning.add_argument("--sizes", type=_sizes, metavar="N,M", help="only federations of so many nodes")
    learning.add_argument("--seeds", type=_positive, metavar="N", help="how many runs of each")
    learning.add_argument("--keep", type=Path, metavar="FILE", help="write finished runs there, and do not repeat them")
    parser.set_defaults(handle=handle)


def handle(arguments: argparse.Namespace) -> None:
    """Measure, and print the document or the tables."""
    names = NAMES if arguments.name == "all" else (arguments.name,)
    # Every one is found before the first is run: a mistake should not cost minutes.
    benchmarks = {name: load(name, SOURCE_ROOT) for name in names}
    options = {name: _options(name, benchmark, arguments) for name, benchmark in benchmarks.items()}
    documents = {}
    for name, benchmark in benchmarks.items():
        with waiting(f"measuring: {name}"):
            documents[name] = benchmark.measure(**options[name])
        if not arguments.json:
            show(benchmark.render(documents[name]))
    if arguments.json:
        print_document(documents if arguments.name == "all" else documents[arguments.name])


def load(name: str, root: Path) -> Benchmark:
    """Import a benchmark from the checkout at `root`."""
    if not (root / "benchmarks" / f"{name}.py").is_file():
        raise ConfigError(
            key="bench",
            got=name,
            takes="a benchmark of a source checkout, and this installation has none",
            hint="clone the repository and run `make setup` there",
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return cast("Benchmark", import_module(f"benchmarks.{name}"))


def _options(name: str, benchmark: Benchmark, arguments: argparse.Namespace) -> dict[str, Any]:
    given = {option: getattr(arguments, option) for option in _OPTIONS}
    options = {option: value for option, value in given.items() if value is not None}
    understood = inspect.signature(benchmark.measure).parameters
    for option, value in options.items():
        if option not in understood:
            raise ConfigError(key=f"--{option}", got=value, takes=f"no value for the benchmark {name!r}")
    return options


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(_positive(size) for size in text.split(","))


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"got {text!r}, takes a whole number from 1")
    return value
