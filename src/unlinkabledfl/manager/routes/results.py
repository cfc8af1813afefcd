"""`/api/runs/{run}/…`: what a run leaves: its report, its tables, the board of adversaries, all of it as a zip file."""

import json
from typing import Any

from fastapi import APIRouter
from fastapi.responses import FileResponse, HTMLResponse, StreamingResponse
from starlette.exceptions import HTTPException

from unlinkabledfl.experiment.report import load_run, report_html
from unlinkabledfl.manager.archive import zip_of
from unlinkabledfl.manager.context import Stored
from unlinkabledfl.manager.documents import Board
from unlinkabledfl.manager.exports import parquet_of
from unlinkabledfl.manager.problems import problems, problems_beside_a_file
from unlinkabledfl.manager.store import ConflictError

__all__ = ["router"]

router = APIRouter(prefix="/api/runs/{run}", tags=["results"])

_BOARD_MAX_BYTES = 16 << 20
_REPORT_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"


def _file(media_type: str) -> dict[int | str, dict[str, Any]]:
    content = {media_type: {"schema": {"type": "string"}}}
    return problems_beside_a_file(401, 404, 409, 422) | {200: {"content": content, "description": "The file."}}


@router.get("/report", response_class=HTMLResponse, responses=_file("text/html"))
def get_report(run: Stored) -> HTMLResponse:
    """Return the run's report as one page that needs nothing else, made anew from its records."""
    page = report_html(load_run(run.directory.path))
    return HTMLResponse(page, headers={"content-security-policy": _REPORT_POLICY})


@router.get("/metrics.csv", response_class=FileResponse, responses=_file("text/csv"))
def get_metrics_csv(run: Stored) -> FileResponse:
    """Return all figures, in long form: communication, delivery, routing, learning, processor and memory."""
    return _sent(run, "metrics.csv", "text/csv; charset=utf-8")


@router.get("/events.csv", response_class=FileResponse, responses=_file("text/csv"))
def get_events_csv(run: Stored) -> FileResponse:
    """Return all events."""
    return _sent(run, "events.csv", "text/csv; charset=utf-8")


@router.get("/metrics.parquet", response_class=StreamingResponse, responses=_file("application/vnd.apache.parquet"))
def get_metrics_parquet(run: Stored) -> StreamingResponse:
    """Return the same as columns; of a run that goes on, what there is by now."""
    return StreamingResponse(
        parquet_of(run),
        media_type="application/vnd.apache.parquet",
        headers=_as_file(f"{run.id}.parquet"),
    )


@router.get("/archive", response_class=StreamingResponse, responses=_file("application/zip"))
def get_archive(run: Stored) -> StreamingResponse:
    """Return the run directory as a zip file, without the nodes' keys."""
    return StreamingResponse(
        zip_of(run.directory.path, name=run.id), media_type="application/zip", headers=_as_file(f"{run.id}.zip")
    )


@router.get("/board", responses=problems(401, 404, 409, 422))
def get_board(run: Stored) -> Board:
    """Return how well adversaries linked packets of this run to senders, if `unlinkabledfl attack` was run on it."""
    path = run.directory.board_path
    if not path.is_file():
        raise HTTPException(404, f"{run.id} was not attacked: `unlinkabledfl attack` makes its board")
    try:
        if path.stat().st_size > _BOARD_MAX_BYTES:
            raise ConflictError(f"{path.name} has more than {_BOARD_MAX_BYTES:,} bytes")
        document = json.loads(path.read_bytes())
        return Board(board=tuple(document["board"]), document=document)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConflictError(f"{path.name} cannot be read: {error}") from error


def _sent(run: Stored, name: str, media_type: str) -> FileResponse:
    path = run.directory.path / name
    if not path.is_file():
        raise HTTPException(404, f"{run.id} has no {name} yet")
    return FileResponse(path, media_type=media_type, filename=f"{run.id}-{name}")


def _as_file(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}
