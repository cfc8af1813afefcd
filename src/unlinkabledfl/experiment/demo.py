"""`unlinkabledfl run demo`: sixteen peers exchange messages over a mixnet, in virtual time.

Packets really are built and peeled; links have latency, jitter and losses. What it shows is what the mixnet does for
its users: everything arrives once, at what delay, and how little of what is on the wires is message.
"""

from dataclasses import dataclass, field
from statistics import quantiles
from typing import TYPE_CHECKING, Any

from unlinkabledfl.mixnet.config import MixSettings
from unlinkabledfl.mixnet.mixers import PoissonSettings
from unlinkabledfl.mixnet.sphinx_packets import SphinxPackets
from unlinkabledfl.mixnet.topology import circulant
from unlinkabledfl.simulation.collector import collector_paused
from unlinkabledfl.simulation.links import LinkPlan, LinkSettings
from unlinkabledfl.simulation.mixnet import MixnetPlan, build_mixnet_world, send_at_random
from unlinkabledfl.simulation.records import Result
from unlinkabledfl.sphinx import Geometry, Sphinx

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """What the demonstration does; the defaults take some seconds."""

    peers: int = 16
    messages_each: int = 20
    sending_s: float = 60.0
    running_s: float = 100.0
    path_length: int = 3
    mixer: PoissonSettings = field(
        default_factory=lambda: PoissonSettings(delay_mean_s=1.0, emission_rate_per_s=2.0, loop_rate_per_s=0.5)
    )
    links: LinkSettings = field(default_factory=lambda: LinkSettings(latency_s=0.02, jitter_s=0.01, loss=0.005))


def run_demo(*, seed: int, demo: Demo | None = None) -> dict[str, Any]:
    """Run it, and return what happened."""
    demo = demo or Demo()
    geometry = Geometry()
    packets = SphinxPackets(Sphinx(geometry))
    plan = MixnetPlan(
        topology=circulant(demo.peers, 4),
        packets=packets,
        mix=MixSettings(mixer=demo.mixer, epoch_length_s=None),
        path_length=demo.path_length,
    )
    world, mixnet = build_mixnet_world(plan, seed=seed, links=LinkPlan(default=demo.links))
    send_at_random(
        world,
        mixnet,
        seed=seed,
        messages=demo.messages_each,
        data=bytes(packets.data_bytes),
        from_s=0.0,
        until_s=demo.sending_s,
    )
    with collector_paused():
        result = world.run_until(demo.running_s)
    return _document(demo, result, seed=seed, packet_bytes=geometry.packet_bytes)


def _document(demo: Demo, result: Result, *, seed: int, packet_bytes: int) -> dict[str, Any]:
    count = result.counters.get
    messages = result.messages
    acknowledged = [message for message in messages if message.acknowledged_at_s is not None]
    fresh = {kind: count(f"sent_{kind}", 0) for kind in ("message", "drop_cover", "loop_cover")}
    wires = result.packet_hops
    return {
        "run": "demo",
        "seed": seed,
        "peers": demo.peers,
        "mixing": {
            "route": "overlay",
            "path_length": demo.path_length,
            "mixer": "poisson",
            "delay_mean_s": demo.mixer.delay_mean_s,
            "emission_rate_per_s": demo.mixer.emission_rate_per_s,
            "loop_rate_per_s": demo.mixer.loop_rate_per_s,
        },
        "virtual_s": result.virtual_s,
        "cpu_s": round(result.cpu_s, 3),
        "messages": {
            "accepted": len(messages),
            "delivered_once": sum(message.deliveries == 1 for message in messages),
            "delivered_more_than_once": sum(message.deliveries > 1 for message in messages),
            "acknowledged": len(acknowledged),
            "resent": count("resent", 0),
            "given_up": count("given_up", 0),
        },
        "delivery_s": _summary(result.delays_s()),
        "acknowledged_s": _summary(
            [(message.acknowledged_at_s or 0.0) - message.sent_at_s for message in acknowledged]
        ),
        "on_the_wires": {
            "packets": wires,
            "bytes_per_packet": packet_bytes,
            "kbit_per_s_and_peer": round(wires * packet_bytes * 8 / 1000 / demo.peers / result.virtual_s, 1),
            "fresh": fresh,
            "cover_share": round(1 - fresh["message"] / max(1, sum(fresh.values())), 4),
            "lost": sum(result.lost.values()),
        },
        "counters": result.counters,
    }


def _summary(values: list[float]) -> dict[str, float] | None:
    """Mean and quantiles of at least two values."""
    if len(values) < 2:  # noqa: PLR2004 -- a quantile needs two
        return None
    percent = quantiles(values, n=100, method="inclusive")
    return {
        "mean": round(sum(values) / len(values), 3),
        "p50": round(percent[49], 3),
        "p95": round(percent[94], 3),
        "max": round(max(values), 3),
    }


def render(document: dict[str, Any]) -> "RenderableType":
    """The document as tables for people."""
    from rich.console import Group  # noqa: PLC0415 -- whoever wants JSON does not wait for it
    from rich.table import Table  # noqa: PLC0415

    mixing, messages, wires = document["mixing"], document["messages"], document["on_the_wires"]
    table = Table(
        title=f"A mixnet of {document['peers']} peers, {document['virtual_s']:.0f} s of virtual time", min_width=64
    )
    table.add_column("what")
    table.add_column("figure", justify="right")
    table.add_row("messages accepted from the application", f"{messages['accepted']:,}")
    table.add_row("delivered exactly once", f"{messages['delivered_once']:,}")
    table.add_row("delivered more than once", f"{messages['delivered_more_than_once']:,}")
    table.add_row("acknowledged through reply blocks", f"{messages['acknowledged']:,}")
    table.add_row("sent again after a loss", f"{messages['resent']:,}")
    table.add_row("given up", f"{messages['given_up']:,}", end_section=True)
    for name, key in (("from sender to destination", "delivery_s"), ("until its acknowledgement", "acknowledged_s")):
        if document[key] is not None:
            seconds = document[key]
            table.add_row(f"delay {name}: median", f"{seconds['p50']:.2f} s")
            table.add_row(f"delay {name}: 95% below", f"{seconds['p95']:.2f} s")
    table.add_section()
    table.add_row("packets on the wires, all of one size", f"{wires['packets']:,}")
    table.add_row("bytes of each", f"{wires['bytes_per_packet']:,}")
    table.add_row("traffic of a peer, all it sends", f"{wires['kbit_per_s_and_peer']:,.0f} kbit/s")
    table.add_row("cover among the packets that peers originate", f"{wires['cover_share']:.1%}")
    table.add_row("packets lost by links", f"{wires['lost']:,}", end_section=True)
    table.add_row("CPU time for all peers", f"{document['cpu_s']:.1f} s")
    how = (
        f"Routes of {mixing['path_length']} hops over relays drawn from all peers; each hop holds a packet for an"
        f" exponential time of mean {mixing['delay_mean_s']:g} s; each peer emits {mixing['emission_rate_per_s']:g}"
        f" messages or cover packets a second and {mixing['loop_rate_per_s']:g} loops, whether it has messages or not."
    )
    return Group(table, how)
