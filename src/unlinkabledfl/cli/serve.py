"""`unlinkabledfl serve`: the experiment manager and its dashboard, for the browser of this machine."""

import argparse
import os
import sys
from pathlib import Path

from unlinkabledfl.errors import ConfigError

TOKEN_VARIABLE = "UNLINKABLEDFL_TOKEN"  # noqa: S105 - its name


def add_to(subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser) -> None:
    """Add the subcommand to the command line."""
    parser = subcommands.add_parser(
        "serve", parents=[common], help="configure, launch and watch experiments in the browser"
    )
    parser.add_argument("--port", type=int, default=8765, metavar="P", help="where to listen; 0: any that is free")
    parser.add_argument(
        "--token",
        metavar="T",
        help=f"what whoever comes in must know (default: ${TOKEN_VARIABLE}, else a new one, which is printed)",
    )
    parser.add_argument("--runs", type=Path, default=Path("runs"), metavar="DIR", help="where runs lie (default: runs)")
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="elsewhere than on this machine needs a long --token"
    )
    parser.add_argument(
        "--name", action="append", default=[], metavar="HOST", help="another host name under which it may be asked for"
    )
    parser.add_argument("--max-runs", type=int, default=4, metavar="N", help="how many runs may go on at once")
    parser.add_argument(
        "--trust-scenarios",
        action="store_true",
        help="scenarios may name code to import, files to read, and a container engine, image and plug-ins",
    )
    parser.set_defaults(handle=handle)


def handle(arguments: argparse.Namespace) -> None:
    """Serve until Ctrl-C or SIGTERM. Runs go on."""
    try:
        from unlinkabledfl.manager.serving import serve
        from unlinkabledfl.manager.settings import Settings, is_loopback, new_token
    except ImportError as error:
        hint = "pip install 'unlinkabledfl[manager]'"
        raise ConfigError(key="serve", got=error.name, takes="an installation with the manager", hint=hint) from error
    if not 0 <= arguments.port <= 65_535:  # noqa: PLR2004 - the last port there is
        raise ConfigError(key="--port", got=arguments.port, takes="a whole number from 0 to 65535")
    if arguments.max_runs < 1:
        raise ConfigError(key="--max-runs", got=arguments.max_runs, takes="a whole number from 1")
    # Taken out of the environment, so that no run inherits it.
    kept = os.environ.pop(TOKEN_VARIABLE, None)
    given = kept if arguments.token is None else arguments.token
    if given is None and not is_loopback(arguments.host):
        hint = f"--token or ${TOKEN_VARIABLE}"
        takes = "an address of this machine only, unless a token is given"
        raise ConfigError(key="--host", got=arguments.host, takes=takes, hint=hint)
    settings = Settings(
        runs=arguments.runs,
        token=new_token() if given is None else given,
        host=arguments.host,
        port=arguments.port,
        names=tuple(arguments.name),
        running_max=arguments.max_runs,
        trusts_scenarios=arguments.trust_scenarios,
    )
    serve(settings, stdout=sys.stdout, as_json=arguments.json)
