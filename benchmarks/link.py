"""`unlinkabledfl bench link`: what a packet costs on a link, in CPU µs, sending and receiving together.

Packets of 10,700 bytes over loopback, both ends in this process and on one event loop: CPU time of the process, system
calls included. All contenders hold their connections open throughout, take turns in one run, and get the median over
all rounds. `aioquic` sends a packet a stream, which is what the prototype behind the published results does;
`aioquic_one_stream` and `tcp_tls` are there for scale.
"""

import asyncio
import logging
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from benchmarks.environment import describe
from benchmarks.link_contenders import PACKET_BYTES, WINDOW, Contender, Ours, StockQuic, TcpTls
from benchmarks.rounds import Case, case, medians

if TYPE_CHECKING:
    from rich.console import RenderableType

SIZES = (1_280, 16_000)
SMALL = str(SIZES[0])
BARS = {"ratio_qh3_stock": 0.4, "ratio_aioquic": 10.0}
"""What the README claims: ours costs at most so much of stock qh3, and aioquic at least so many times ours."""

_OURS_A_SAMPLE = 512
_THEIRS_A_SAMPLE = 128


def measure(*, rounds: int = 15) -> dict[str, Any]:
    """Measure and return the document that `bench link --json` prints."""
    started = time.perf_counter()
    logging.getLogger("quic").setLevel(logging.ERROR)  # aioquic tells of every connection
    contenders = _contenders()
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        for contender, packets in contenders.values():
            runner.run(contender.start())
            runner.run(contender.carry(packets))  # lets congestion windows open
        us = medians(
            {name: _case(loop, contender, packets) for name, (contender, packets) in contenders.items()},
            rounds=rounds,
        )
        for contender, _ in contenders.values():
            runner.run(contender.stop())
    document: dict[str, Any] = {
        "cpu_us": {
            name: {size: us[f"{name} {size}"] for size in map(str, SIZES)} if f"{name} {SMALL}" in us else None
            for name in ("ours", "qh3_stock", "aioquic", "aioquic_one_stream")
        },
        "tcp_tls_us": us["tcp_tls"],
        "packet_bytes": PACKET_BYTES,
        "window_packets": WINDOW,
        "rounds": rounds,
    }
    document |= ratios(document["cpu_us"])
    document |= describe("qh3", "aioquic")
    document["seconds"] = time.perf_counter() - started
    return document


def ratios(cpu_us: dict[str, dict[str, float] | None]) -> dict[str, float | None]:
    """Return ours over stock qh3, and aioquic over ours, at 1,280 B; None where there is nothing to compare."""
    ours, stock, aioquic = (cpu_us[name] for name in ("ours", "qh3_stock", "aioquic"))
    if ours is None:
        return dict.fromkeys(BARS)
    return {
        "ratio_qh3_stock": None if stock is None else ours[SMALL] / stock[SMALL],
        "ratio_aioquic": None if aioquic is None else aioquic[SMALL] / ours[SMALL],
    }


def _contenders() -> dict[str, tuple[Contender, int]]:
    """Return each by its name, with how many packets make a sample."""
    found: dict[str, tuple[Contender, int]] = {"tcp_tls": (TcpTls(), _OURS_A_SAMPLE)}
    for size in SIZES:
        found[f"ours {size}"] = Ours(size), _OURS_A_SAMPLE
        found[f"qh3_stock {size}"] = StockQuic("qh3", size, stream_a_packet=False), _THEIRS_A_SAMPLE
        if find_spec("aioquic") is not None:
            found[f"aioquic {size}"] = StockQuic("aioquic", size, stream_a_packet=True), _THEIRS_A_SAMPLE
            found[f"aioquic_one_stream {size}"] = StockQuic("aioquic", size, stream_a_packet=False), _THEIRS_A_SAMPLE
    return found


def _case(loop: asyncio.AbstractEventLoop, contender: Contender, packets: int) -> Case:
    return case(lambda: packets, lambda count: loop.run_until_complete(contender.carry(count)), per=packets)


def render(document: dict[str, Any]) -> "RenderableType":
    """Return the tables that people see."""
    from rich.console import Group
    from rich.table import Table

    title = f"CPU µs a packet of {document['packet_bytes']:,} B, send + receive, medians of {document['rounds']} rounds"
    costs = Table(title=title, title_justify="left")
    costs.add_column("")
    for size in SIZES:
        costs.add_column(f"datagrams of {size:,} B", justify="right")
    names = {
        "ours": "ours",
        "qh3_stock": "qh3, stock",
        "aioquic": "aioquic, a stream a packet",
        "aioquic_one_stream": "aioquic, one stream",
    }
    for key, name in names.items():
        us = document["cpu_us"][key]
        costs.add_row(name, *("–" if us is None else f"{us[str(size)]:.1f}" for size in SIZES))
    costs.add_row("TCP + TLS 1.3", f"{document['tcp_tls_us']:.1f}", "")
    comparison = Table(title="at 1,280 B", title_justify="left")
    for column in ("", "measured", "claimed", "holds"):
        comparison.add_column(column, justify="left" if not column else "right")
    for key, name, at_most in (
        ("ratio_qh3_stock", "ours / stock qh3", True),
        ("ratio_aioquic", "aioquic / ours", False),
    ):
        value, bar = document[key], BARS[key]
        holds = "–" if value is None else "yes" if (value <= bar if at_most else value >= bar) else "no"
        comparison.add_row(name, "–" if value is None else f"{value:.2f}×", f"{'≤' if at_most else '≥'} {bar}×", holds)
    notes = [document["machine"]["cpu"]]
    if document["cpu_us"]["aioquic"] is None:
        notes.append("nothing to compare with: aioquic is not installed (extra `bench`)")
    return Group(costs, comparison, *notes)
