"""`unlinkabledfl bench node`: what a whole real node costs, in CPU, in memory, and in what its timing gives away.

- A relay at saturation: link in, Sphinx, mixer, bookkeeping, link out, in CPU µs a packet, datagrams of 1,280 bytes;
  beside it a reference relay of aioquic and sphinxmix that is fed as many packets of the same body in the same run.
- The same at ten packets a second, where waking up costs more than the work.
- A mesh of real nodes that train: cores that their mixes use at fifty packets a second each, what they hold in memory,
  and whether everything arrives.
- Gaps between emissions during training and while idle.

CPU time is that of the measured process, system calls included. Memory is proportional: a page that n processes share
counts 1/n for each.
"""

import asyncio
import logging
import time
from importlib.util import find_spec
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.environment import describe
from benchmarks.node_emission import measure_emission
from benchmarks.node_feeds import Feed, OurFeed, ReferenceFeed, saturate, trickle
from benchmarks.node_mesh import NODES, PACKETS_PER_S, measure_mesh
from benchmarks.node_relays import DATAGRAM_BYTES
from unlinkabledfl.experiment.backends.process.forkserver import ForkServer

if TYPE_CHECKING:
    from rich.console import RenderableType

BARS: dict[str, tuple[str, float]] = {
    "cpu_us_per_hop": ("≤", 250.0),
    "ratio": ("≥", 4.0),
    "mesh_cores": ("≤", 1.3),
    "mesh_completeness": ("≥", 1.0),
    "pss_mix_mib": ("≤", 20.0),
    "pss_node_mib": ("≤", 45.0),
    "emission_ks_p": ("≥", 0.01),
}
"""What the README claims."""

SLOW_RATE_PER_S = 10.0
_OURS_A_SAMPLE = 1_000
_THEIRS_A_SAMPLE = 200
_SLOW_SAMPLE = 100


def measure(*, rounds: int = 5) -> dict[str, Any]:
    """Measure and return the document that `bench node --json` prints."""
    started = time.perf_counter()
    logging.getLogger("quic").setLevel(logging.ERROR)  # aioquic and qh3 tell of every connection
    document = asyncio.run(_measure_processes(rounds))
    mesh = measure_mesh()
    document["mesh"] = mesh
    document["mesh_cores"] = mesh["cores"]
    document["mesh_completeness"] = mesh["completeness"]
    document["pss_mix_mib"] = mesh["pss_mix_mib"]
    document["pss_node_mib"] = mesh["pss_node_mib"]
    document["rounds"] = rounds
    document["datagram_bytes"] = DATAGRAM_BYTES
    document |= describe("qh3", "aioquic", "sphinxmix", "torch")
    document["seconds"] = time.perf_counter() - started
    return document


async def _measure_processes(rounds: int) -> dict[str, Any]:
    server = ForkServer(preload=("benchmarks.node_relays", "benchmarks.node_emission"))
    await server.start()
    try:
        feeds: dict[str, tuple[Feed, int]] = {"ours": (OurFeed(), _OURS_A_SAMPLE)}
        if find_spec("aioquic") is not None and find_spec("sphinxmix") is not None:
            feeds["reference"] = ReferenceFeed(), _THEIRS_A_SAMPLE
        relays = await _measure_relays(server, feeds, rounds)
        return relays | await measure_emission(server)
    finally:
        await server.close()


async def _measure_relays(server: ForkServer, feeds: dict[str, tuple[Feed, int]], rounds: int) -> dict[str, Any]:
    fast: dict[str, list[float]] = {name: [] for name in feeds}
    for feed, sample in feeds.values():
        await feed.start(server)
        await saturate(feed, feed.make(sample // 2))  # lets congestion windows open
    for _ in range(rounds):
        for name, (feed, sample) in feeds.items():
            fast[name].append(await saturate(feed, feed.make(sample)))
    slow = {
        name: await trickle(feed, feed.make(_SLOW_SAMPLE), rate_per_s=SLOW_RATE_PER_S)
        for name, (feed, _) in feeds.items()
    }
    for feed, _ in feeds.values():
        await feed.stop()
    us = {name: median(samples) for name, samples in fast.items()}
    theirs = us.get("reference")
    return {
        "cpu_us_per_hop": us["ours"],
        "reference_cpu_us_per_hop": theirs,
        "ratio": None if theirs is None else theirs / us["ours"],
        "slow_cpu_us_per_hop": slow["ours"],
        "slow_reference_cpu_us_per_hop": slow.get("reference"),
        "slow_rate_per_s": SLOW_RATE_PER_S,
    }


def render(document: dict[str, Any]) -> "RenderableType":
    """Return the tables that people see."""
    from rich.console import Group
    from rich.table import Table

    costs = Table(
        title=f"a relay, CPU µs a packet, datagrams of {document['datagram_bytes']:,} B", title_justify="left"
    )
    for column in ("", "ours", "aioquic + sphinxmix"):
        costs.add_column(column, justify="left" if not column else "right")
    costs.add_row("at saturation", _number(document["cpu_us_per_hop"]), _number(document["reference_cpu_us_per_hop"]))
    costs.add_row(
        f"at {document['slow_rate_per_s']:g} packets a second",
        _number(document["slow_cpu_us_per_hop"]),
        _number(document["slow_reference_cpu_us_per_hop"]),
    )
    mesh = document["mesh"]
    nodes = Table(title=f"{mesh['nodes']} real nodes that train, four links each", title_justify="left")
    nodes.add_column("")
    nodes.add_column("measured", justify="right")
    nodes.add_row("packets a second and node", f"{mesh['packets_per_s_and_node']:.1f}")
    nodes.add_row("CPU µs a packet, all that the mixes do", _number(mesh["cpu_us_per_packet"]))
    nodes.add_row("memory of the largest mix process, MiB", f"{mesh['pss_mix_mib_max']:.1f}")
    nodes.add_row("memory of the largest node, MiB", f"{mesh['pss_node_mib_max']:.1f}")
    nodes.add_row("seconds a round", f"{mesh['seconds_a_round']:.1f}")
    bars = Table(title="what is claimed", title_justify="left")
    for column in ("", "measured", "claimed", "holds"):
        bars.add_column(column, justify="left" if not column else "right")
    for name, (sign, bar) in BARS.items():
        value = document[name]
        holds = "–" if value is None else "yes" if (value <= bar if sign == "≤" else value >= bar) else "no"
        bars.add_row(_TITLES[name], _number(value), f"{sign} {bar:g}", holds)
    notes = [document["machine"]["cpu"]]
    if document["reference_cpu_us_per_hop"] is None:
        notes.append("nothing to compare with: aioquic or sphinxmix is not installed (extra `bench`)")
    return Group(costs, nodes, bars, *notes)


_TITLES = {
    "cpu_us_per_hop": "relay at saturation, CPU µs",
    "ratio": "reference / ours",
    "mesh_cores": f"cores for {NODES} mixes at {PACKETS_PER_S:g} packets/s",
    "mesh_completeness": "share of expected fragments that arrived",
    "pss_mix_mib": "memory of a mix process, MiB",
    "pss_node_mib": "memory of a node with its learner, MiB",
    "emission_ks_p": "gaps, training against idle: p",
}


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
