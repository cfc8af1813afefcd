"""`unlinkabledfl reproduce`: repeat an experiment of the published evaluation, beside what was published."""

import argparse
import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unlinkabledfl.cli.output import print_document, show, working
from unlinkabledfl.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

_OPTIONS = ("targets", "seed", "only", "seeds", "quick")


def add_to(subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser) -> None:
    """Add the subcommand to the command line."""
    parser = subcommands.add_parser(
        "reproduce", parents=[common], help="repeat a published experiment, beside what was published"
    )
    parser.add_argument("name", metavar="NAME", help="which experiment: linking, frontier, theory or content")
    parser.add_argument("--targets", type=int, metavar="N", help="how many packets each adversary is tried on")
    parser.add_argument("--only", type=_names, metavar="A,B", help="only these deployments, such as direct,paper")
    parser.add_argument("--seed", type=int, metavar="N", help="another seed, another run of everything")
    parser.add_argument("--seeds", type=int, metavar="N", help="how many federations of each kind, for intervals")
    # None where it is not given, like the others.
    parser.add_argument("--quick", action="store_true", default=None, help="a small one, to see that it works")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="also write the document and its page there: NAME.json, NAME.html"
    )
    parser.set_defaults(handle=handle)


def handle(arguments: argparse.Namespace) -> None:
    """Run the experiment, and print the document or the tables."""
    from unlinkabledfl.experiment.reproductions import experiment

    found = experiment(arguments.name)
    options = _options(arguments, found.reproduce)
    with working(f"reproducing {arguments.name}") as tell:
        document = found.reproduce(tell=tell, **options)
    path = None if arguments.out is None else _write(document, found.page(document), arguments.name, arguments.out)
    if arguments.json:
        print_document(document)
        return
    show(found.render(document))
    if path is not None:
        show(f"report: {path}")


def _options(arguments: argparse.Namespace, reproduce: "Callable[..., Any]") -> dict[str, Any]:
    given = {name: getattr(arguments, name) for name in _OPTIONS}
    options = {name: value for name, value in given.items() if value is not None}
    understood = inspect.signature(reproduce).parameters
    for name, value in options.items():
        if name not in understood:
            raise ConfigError(key=f"--{name}", got=value, takes=f"no value for the experiment {arguments.name!r}")
    return options


def _write(document: dict[str, Any], page: str, name: str, directory: Path) -> Path:
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    path = directory / f"{name}.html"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{name}.json").write_text(text, encoding="utf-8")
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise ConfigError(key="--out", got=str(directory), takes="a directory to write to", hint=str(error)) from None
    return path


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))
