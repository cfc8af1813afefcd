"""`/api/runs/{run}/…`: watch a run: its graph, its nodes, its curves, and everything it tells, as a stream."""

from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse

from unlinkabledfl.experiment.records import Problems
from unlinkabledfl.experiment.records.journal import read_records
from unlinkabledfl.manager.context import Here, RunId, Stored
from unlinkabledfl.manager.curves import curves_of
from unlinkabledfl.manager.details import message_of, node_list
from unlinkabledfl.manager.documents import (
    EventList,
    EventMessage,
    LogText,
    NodeList,
    RecordPage,
    SeriesList,
    Topology,
)
from unlinkabledfl.manager.problems import problems, problems_beside_a_file
from unlinkabledfl.manager.streaming import MEDIA_TYPE, stream_of
from unlinkabledfl.manager.tails import read_tail

__all__ = ["router"]

router = APIRouter(prefix="/api/runs/{run}", tags=["watching"])

After = Annotated[int, Query(ge=0, le=2**53, description="A position that was told before; 0: from the beginning.")]
MetricNames = Annotated[list[str], Query(max_length=32, description="Names in docs/metrics.md; several are several.")]


@router.get("/topology", responses=problems(401, 404, 409, 422))
def get_topology(run: Stored) -> Topology:
    """Return the graph as the run began."""
    found = Problems()
    edges = run.directory.edges(found)
    nodes = max(run.description().nodes, 1 + max((max(edge) for edge in edges), default=-1))
    return Topology(nodes=nodes, edges=tuple(edges), notes=tuple(found.sentences()))


@router.get("/nodes", responses=problems(401, 404, 409, 422))
def list_nodes(run: Stored, context: Here) -> NodeList:
    """Return every node's state, last figures and last error, and the position from which to stream on."""
    with context.followers.up_to_date(run.directory.path) as followed:
        return node_list(run, followed)


@router.get("/events", responses=problems(401, 404, 409, 422))
def list_events(run: Stored, context: Here) -> EventList:
    """Return what happened once: joins, exits, attacks, deaths, lost links, notes."""
    with context.followers.up_to_date(run.directory.path) as followed:
        messages = [message_of(position, event) for position, event in followed.events]
    return EventList(events=tuple(message for message in messages if isinstance(message, EventMessage)))


@router.get("/series", responses=problems(401, 404, 409, 422))
def list_series(
    run: Stored,
    context: Here,
    metric: MetricNames = [],  # noqa: B006 - FastAPI copies defaults
    node: Annotated[int | None, Query(ge=0, le=10_000_000, description="Only of this node.")] = None,
    points: Annotated[int, Query(ge=2, le=2_000, description="How many a gauge's curve has at most.")] = 300,
) -> SeriesList:
    """Return curves of metrics: over rounds, and of gauges over the run clock, with their spread over nodes."""
    with context.followers.up_to_date(run.directory.path) as followed:
        table, position = followed.table(), followed.position
    series = [curve for name in metric for curve in curves_of(table, name, node=node, points=points)]
    return SeriesList(series=tuple(series), metrics=tuple(sorted(table.names)), position=position)


@router.get("/records", responses=problems(401, 404, 409, 422))
def list_records(run: Stored, after: After = 0, most: Annotated[int, Query(ge=1, le=4_096)] = 1_000) -> RecordPage:
    """Return what the stream would say, a page at a time."""
    records, position = read_records(run.directory.path, after=after, most=most)
    messages = tuple(message_of(at, record) for at, record in records)
    return RecordPage(records=messages, position=position, is_live=run.is_live or len(records) == most)


@router.get(
    "/stream",
    response_class=StreamingResponse,
    responses=problems_beside_a_file(401, 404, 409, 422)
    | {
        200: {
            "description": "Server-Sent Events. Their type is the message's `kind`, their data one message as JSON, "
            "their id its position; the last one, `end`, has none.",
            "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
        }
    },
)
def stream_records(
    run: RunId,
    context: Here,
    after: After = 0,
    last_event_id: Annotated[
        str, Header(pattern=r"^[0-9]{0,15}$", description="What a browser sends when it comes back.")
    ] = "",
) -> StreamingResponse:
    """Tell everything that the run tells, from a position on, until it ends. Every viewer gets the same."""
    stored = context.store.get(run)
    begin = int(last_event_id) if last_event_id else after
    read_records(stored.directory.path, after=begin, most=1)  # a position that cannot be is refused before it begins
    return StreamingResponse(stream_of(context.store, run, after=begin), media_type=MEDIA_TYPE)


@router.get("/log", responses=problems(401, 404, 409, 422))
def get_log(
    run: Stored,
    node: Annotated[int | None, Query(ge=0, le=10_000_000, description="Whose; without: of the run itself.")] = None,
) -> LogText:
    """Return the end of a log."""
    return read_tail(run.directory, node)
