"""A run as documents: what its directory and its follower know, in the shape of the API."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, assert_never

from unlinkabledfl.experiment.records import EventKind
from unlinkabledfl.experiment.records.journal import Record
from unlinkabledfl.experiment.records.tables import Event, MetricRecord, Phase
from unlinkabledfl.manager.documents import (
    EventMessage,
    MetricsMessage,
    NodeList,
    NodeState,
    PhaseMessage,
    RoundSummary,
    RunDetail,
    RunStatus,
)
from unlinkabledfl.manager.following import FollowedRun, NodeSoFar, finite
from unlinkabledfl.manager.store import StoredRun, brief_of, rounds_of

__all__ = ["detail_of", "message_of", "node_list"]


def detail_of(run: StoredRun, followed: FollowedRun | None = None) -> RunDetail:
    """Return a run with its rounds and sums; of one that goes on, how far it is."""
    summary, brief = run.summary, brief_of(run)
    rounds = rounds_of(summary)
    planned = brief["planned_rounds"]
    share = min(1.0, len(rounds) / planned) if planned else 0.0
    if run.status is RunStatus.FINISHED:
        share = 1.0
    elif followed is not None and planned and brief["nodes"]:
        share = min(1.0, followed.rounds_done() / (planned * brief["nodes"]))
    return RunDetail(
        **brief,
        by_round=tuple(
            RoundSummary(**{name: _number(row.get(name)) for name in _ROUND}, round=row["round"]) for row in rounds
        ),
        fragments={name: int(value) for name, value in _figures(summary.get("fragments")).items() if value is not None},
        network=_figures(summary.get("network")),
        run_clock_s=max(_number(summary.get("run_clock_s")) or 0.0, 0.0 if followed is None else followed.clock_s),
        share_done=share,
        time_left_s=_time_left_s(run, share) if run.status is RunStatus.RUNNING else None,
        notes=tuple(str(note) for note in notes) if isinstance(notes := summary.get("notes"), list) else (),
        machine=machine if isinstance(machine := summary.get("machine"), dict) else None,
        versions=versions if isinstance(versions := summary.get("versions"), dict) else None,
        has_parquet=run.directory.parquet_path.is_file(),
        has_board=run.directory.board_path.is_file(),
    )


_ROUND = tuple(name for name in RoundSummary.model_fields if name != "round")


def _time_left_s(run: StoredRun, share: float) -> float | None:
    """Estimate it from the time that was needed so far: what the last summary says, and what passed since."""
    if share <= 0.0:
        return None
    try:
        written_at = datetime.fromtimestamp(run.directory.summary_path.stat().st_mtime, UTC)
    except OSError:
        return None
    since_s = max(0.0, (datetime.now(UTC) - written_at).total_seconds())
    elapsed_s = (_number(run.summary.get("seconds")) or 0.0) + since_s
    return elapsed_s * (1.0 - share) / share


def message_of(position: int, record: Record) -> MetricsMessage | EventMessage | PhaseMessage:
    """Return what a viewer gets of one record."""
    match record:
        case MetricRecord():
            return MetricsMessage(
                position=position,
                time_s=record.time_s,
                round=record.round_number,
                node=record.node,
                values=finite(record.values),
            )
        case Event():
            return EventMessage(
                position=position, time_s=record.time_s, node=record.node, what=record.kind, text=record.text
            )
        case Phase():
            return PhaseMessage(
                position=position,
                time_s=record.time_s,
                round=record.round_number,
                node=record.node,
                phase=record.phase,
            )
        case _:
            assert_never(record)


def node_list(run: StoredRun, followed: FollowedRun) -> NodeList:
    """Return all nodes as they stand."""
    description = run.description()
    known = max(description.nodes, max(followed.nodes, default=-1) + 1)
    silent = NodeSoFar()
    planned = description.planned_rounds
    return NodeList(
        nodes=tuple(_node_state(node, followed.nodes.get(node, silent), planned=planned) for node in range(known)),
        clock_s=followed.clock_s,
        position=followed.position,
    )


def _node_state(node: int, known: NodeSoFar, *, planned: int) -> NodeState:
    return NodeState(
        node=node,
        state=_state(known, planned),
        phase=None if known.ended is not None else known.phase,
        round=known.round_number,
        heard_at_s=known.heard_at_s,
        poisons=known.poisons,
        last_error=known.last_error,
        gauges=finite(known.gauges),
        figures=finite(known.figures),
    )


def _state(known: NodeSoFar, planned: int) -> Literal["waiting", "running", "finished", "left", "dead"]:
    if known.ended is EventKind.DEATH:
        return "dead"
    if known.ended is EventKind.EXIT:
        return "left"
    if planned and known.rounds_done >= planned:
        return "finished"
    return "waiting" if known.heard_at_s is None else "running"


def _figures(table: object) -> dict[str, float | None]:
    return {str(name): _number(value) for name, value in table.items()} if isinstance(table, Mapping) else {}


def _number(value: Any) -> float | None:  # noqa: ANN401 - whatever a summary holds
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
