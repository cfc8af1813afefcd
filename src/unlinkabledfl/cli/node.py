"""`unlinkabledfl node`: run one node of a federation on this host."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unlinkabledfl.cli.output import print_document
from unlinkabledfl.errors import ConfigError

if TYPE_CHECKING:
    from unlinkabledfl.experiment.node_config import FullNodeConfig
    from unlinkabledfl.experiment.node_runtime import Place


def add_to(subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser) -> None:
    """Add the subcommand to the command line."""
    parser = subcommands.add_parser("node", parents=[common], help="run one node of a federation on this host")
    parser.add_argument(
        "--config", type=Path, required=True, metavar="FILE", help="its configuration, a file that only you can read"
    )
    parser.add_argument("--model", type=Path, metavar="FILE", help="where to keep its model after each round (.npz)")
    parser.add_argument("--resume", action="store_true", help="go on with the model that lies there")
    parser.add_argument(
        "--linger",
        type=_seconds,
        metavar="SECONDS",
        help="end so long after its last round (default: relay for the others until SIGTERM or Ctrl-C)",
    )
    parser.set_defaults(handle=handle)


def handle(arguments: argparse.Namespace) -> None:
    """Run the node until its schedule, a signal or an error ends it; log to stderr."""
    import asyncio
    import math
    import sys

    from unlinkabledfl.experiment.node_config import FullNodeConfig
    from unlinkabledfl.experiment.node_main import set_up_logging

    config = FullNodeConfig.read(arguments.config)
    place = _place(arguments)
    set_up_logging(sys.stderr)
    linger_s = math.inf if arguments.linger is None else arguments.linger
    document = asyncio.run(_run(config, place, linger_s))
    if arguments.json:
        print_document(document)


async def _run(config: "FullNodeConfig", place: "Place", linger_s: float) -> dict[str, Any]:
    import asyncio
    import signal

    from unlinkabledfl.experiment.backends.process.failures import first_of
    from unlinkabledfl.experiment.node_alone import Alone
    from unlinkabledfl.experiment.node_main import stop_on_signals
    from unlinkabledfl.experiment.node_runtime import NodeRuntime

    alone = Alone(config, linger_s=linger_s)
    stop_on_signals(alone.stop)
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, alone.stop)
    try:
        await NodeRuntime(config, surroundings=alone, place=place).run()
    except BaseExceptionGroup as group:
        raise first_of(group) from group
    return {
        "node": config.node_id,
        "run": config.run_id,
        "ending": alone.ending or "stopped",
        "rounds": [{"round": number, **metrics} for number, metrics in sorted(alone.rounds.items())],
        "counters": dict(sorted(alone.counters.items())),
    }


def _place(arguments: argparse.Namespace) -> "Place":
    from unlinkabledfl.experiment.node_runtime import Place
    from unlinkabledfl.experiment.records.checkpoints import load_checkpoint

    if not arguments.resume:
        return Place(checkpoint=arguments.model)
    if arguments.model is None:
        raise ConfigError(key="--resume", got=True, takes="the file of the model too", hint="--model FILE --resume")
    before = load_checkpoint(arguments.model)
    return Place(checkpoint=arguments.model, resumes=True, first_round=before.round_number + 1)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"got {text!r}, takes a number of seconds from 0")
    return seconds
