"""`unlinkabledfl run`: run a scenario. Until the learning exists, `demo` is the one there is."""

import argparse

from unlinkabledfl.cli.output import print_document, show, waiting


def add_to(subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser) -> None:
    """Add the subcommand to the command line."""
    parser = subcommands.add_parser("run", parents=[common], help="run a scenario")
    parser.add_argument("scenario", choices=["demo"], help="which one")
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="the same seed gives the same run (default: 1)"
    )
    parser.set_defaults(handle=handle)


def handle(arguments: argparse.Namespace) -> None:
    """Run it, and print the document or the tables."""
    from unlinkabledfl.experiment.demo import render, run_demo

    with waiting(f"running: {arguments.scenario}"):
        document = run_demo(seed=arguments.seed)
    if arguments.json:
        print_document(document)
    else:
        show(render(document))
