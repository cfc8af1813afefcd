"""The board as a picture, and the numbers behind it."""

from collections.abc import Mapping, Sequence

from unlinkabledfl.experiment.report.charts import Cell, HeatTable, bytes_unit, heat_table, seconds_unit
from unlinkabledfl.experiment.report.linking.rows import Row, adversaries, configurations, of
from unlinkabledfl.experiment.report.page import Figure, Table

__all__ = ["board_figure", "board_table"]


def board_figure(board: Sequence[Row], published: Mapping[str, float]) -> Figure:
    """Draw the accuracy of every adversary against every configuration."""
    names, columns = configurations(board), adversaries(board)
    title = "How often each adversary names the sender"
    return Figure(
        title=title,
        caption="Top-1 accuracy and its 95% interval over senders. Guess: the mean of 1/|U|, guessing among the "
        "senders that route and last hop allow; a framed cell cannot be told from it."
        + (
            " Published: what the published evaluation reports of its own adversary, which is paper here."
            if published
            else ""
        ),
        svg=heat_table(
            HeatTable(
                name="board",
                title=title,
                description=f"A table of {len(names)} configurations and {len(columns)} adversaries.",
                rows=names,
                columns=columns,
                cells={(str(row["configuration"]), str(row["adversary"])): _cell(row) for row in board},
                aside={name: _aside(of(board, configuration=name), published, name) for name in names},
                aside_headings=["guess", *(["published"] if published else []), "round trip", "sent a round"],
                quiet="its interval reaches down to the guess",
            )
        ),
        is_wide=True,
    )


def _cell(row: Row) -> Cell:
    low, high = float(row["ci_low"]), float(row["ci_high"])
    believed = f"believed {row['p_link_mean']:.3f} of its best guesses"
    return Cell(
        value=float(row["accuracy"]),
        words=f"{row['accuracy']:.3f}",
        under=f"{low:.3f}–{high:.3f}",
        about=f"{row['adversary']} on {row['configuration']}: {row['targets']:,} targets, {believed}",
        is_quiet=low <= float(row["baseline"]),
    )


def _aside(rows: Mapping[str, Row], published: Mapping[str, float], name: str) -> list[str]:
    some = next(iter(rows.values()))
    found = [f"{some['baseline']:.3f}"]
    if published:
        found.append(f"{published[name]:.2f}" if name in published else "")
    trip_s, sent = some.get("rtt_s_mean"), some.get("bytes_per_node_round")
    found.append("–" if trip_s is None else seconds_unit(trip_s).text(trip_s))
    found.append("–" if sent is None else bytes_unit(sent).text(sent))
    return found


def board_table(board: Sequence[Row]) -> Table:
    """Return every figure of every row."""
    headings = [
        "configuration", "adversary", "targets", "accuracy", "95% interval", "p_link", "1/|U|", "published 1/|U|", "ε",
        "Shannon bits", "min-entropy bits", "calibration error", "all relays compromised", "round trip, s",
        "MB a round",
    ]  # fmt: skip
    return Table(caption="Every figure of the board", headings=headings, rows=[_numbers(row) for row in board])


def _numbers(row: Row) -> list[str]:
    trip_s, sent = row.get("rtt_s_mean"), row.get("bytes_per_node_round")
    return [
        str(row["configuration"]),
        str(row["adversary"]),
        f"{row['targets']:,}",
        f"{row['accuracy']:.4f}",
        f"{row['ci_low']:.4f}–{row['ci_high']:.4f}",
        *(f"{row[name]:.4f}" for name in ("p_link_mean", "baseline", "published_baseline", "advantage")),
        *(f"{row[name]:.3f}" for name in ("shannon_bits", "min_bits")),
        f"{row['calibration_error']:.4f}",
        f"{row['all_relays_compromised']:.4f}",
        "–" if trip_s is None else f"{trip_s:.2f}",
        "–" if sent is None else f"{sent / 1e6:.2f}",
    ]
