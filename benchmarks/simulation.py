"""What virtual time costs: CPU per packet-hop and bytes per node from 32 to 10,000 peers; how fast real packets are.

Two questions, two configurations, each node with about ten packets a second on its links and walks of K = 2 over a
circulant of degree 4:

- cost by size: sealed packets and the default Poisson mixing. It is stationary after some twenty seconds, so that one
  virtual second of ten thousand peers and a hundred of a hundred peers hold the same work. (In the published outbox all
  nodes refill at the same instants, and what a second holds depends on where in the cycle it lies.)
- speed: real packets and the published parameters (N = 32, O = 100, μ = 0.1 s), in turns of two whole outbox cycles.

All worlds are warm when measured and take turns in one process; medians count. The cyclic collector is off, and memory
lies on large pages where the kernel can do that, as befits a long run. A packet-hop is one packet handed from one peer
to another: building, relaying, acknowledging and all timers included. Keys are known from the start and do not rotate.
`bytes_per_node` is resident memory at the end of the warm-up; replay windows go on growing, by about a kilobyte a
second and node, until their key is retired.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from resource import getpagesize
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.environment import describe
from unlinkabledfl.mixnet.config import MixSettings
from unlinkabledfl.mixnet.mixers import MixerSettings, OutboxSettings, PoissonSettings
from unlinkabledfl.mixnet.packets import PacketFormat
from unlinkabledfl.mixnet.sphinx_packets import SphinxPackets
from unlinkabledfl.mixnet.topology import circulant
from unlinkabledfl.simulation import SealedPackets, World, collector_paused
from unlinkabledfl.simulation.huge_pages import use_huge_pages
from unlinkabledfl.simulation.mixnet import MixnetPlan, RouteName, build_mixnet_world
from unlinkabledfl.sphinx import Geometry, Sphinx

if TYPE_CHECKING:
    from rich.console import RenderableType

SIZES = (32, 100, 1_000, 10_000)
REAL_NODES = 32
WARM_UP_S = 25.0
REAL_WARM_UP_S = 40.0
TURN_HOPS = 40_000
REAL_TURN_S = 20.0
ROUNDS = 5
PACKETS_PER_NODE_S = 10.0
BARS = {"growth_100_to_10000": 1.20, "speedup_real_packets": 10.0}


@dataclass(slots=True)
class Turn:
    """What one turn of one world took."""

    cpu_s: float
    events: int
    hops: int
    virtual_s: float


class Runner:
    """One warm world, and its turns."""

    def __init__(
        self, nodes: int, packets: PacketFormat, mixer: MixerSettings, *, warm_up_s: float, turn_s: float, seed: int
    ) -> None:
        self.nodes = nodes
        self._turn_s = turn_s
        self.turns: list[Turn] = []
        before = resident_bytes()
        plan = MixnetPlan(
            topology=circulant(nodes, 4),
            packets=packets,
            # Ten thousand descriptors that spread are a hundred million messages: a study of its own.
            mix=MixSettings(mixer=mixer, epoch_length_s=None),
            route=RouteName.WALK,
            path_length=2,
        )
        self.world: World = build_mixnet_world(plan, seed=seed)[0]
        self.world.run_until(warm_up_s)
        self.bytes_per_node = (resident_bytes() - before) / nodes

    def turn(self) -> None:
        """Run on for one turn."""
        before = self.world.result()
        after = self.world.run_for(self._turn_s)
        self.turns.append(
            Turn(
                cpu_s=after.cpu_s - before.cpu_s,
                events=after.events - before.events,
                hops=after.packet_hops - before.packet_hops,
                virtual_s=after.virtual_s - before.virtual_s,
            )
        )

    def figures(self) -> dict[str, Any]:
        """Return the medians of the turns."""
        return {
            "nodes": self.nodes,
            "packets": sum(turn.hops for turn in self.turns),
            "events_per_cpu_s": median(turn.events / turn.cpu_s for turn in self.turns),
            "us_per_packet_hop": median(turn.cpu_s / turn.hops for turn in self.turns) * 1e6,
            "bytes_per_node": self.bytes_per_node,
        }


def measure(
    *,
    sizes: tuple[int, ...] = SIZES,
    rounds: int = ROUNDS,
    warm_up_s: float = WARM_UP_S,
    turn_hops: int = TURN_HOPS,
    seed: int = 1,
) -> dict[str, Any]:
    """Build and warm all worlds, let them take turns, and return the document."""
    started = time.perf_counter()
    geometry = Geometry()
    with collector_paused():
        sealed = [
            Runner(
                nodes,
                SealedPackets(geometry),
                PoissonSettings(),
                warm_up_s=warm_up_s,
                turn_s=turn_hops / (PACKETS_PER_NODE_S * nodes),
                seed=seed,
            )
            for nodes in sizes
        ]
        real = Runner(
            REAL_NODES,
            SphinxPackets(Sphinx(geometry)),
            OutboxSettings(),
            warm_up_s=max(warm_up_s, REAL_WARM_UP_S),
            turn_s=REAL_TURN_S,
            seed=seed,
        )
        runners = [*sealed, real]
        use_huge_pages()
        for number in range(rounds):
            start = number % len(runners)
            for runner in runners[start:] + runners[:start]:
                runner.turn()
    figures = [runner.figures() for runner in sealed]
    cost = {size["nodes"]: size["us_per_packet_hop"] for size in figures}
    return {
        "sizes": figures,
        "growth_100_to_10000": cost[10_000] / cost[100] if {100, 10_000} <= cost.keys() else None,
        "speedup_real_packets": median(turn.virtual_s / turn.cpu_s for turn in real.turns),
        "real_us_per_packet_hop": real.figures()["us_per_packet_hop"],
        "rounds": rounds,
        "warm_up_s": warm_up_s,
        "seconds": time.perf_counter() - started,
        **describe("cryptography", "PyNaCl"),
    }


def render(document: dict[str, Any]) -> "RenderableType":
    """Return the tables that people see."""
    from rich.console import Group
    from rich.table import Table

    title = f"virtual time, sealed packets, medians of {document['rounds']} rounds"
    costs = Table(title=title, title_justify="left")
    for column in ("nodes", "packet-hops", "events/CPU s", "CPU µs/packet-hop", "KiB/node"):
        costs.add_column(column, justify="right")
    for size in document["sizes"]:
        costs.add_row(
            f"{size['nodes']:,}",
            f"{size['packets']:,}",
            f"{size['events_per_cpu_s']:,.0f}",
            f"{size['us_per_packet_hop']:.1f}",
            f"{size['bytes_per_node'] / 1024:.0f}",
        )
    bars = Table()
    for column in ("", "measured", "claimed", "holds"):
        bars.add_column(column, justify="left" if not column else "right")
    for name, bar in BARS.items():
        at_most = name.startswith("growth")
        value = document[name]
        holds = "–" if value is None else "yes" if (value <= bar if at_most else value >= bar) else "no"
        measured = "–" if value is None else f"{value:.2f}×"
        bars.add_row(name, measured, f"{'≤' if at_most else '≥'} {bar:g}×", holds)
    real = f"{document['real_us_per_packet_hop']:.0f} CPU µs a packet-hop with real packets, {REAL_NODES} nodes"
    return Group(costs, bars, f"{real}; {document['machine']['cpu']}")


def resident_bytes() -> int:
    """Return what this process has in memory. Linux only; elsewhere 0, and so is the figure."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * getpagesize()
    except OSError:
        return 0
