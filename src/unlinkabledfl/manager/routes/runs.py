"""`/api/runs`: begin, list, stop, resume, delete, compare."""

from typing import Annotated

from fastapi import APIRouter, Query

from unlinkabledfl.errors import ConfigError, RunError
from unlinkabledfl.experiment.compare import compare_runs
from unlinkabledfl.experiment.report import load_run
from unlinkabledfl.experiment.scenario import parse_scenario
from unlinkabledfl.manager.context import Here, RunId, Stored
from unlinkabledfl.manager.details import detail_of
from unlinkabledfl.manager.documents import (
    Comparison,
    RunDetail,
    RunList,
    RunScenario,
    RunStatus,
    Start,
    Stop,
)
from unlinkabledfl.manager.expecting import check_reach
from unlinkabledfl.manager.problems import problems, scenario_of
from unlinkabledfl.manager.store import RUN_ID, ConflictError, NoSuchRunError

__all__ = ["router"]

router = APIRouter(prefix="/api", tags=["runs"])


@router.get("/runs", responses=problems(401, 422))
def list_runs(
    context: Here,
    status: Annotated[RunStatus | None, Query(description="Only runs that stand so.")] = None,
    first: Annotated[int, Query(ge=0, le=1_000_000, description="How many of the youngest to leave out.")] = 0,
    most: Annotated[int, Query(ge=1, le=500)] = 100,
) -> RunList:
    """Return the runs of the folder, the youngest first, also those that were begun on the command line."""
    briefs = []
    for run in context.store.ids():
        try:
            brief = context.store.brief(run)
        except NoSuchRunError:
            continue  # deleted meanwhile
        if status is None or brief.status is status:
            briefs.append(brief)
    return RunList(runs=tuple(briefs[first : first + most]), total=len(briefs))


@router.post("/runs", status_code=201, responses=problems(400, 401, 403, 409, 413, 422, 507))
def launch_run(start: Start, context: Here) -> RunDetail:
    """Begin a run of this scenario, as a process that outlives the manager."""
    scenario = scenario_of(start.scenario)
    check_reach(scenario, context.settings)
    return detail_of(context.store.launch(scenario))


@router.get("/runs/{run}", responses=problems(401, 404, 422))
def get_run(run: Stored, context: Here) -> RunDetail:
    """Return all that is known of a run as a whole."""
    if not run.is_live:
        return detail_of(run)
    with context.followers.up_to_date(run.directory.path) as followed:
        return detail_of(run, followed)


@router.delete("/runs/{run}", status_code=204, responses=problems(401, 403, 404, 409, 422, 507))
def delete_run(run: RunId, context: Here) -> None:
    """Remove a run that does not go on from the disk."""
    directory = context.store.get(run).directory.path
    context.store.delete(run)
    context.followers.forget(directory)


@router.post("/runs/{run}/stop", responses=problems(400, 401, 403, 404, 409, 413, 422))
def stop_run(run: RunId, stop: Stop, context: Here) -> RunDetail:
    """End a run. Without force its records and models are saved first, which takes some seconds."""
    return detail_of(context.store.stop(run, force=stop.force))


@router.post("/runs/{run}/resume", responses=problems(401, 403, 404, 409, 422, 507))
def resume_run(run: RunId, context: Here) -> RunDetail:
    """Let a run go on that was interrupted or has failed, from its last models."""
    return detail_of(context.store.resume(run))


@router.get("/runs/{run}/scenario", responses=problems(401, 404, 409, 422))
def get_scenario(run: Stored) -> RunScenario:
    """Return what the run was asked."""
    toml = run.directory.scenario_toml()
    try:
        return RunScenario(toml=toml, scenario=parse_scenario(toml))
    except ConfigError:
        return RunScenario(toml=toml, scenario=None)


@router.get("/compare", responses=problems(401, 404, 409, 422))
def compare(
    context: Here,
    a: Annotated[str, Query(pattern=RUN_ID, max_length=100, description="The id of one run.")],
    b: Annotated[str, Query(pattern=RUN_ID, max_length=100, description="The id of the other; ratios are b to a.")],
) -> Comparison:
    """Return what differs between two runs: what was asked, what was learned, what it cost."""
    try:
        one, other = (load_run(context.store.get(run).directory.path) for run in (a, b))
    except RunError as error:
        raise ConflictError(str(error)) from error
    return Comparison.model_validate(compare_runs(one, other).document())
