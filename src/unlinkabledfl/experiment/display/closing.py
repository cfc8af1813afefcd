"""What a run came to, in a table for people: the accuracy, what the network saw, where the report lies."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unlinkabledfl.experiment.display.words import count, data_size, percent, seconds

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["closing_summary"]


def closing_summary(document: Mapping[str, Any], *, report: Path | None = None) -> "RenderableType":
    """Make the table of a run's document, as `run` and `report` print it."""
    from rich.console import Group  # noqa: PLC0415 - readers of JSON need no tables
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(title=_title(document), title_justify="left", show_header=False)
    table.add_column("what", no_wrap=True)
    table.add_column("figure", justify="right")
    for rows in (_learning(document), _fragments(document), _network(document), _cost(document)):
        for what, figure in rows:
            table.add_row(what, figure)
        table.add_section()
    notes = [Text(f"note: {note}", style="yellow") for note in document.get("notes", ())]
    if document.get("reason"):
        notes.insert(0, Text(f"{document['status']}: {document['reason']}", style="bold red"))
    if report is not None:
        notes.append(Text.assemble("report: ", (str(report), "bold")))
    return Group(table, *notes)


def _title(document: Mapping[str, Any]) -> str:
    return f"{document['run']}: {document['status']}, {document['nodes']:,} nodes, back end {document['backend']}"


def _learning(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    rounds = document["rounds"]
    planned = document.get("planned_rounds")
    rows = [("rounds", f"{len(rounds)} of {planned}" if planned else str(len(rounds)))]
    evaluated = [row for row in rounds if row["accuracy_mean"] is not None]
    if evaluated:
        first, last = evaluated[0], evaluated[-1]
        if first is not last:
            rows.append((f"accuracy after round {first['round']}, mean of the nodes", percent(first["accuracy_mean"])))
        rows.append((f"accuracy after round {last['round']}, mean of the nodes", percent(last["accuracy_mean"])))
        rows.append(("accuracy of the least accurate node", percent(last["accuracy_min"])))
    return rows


def _fragments(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    fragments = document["fragments"]
    rows = [("fragments sent", count(fragments["sent"])), ("fragments aggregated", count(fragments["aggregated"]))]
    lost = [(name.replace("_", " "), fragments[name]) for name in ("late", "refused", "given_up")]
    rows.append(("fragments " + ", ".join(name for name, _ in lost), ", ".join(count(number) for _, number in lost)))
    completeness = [row["completeness"] for row in document["rounds"] if row["completeness"] is not None]
    if completeness:
        rows.append(("completeness, mean of the rounds", percent(sum(completeness) / len(completeness))))
    return rows


def _network(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    network = document.get("network") or {}
    if network.get("packets_sent") is None:
        return []
    rows = [("packets that the network saw, all of one size", count(network["packets_sent"]))]
    if network.get("packets_relayed") is not None:
        rows.append(("of them relayed for others", count(network["packets_relayed"])))
    if network.get("bytes_sent") is not None:
        rows.append(("bytes that the network saw", data_size(network["bytes_sent"])))
    if network.get("cover_share") is not None:
        rows.append(("cover among the packets that nodes originate", percent(network["cover_share"])))
    trips = [row["rtt_s_p50"] for row in document["rounds"] if row["rtt_s_p50"] is not None]
    if trips:
        rows.append(("until a fragment is acknowledged: median", seconds(sum(trips) / len(trips))))
    return rows


def _cost(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = []
    for key, what, write in (
        ("seconds", "a round, on the run's clock", seconds),
        ("bytes_sent_per_node", "sent by a node in a round", data_size),
        ("cpu_s_per_node", "processor time of a node in a round", seconds),
    ):
        values = [row[key] for row in document["rounds"] if row[key] is not None]
        if values:
            rows.append((what, write(sum(values) / len(values))))
    if document.get("deaths"):
        rows.append(("nodes that died", count(document["deaths"])))
    if document.get("seconds") is not None:
        rows.append(("it took", seconds(document["seconds"])))
    return rows
