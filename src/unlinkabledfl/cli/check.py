"""`unlinkabledfl check`: validate a scenario and show what it promises, without running it."""

import argparse
from typing import TYPE_CHECKING

from unlinkabledfl.cli.output import print_document, show

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from unlinkabledfl.experiment.figures import Indicators


def add_to(subcommands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser) -> None:
    """Add the subcommand to the command line."""
    parser = subcommands.add_parser("check", parents=[common], help="validate a scenario and show what it promises")
    parser.add_argument("scenario", metavar="SCENARIO", help="demo, paper, strong, direct, or a TOML file")
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="SECTION.KEY=VALUE",
        help="change one setting; may be given several times",
    )
    parser.set_defaults(handle=handle)


def handle(arguments: argparse.Namespace) -> None:
    """Compute the indicators, and print the document or the tables."""
    from unlinkabledfl.experiment.indicators import indicators
    from unlinkabledfl.experiment.scenario import load_scenario

    found = indicators(load_scenario(arguments.scenario, arguments.overrides))
    if arguments.json:
        print_document(found.model_dump(mode="json"))
    else:
        show(render(found))


def render(found: "Indicators") -> "RenderableType":
    """Return tables for people."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [_what(found), _cost(found), _privacy(found)]
    for caution in found.cautions:
        word, style = ("will not do", "bold red") if caution.serious else ("note", "bold yellow")
        parts.append(Text.assemble((f"{word}: ", style), (caution.key, "bold"), f": {caution.text}"))
    if not found.cautions:
        parts.append(Text("Nothing speaks against this scenario.", style="green"))
    return Group(*parts)


def _what(found: "Indicators") -> "Table":
    graph, exchange, fragments, robust = found.graph, found.exchange, found.fragments, found.robustness
    table = _table(f"{found.scenario}: {found.rounds} rounds, {found.backend}")
    degrees = (
        f"{graph.degree_min}" if graph.degree_min == graph.degree_max else f"{graph.degree_min}–{graph.degree_max}"
    )
    table.add_row("topology", f"{graph.nodes} nodes, {graph.family}, degree {degrees}")
    table.add_row("diameter", f"{graph.diameter} links")
    table.add_row("peers that routes reach", f"{exchange.reachable_mean:g}")
    table.add_row("peers that a node exchanges with", f"{exchange.partners_mean:g}")
    if exchange.joining or exchange.leaving:
        table.add_row("nodes that join, that leave", f"{exchange.joining}, {exchange.leaving}", end_section=True)
    values = "" if fragments.values is None else f", {fragments.values:,} values"
    table.add_row("model", f"{fragments.model}{values}")
    table.add_row(
        "fragments a model", " · ".join(f"{codec} {many}" for codec, many in fragments.by_codec.items()) or "?"
    )
    table.add_row(f"sent a round as {fragments.codec}", _number(fragments.per_round, "fragments a node"))
    feasible = "feasible" if robust.feasible else f"infeasible: needs {robust.needed}"
    table.add_row(
        f"{robust.rule}, B = {robust.byzantine}",
        f"{robust.candidates:g} candidates a range: {feasible}; FragKrum up to B = {robust.tolerated}",
    )
    return table


def _cost(found: "Indicators") -> "Table":
    traffic, time, resources = found.traffic, found.time, found.resources
    table = _table("Cost (estimates)")
    table.add_row("packet", f"{traffic.packet_bytes:,} bytes, {traffic.packets_per_message:g} sendings a message")
    table.add_row("cover keeps a node sending", _number(traffic.packets_per_s, "packets/s"))
    table.add_row("a round, a node", _number(traffic.packets_per_round, "packets"))
    megabytes = None if traffic.bytes_per_round is None else traffic.bytes_per_round / 1e6
    table.add_row("", _number(megabytes, "MB"), end_section=True)
    table.add_row("training, one node on one core", _number(time.training_s, "s"))
    table.add_row("exchange", f"{_number(time.exchange_s, 's')} (deadline {time.deadline_s:,.0f} s)")
    table.add_row("round", _number(time.round_s, "s"))
    clock = "run, virtual time" if found.backend == "simulation" else "run"
    table.add_row(clock, _number(time.run_s, "s"), end_section=True)
    table.add_row("on this machine", _number(resources.wall_s, "s"))
    if resources.cores is not None:
        table.add_row("cores busy", f"{resources.cores:.1f} of {resources.machine_cores}")
    table.add_row("memory", f"{resources.memory_mib:,.0f} MiB")
    table.caption = f"{time.basis}. {resources.basis}."
    return table


def _privacy(found: "Indicators") -> "Table":
    entropy, linkability = found.entropy, found.linkability
    table = _table("What may be linked")
    known = "not computed" if linkability.last_hop is None else f"{linkability.last_hop:.3f}"
    table.add_row("last hop alone names the sender", f"{known} ({linkability.basis})")
    table.add_row("guessing among those who may write", f"{linkability.guess:.3f}", end_section=True)
    table.add_row("packets held in a relay", f"{entropy.held_packets:.1f}")
    table.add_row("H_path, counted", f"{entropy.path_bits:.2f} bits")
    table.add_row("H_relay^loc, counted", f"{entropy.local_relay_bits:.2f} bits, O = {entropy.outbox_size:.0f}")
    _theory_rows(table, found)
    table.caption = f"Counted entropies describe parameters, not an adversary ({entropy.basis})."
    return table


def _theory_rows(table: "Table", found: "Indicators") -> None:
    theory = found.theory
    table.add_row("H_relay, every stage hidden", f"{theory.relay_bits:.2f} bits", end_section=True)
    if theory.bound is None or theory.bound_compromised is None or theory.multiplicity_bits is None:
        table.add_row("Theorem 1", theory.basis)
    else:
        routes = f"{theory.route_bits:.2f} bits, {theory.routes} a sender"
        table.add_row("route min-entropy, last hop known", f"{routes}, |U| = {theory.senders:.1f}")
        table.add_row("γ_T, trajectories of one sender", f"2^{theory.multiplicity_bits:.1f}")
        alone = "1: only one sender is possible" if theory.bound >= 1.0 else f"{theory.bound:.3f}"
        owned = "1: γ_T makes it say nothing" if theory.bound_compromised >= 1.0 else f"{theory.bound_compromised:.3f}"
        table.add_row("Theorem 1: p_link at most", alone)
        table.add_row(f"  with c = {theory.compromised:g} compromised", owned)
    idealized, exact = theory.all_compromised_idealized, theory.all_relays_compromised
    table.add_row(f"all compromised, c = {theory.compromised:g}", f"c^K {idealized:.4f}; all relays {exact:.4f}")


def _table(title: str) -> "Table":
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_header=False, min_width=72)
    table.add_column("what", style="dim")
    table.add_column("figure")
    return table


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "not known before the run"
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"  # noqa: PLR2004 -- three digits
