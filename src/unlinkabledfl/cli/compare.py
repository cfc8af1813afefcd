"""`unlinkabledfl compare A B`: what differs between two runs: what was asked, what was learned, what it cost."""

import argparse
from pathlib import Path

from unlinkabledfl.cli.output import print_document, show, waiting


def add_to(subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser) -> None:
    """Add the subcommand to the command line."""
    parser = subcommands.add_parser("compare", parents=[common], help="compare two runs")
    parser.add_argument("a", type=Path, metavar="A", help="the directory of one run")
    parser.add_argument("b", type=Path, metavar="B", help="the directory of the other; ratios are B to A")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write one HTML page with both runs' curves")
    parser.set_defaults(handle=handle)


def handle(arguments: argparse.Namespace) -> None:
    """Read both runs, write the page where asked, and print the document or the tables."""
    from unlinkabledfl.experiment.compare import compare_runs, comparison_tables, write_comparison
    from unlinkabledfl.experiment.report import load_run

    with waiting("reading the runs"):
        comparison = compare_runs(load_run(arguments.a), load_run(arguments.b))
        page = None if arguments.out is None else write_comparison(comparison, arguments.out)
    if arguments.json:
        print_document({**comparison.document(), "report": None if page is None else str(page)})
    else:
        show(comparison_tables(comparison, page=page))
