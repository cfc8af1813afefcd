"""`unlinkabledfl run`: train a scenario from its first round to its last, and leave a run directory behind."""

import argparse
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unlinkabledfl.cli.output import print_document, show
from unlinkabledfl.errors import ConfigError, RunError, UnlinkableError

if TYPE_CHECKING:
    from types import FrameType

    from unlinkabledfl.experiment.backends.protocol import Backend
    from unlinkabledfl.experiment.records import RunDirectory
    from unlinkabledfl.experiment.scenario import Scenario

BACKENDS = ("simulation", "process", "container")
_RUNS = Path("runs")


def add_to(subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser) -> None:
    """Add the subcommand to the command line."""
    parser = subcommands.add_parser("run", parents=[common], help="train a scenario over the mixnet")
    parser.add_argument(
        "scenario", nargs="?", metavar="SCENARIO", help="a preset (demo, paper, strong, direct) or a TOML file"
    )
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change one key of the scenario, such as mixnet.outbox_size=50; may be repeated",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="the same as --set run.seed=N")
    parser.add_argument("--backend", choices=BACKENDS, help="the same as --set run.backend=NAME")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the run's directory (default: a new one in runs/)")
    parser.add_argument(
        "--resume", type=Path, metavar="DIR", help="go on with this run, which was interrupted or failed"
    )
    parser.set_defaults(handle=handle)


def handle(arguments: argparse.Namespace) -> None:
    """Run it, show it while it goes on, and print the document or the summary."""
    from unlinkabledfl.experiment.conduct import create_run, resume_run
    from unlinkabledfl.experiment.display import closing_summary

    if arguments.resume is not None:
        _check_alone(arguments)
        scenario, directory = resume_run(arguments.resume)
    else:
        scenario = scenario_of(arguments)
        directory = create_run(scenario, arguments.out or fresh_directory(scenario))
    try:
        document = _conduct(scenario, directory, is_quiet=arguments.json)
    except (KeyboardInterrupt, UnlinkableError):
        # What there is of the run can be read all the same, and be gone on with.
        _report(directory)
        if not arguments.json:
            show(f"records: {directory.path}\ngo on with: unlinkabledfl run --resume {directory.path}")
        raise
    page = _report(directory)
    if arguments.json:
        print_document({**document, "directory": str(directory.path), "report": None if page is None else str(page)})
    else:
        show(closing_summary(document, report=page))


def _conduct(scenario: "Scenario", directory: "RunDirectory", *, is_quiet: bool) -> dict[str, Any]:
    from unlinkabledfl.experiment.conduct import conduct
    from unlinkabledfl.experiment.display import LiveDisplay

    with ExitStack() as stack:
        stack.callback(directory.release)
        stack.enter_context(_terminated_like_interrupted())
        watchers = [] if is_quiet else [stack.enter_context(LiveDisplay(directory.description()))]
        return conduct(scenario, directory=directory, backend=backend_of(scenario), watchers=watchers)


def _report(directory: "RunDirectory") -> Path | None:
    """Write the page of a run; a run is no failure because its page cannot be written."""
    from unlinkabledfl.experiment.report import load_run, write_report

    try:
        return write_report(load_run(directory.path))
    except (ConfigError, RunError) as error:
        show(f"no report was written: {error}")
        return None


def scenario_of(arguments: argparse.Namespace) -> "Scenario":
    """Return the scenario that the arguments describe."""
    from unlinkabledfl.experiment.scenario import PRESETS, load_scenario

    if arguments.scenario is None:
        raise ConfigError(key="SCENARIO", got=None, takes=f"a preset ({', '.join(PRESETS)}) or the path of a TOML file")
    overrides = list(arguments.overrides)
    if arguments.seed is not None:
        overrides.append(f"run.seed={arguments.seed}")
    if arguments.backend is not None:
        overrides.append(f"run.backend={arguments.backend}")
    return load_scenario(arguments.scenario, overrides)


def backend_of(scenario: "Scenario") -> "Backend":
    """Return the backend that the scenario names."""
    if scenario.run.backend == "process":
        from unlinkabledfl.experiment.backends.process.backend import ProcessBackend

        return ProcessBackend()
    if scenario.run.backend == "container":
        from unlinkabledfl.experiment.backends.container.backend import ContainerBackend

        return ContainerBackend()
    from unlinkabledfl.experiment.backends.simulation import SimulationBackend

    return SimulationBackend(processes=scenario.simulation.workers)


def fresh_directory(scenario: "Scenario") -> Path:
    """Return a name that says what and when, and that nothing has yet."""
    stem = f"{scenario.run.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    number = 1
    path = _RUNS / stem
    while path.exists():
        number += 1
        path = _RUNS / f"{stem}-{number}"
    return path


def _check_alone(arguments: argparse.Namespace) -> None:
    """A run is taken up as it was begun: nothing else can be said of it."""
    given = {
        "SCENARIO": arguments.scenario,
        "--set": arguments.overrides or None,
        "--seed": arguments.seed,
        "--backend": arguments.backend,
        "--out": arguments.out,
    }
    for key, value in given.items():
        if value is not None:
            raise ConfigError(key=key, got=str(value), takes="nothing beside --resume: a run goes on as it began")


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM ends a run as Ctrl-C does, with its records whole."""

    def interrupt(_number: int, _frame: "FrameType | None") -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
