"""`unlinkabledfl tune`: path length, delays, rates and cover for an advantage and a bandwidth, confirmed by a run."""

import argparse
from pathlib import Path

from unlinkabledfl.cli.output import print_document, show, working


def add_to(subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser) -> None:
    """Add the subcommand to the command line."""
    parser = subcommands.add_parser(
        "tune", parents=[common], help="propose delays, rates and path length for an advantage and a bandwidth"
    )
    parser.add_argument(
        "scenario", nargs="?", default="strong", metavar="SCENARIO", help="the workload: a preset or a TOML file"
    )
    parser.add_argument(
        "--target-advantage",
        type=float,
        required=True,
        metavar="E",
        help="by how much the best guess at a sender may beat a uniform one, such as 0.02",
    )
    parser.add_argument("--bandwidth", required=True, metavar="B", help="what a node may send, such as 2MB/s")
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change one key of the scenario, such as topology.nodes=100; may be repeated",
    )
    parser.add_argument("--targets", type=int, metavar="N", help="how many packets the confirming run is attacked on")
    parser.add_argument(
        "--frontier", type=Path, metavar="FILE", help="measured points (default: those that come with the package)"
    )
    parser.set_defaults(handle=handle)


def handle(arguments: argparse.Namespace) -> None:
    """Propose, confirm, and print the document or the table."""
    from unlinkabledfl.experiment.linking.bandwidth import parse_bandwidth
    from unlinkabledfl.experiment.linking.frontier import read_points
    from unlinkabledfl.experiment.linking.tuning import TARGETS, render, tune
    from unlinkabledfl.experiment.scenario import load_scenario

    points, about = read_points(arguments.frontier)
    scenario = load_scenario(arguments.scenario, arguments.overrides)
    bandwidth = parse_bandwidth(arguments.bandwidth)
    with working("tuning") as tell:
        document = tune(
            scenario,
            target_advantage=arguments.target_advantage,
            bandwidth_bytes_per_s=bandwidth,
            points=points,
            tell=tell,
            targets=arguments.targets or TARGETS,
        )
    measured = {key: about.get(key) for key in ("command", "seed", "targets_wanted", "versions")}
    if arguments.json:
        print_document({**document, "frontier": measured})
    else:
        show(render(document))
