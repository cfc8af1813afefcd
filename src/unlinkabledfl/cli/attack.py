"""`unlinkabledfl attack RUN`: who could be linked in a run that was traced?"""

import argparse
from pathlib import Path

from unlinkabledfl.cli.output import print_document, show, waiting


def add_to(subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser) -> None:
    """Add the subcommand to the command line."""
    parser = subcommands.add_parser(
        "attack", parents=[common], help="run every adversary against what a run left (needs monitoring.trace)"
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="the directory of a run with a trace")
    parser.add_argument(
        "--adversary",
        dest="adversaries",
        action="append",
        default=[],
        metavar="NAME",
        help="only this one: paper, route, flow, grouping or disclosure; may be given several times",
    )
    parser.add_argument(
        "--compromised",
        dest="shares",
        action="append",
        type=float,
        metavar="SHARE",
        help="the adversary also owns this share of the nodes; may be given several times (default: 0)",
    )
    parser.add_argument(
        "--targets",
        type=int,
        metavar="N",
        help="attack about so many fragments, whole models of them (default: 4000; 0: all)",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to write the page (default: RUN/attack.html)")
    parser.set_defaults(handle=handle)


def handle(arguments: argparse.Namespace) -> None:
    """Attack, write the page, and print the document or the table."""
    from unlinkabledfl.experiment.attack import PAGE, attack_run, render, write_board, write_page

    wanted = {} if arguments.targets is None else {"targets": arguments.targets}
    with waiting("attacking the run"):
        document = attack_run(arguments.run, names=arguments.adversaries, shares=arguments.shares or (0.0,), **wanted)
        write_board(document, arguments.run)
        page = write_page(document, arguments.out or arguments.run / PAGE)
    if arguments.json:
        print_document({**document, "report": str(page)})
    else:
        show(render(document))
        show(f"report: {page}")
