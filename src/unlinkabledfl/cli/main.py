"""Parse the command line, hand over to a subcommand, and turn what it raises into a sentence and an exit code."""

import argparse
import os
import sys
from collections.abc import Sequence

from unlinkabledfl import __version__
from unlinkabledfl.cli import (
    attack,
    bench,
    check,
    compare,
    containers,
    data,
    node,
    report,
    reproduce,
    run,
    serve,
    tune,
)
from unlinkabledfl.cli.exit_codes import ExitCode
from unlinkabledfl.errors import ConfigError, UnlinkableError

_EXIT_CODES = (
    f"exit codes: {ExitCode.OK} done, {ExitCode.BUG} a bug, {ExitCode.CONFIG} arguments or configuration cannot work, "
    f"{ExitCode.FAILED} the job failed, {ExitCode.INTERRUPTED} interrupted"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (default: the process's own) and return its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        arguments.handle(arguments)
        sys.stdout.flush()
    except UnlinkableError as error:
        if arguments.debug:
            raise
        print(f"unlinkabledfl: {error}", file=sys.stderr)
        return ExitCode.CONFIG if isinstance(error, ConfigError) else ExitCode.FAILED
    except KeyboardInterrupt:
        if arguments.debug:
            raise
        print("unlinkabledfl: interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes stdout once more when it ends, and would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.READER_GONE
    return ExitCode.OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="unlinkabledfl",
        description="Decentralized federated learning over a mixnet of its own participants.",
        epilog=_EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version=f"unlinkabledfl {__version__}")
    # Every subcommand takes these, so that they may stand where people put them: at the end.
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print one JSON document on stdout, for machines")
    common.add_argument("--debug", action="store_true", help="show the traceback of an error")
    subcommands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (run, check, report, compare, attack, reproduce, tune, serve, node, containers, data, bench):
        command.add_to(subcommands, common)
    return parser
