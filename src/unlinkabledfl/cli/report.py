"""`unlinkabledfl report RUN`: one page of a run for people, or its figures for machines."""

import argparse
from pathlib import Path

from unlinkabledfl.cli.output import print_document, show, waiting


def add_to(subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser) -> None:
    """Add the subcommand to the command line."""
    parser = subcommands.add_parser("report", parents=[common], help="show what a run came to, as one HTML page")
    parser.add_argument("run", type=Path, metavar="RUN", help="the directory of a run, finished or not")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to write the page (default: RUN/report.html)")
    parser.set_defaults(handle=handle)


def handle(arguments: argparse.Namespace) -> None:
    """Read the run, write the page, and print the document or the tables."""
    from unlinkabledfl.experiment.display import closing_summary
    from unlinkabledfl.experiment.report import load_run, write_report
    from unlinkabledfl.experiment.theory.measured import measured_theory

    with waiting("reading the run"):
        data = load_run(arguments.run)
        # With --json alone nothing is written: a script may read a directory that it cannot write.
        page = None if arguments.json and arguments.out is None else write_report(data, arguments.out)
    document = data.document()
    if arguments.json:
        theory = measured_theory(data.path, data.table, data.scenario_toml)
        print_document({**document, "theory": theory, "report": None if page is None else str(page)})
    else:
        show(closing_summary(document, report=page))
