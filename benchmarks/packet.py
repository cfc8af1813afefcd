"""`unlinkabledfl bench packet`: what an onion packet costs to make and to peel, in CPU µs.

Every figure is the median over interleaved rounds of one run. What is processed are different packets for five hops, by
the first of them: multiplication, key derivation, MAC, replay check, decryption, blinding. They are made once, before
the rounds, and every sample starts with an empty replay set: making them in between would hand the memory allocator's
work for them (returning pages and asking for them again, 4 page faults a packet) to whatever is measured next.
"""

import secrets
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.environment import describe
from benchmarks.packet_floor import floor
from benchmarks.packet_node import node_cases, node_figures
from benchmarks.packet_sphinxmix import SphinxMix, sphinxmix
from benchmarks.rounds import Case, case, medians
from unlinkabledfl.sphinx import Forward, Geometry, Hop, NodeId, Sphinx
from unlinkabledfl.sphinx.multibuffer import why_unavailable

if TYPE_CHECKING:
    from rich.console import RenderableType

HOPS = (1, 2, 3, 5)
LONGEST = max(HOPS)
BATCH = 8
BARS = {"ratio_hop": 1.9, "ratio_batch": 4.5, "ratio_create": 2.2, "ratio_floor": 1.4, "dearest_refusal": 1.0}
AT_MOST = ("ratio_floor", "dearest_refusal")
"""What the README claims: at least, except for these, where it is at most."""

_SAMPLE = 32  # how many packets make one sample: enough to forget what the neighbouring case left in the caches
_THEIR_SAMPLE = 16
_PASSES = 8  # over the packets in one sample of hops: a relay under load, which is what the floor measures too


class _Seen:
    """The replay check at its plainest: every tag so far in a set."""

    def __init__(self) -> None:
        self._tags: set[bytes] = set()

    def test_and_set(self, tag: bytes, /) -> bool:
        if tag in self._tags:
            return False
        self._tags.add(tag)
        return True


def _windows() -> list[_Seen]:
    return [_Seen() for _ in range(_PASSES)]


class _Ours:
    """One node and the paths that start at it."""

    def __init__(self, geometry: Geometry) -> None:
        self.single = Sphinx(geometry, backend="pynacl")
        self.batch = Sphinx(geometry, backend="auto")
        keys = [self.single.generate_key(secrets.token_bytes) for _ in range(LONGEST)]
        self.key = keys[0]
        self.path = [Hop(NodeId(secrets.token_bytes(32)), key.public_bytes) for key in keys]
        self.payload = secrets.token_bytes(geometry.payload_bytes)
        self.packets = self.batch.wrap_batch([(self.path, self.payload)] * _SAMPLE, entropy=secrets.token_bytes)

    def hop(self, windows: list[_Seen]) -> None:
        for replays in windows:
            for packet in self.packets:
                self.single.unwrap(packet, key=self.key, replays=replays)

    def hop_batch(self, windows: list[_Seen]) -> None:
        for replays in windows:
            for first in range(0, _SAMPLE, BATCH):
                results = self.batch.unwrap_batch(self.packets[first : first + BATCH], key=self.key, replays=replays)
                if not all(isinstance(result, Forward) for result in results):
                    raise RuntimeError("a benchmark packet was refused")

    def create(self, hops: int) -> None:
        for _ in range(_SAMPLE):
            self.single.wrap(self.path[:hops], self.payload, entropy=secrets.token_bytes)

    def create_batch(self, hops: int) -> None:
        for _ in range(_SAMPLE // BATCH):
            self.batch.wrap_batch([(self.path[:hops], self.payload)] * BATCH, entropy=secrets.token_bytes)

    def surb(self) -> None:
        for _ in range(_SAMPLE):
            self.single.make_surb(self.path, entropy=secrets.token_bytes)


def measure(*, rounds: int = 31) -> dict[str, Any]:
    """Measure and return the document that `bench packet --json` prints."""
    started = time.perf_counter()
    geometry = Geometry()
    ours, theirs = _Ours(geometry), sphinxmix(geometry.body_bytes)
    with floor(geometry.body_bytes) as lowest:
        cases = _our_cases(ours)
        if theirs is not None:
            cases |= _their_cases(theirs)
        cases |= node_cases(geometry)
        if lowest is not None:
            cases["floor"] = lowest.sample
        us = medians(cases, rounds=rounds)
    missing = why_unavailable()
    document: dict[str, Any] = {
        "hop_us": us["hop"],
        "hop_batch_us": us["hop_batch"],
        "batch": BATCH,
        "batch_backend": "ipp" if missing is None else "pynacl",
        "batch_backend_note": missing,
        "create_us": {str(hops): us[f"create_{hops}"] for hops in HOPS},
        "create_batch_us": {str(hops): us[f"create_batch_{hops}"] for hops in HOPS},
        "surb_us": us["surb"],
        "floor_us": us.get("floor"),
        "floor_source": None if lowest is None else lowest.source,
        "sphinxmix": None
        if theirs is None
        else {
            "hop_us": us["their_hop"],
            "create_us": {str(hops): us[f"their_create_{hops}"] for hops in HOPS},
            "surb_us": us["their_surb"],
        },
        "body_bytes": geometry.body_bytes,
        "rounds": rounds,
    }
    document |= ratios(document)
    document["node"] = node_figures(us)
    document["dearest_refusal"] = document["node"]["dearest_refusal"]
    document |= describe("cryptography", "PyNaCl", "ipp-crypto", "sphinxmix", "petlib")
    document["seconds"] = time.perf_counter() - started
    return document


def _given(hops: int) -> Callable[[], int]:
    return lambda: hops


def _our_cases(ours: _Ours) -> dict[str, Case]:
    cases = {
        "hop": case(_windows, ours.hop, per=_PASSES * _SAMPLE),
        "hop_batch": case(_windows, ours.hop_batch, per=_PASSES * _SAMPLE),
        "surb": case(tuple, lambda _: ours.surb(), per=_SAMPLE),
    }
    for hops in HOPS:
        cases[f"create_{hops}"] = case(_given(hops), ours.create, per=_SAMPLE)
        cases[f"create_batch_{hops}"] = case(_given(hops), ours.create_batch, per=_SAMPLE)
    return cases


def _their_cases(theirs: SphinxMix) -> dict[str, Case]:
    def repeat(work: Callable[[int], object], hops: int) -> None:
        for _ in range(_THEIR_SAMPLE):
            work(hops)

    packets = [theirs.create(LONGEST) for _ in range(_THEIR_SAMPLE)]
    cases = {
        "their_hop": case(lambda: packets * _PASSES, theirs.process, per=_PASSES * _THEIR_SAMPLE),
        "their_surb": case(_given(LONGEST), partial(repeat, theirs.create_surb), per=_THEIR_SAMPLE),
    }
    for hops in HOPS:
        cases[f"their_create_{hops}"] = case(_given(hops), partial(repeat, theirs.create), per=_THEIR_SAMPLE)
    return cases


def ratios(document: dict[str, Any]) -> dict[str, float | None]:
    """Return how our figures compare with sphinxmix's and with the floor; None where there is nothing to compare."""
    theirs, lowest = document["sphinxmix"], document["floor_us"]
    return {
        "ratio_hop": None if theirs is None else theirs["hop_us"] / document["hop_us"],
        "ratio_batch": None if theirs is None else theirs["hop_us"] / document["hop_batch_us"],
        # The less favourable of the two lengths.
        "ratio_create": None
        if theirs is None
        else min(theirs["create_us"][hops] / document["create_us"][hops] for hops in ("3", "5")),
        "ratio_floor": None if lowest is None else document["hop_us"] / lowest,
    }


def render(document: dict[str, Any]) -> "RenderableType":
    """Return the tables that people see."""
    from rich.console import Group
    from rich.table import Table

    theirs = document["sphinxmix"]
    title = f"CPU µs a packet, {document['body_bytes']:,} B body, medians of {document['rounds']} rounds"
    costs = Table(title=title, title_justify="left")
    costs.add_column("")
    for column in ("one by one", f"batch of {document['batch']} ({document['batch_backend']})", "sphinxmix"):
        costs.add_column(column, justify="right")
    costs.add_row(
        "process one hop", _us(document["hop_us"]), _us(document["hop_batch_us"]), _us(theirs and theirs["hop_us"])
    )
    for hops, us in document["create_us"].items():
        costs.add_row(
            f"create, {hops} hop{'s' if hops != '1' else ''}",
            _us(us),
            _us(document["create_batch_us"][hops]),
            _us(theirs and theirs["create_us"][hops]),
        )
    costs.add_row(f"reply block, {LONGEST} hops", _us(document["surb_us"]), "–", _us(theirs and theirs["surb_us"]))
    costs.add_row("floor of one hop", _us(document["floor_us"]), "", "")
    comparison = Table(title="against sphinxmix, the floor, and a good packet", title_justify="left")
    for column in ("", "measured", "claimed", "holds"):
        comparison.add_column(column, justify="left" if not column else "right")
    for name, bar in BARS.items():
        at_most = name in AT_MOST
        value = document[name]
        holds = "–" if value is None else "yes" if (value <= bar if at_most else value >= bar) else "no"
        comparison.add_row(name, "–" if value is None else f"{value:.2f}×", f"{'≤' if at_most else '≥'} {bar}×", holds)
    notes = [f"{document['machine']['cpu']}; floor: {document['floor_source'] or 'no compiler and no openssl here'}"]
    if document["batch_backend_note"]:
        notes.append(f"no eight-lane backend: {document['batch_backend_note']}")
    if theirs is None:
        notes.append("nothing to compare with: sphinxmix is not installed (extra `bench`)")
    return Group(costs, _of_a_node(document["node"]), comparison, *notes)


def _of_a_node(figures: dict[str, Any]) -> "RenderableType":
    from rich.table import Table

    table = Table(title="all that a node does for a packet of a neighbour's", title_justify="left")
    for column in ("", "one by one", f"batch of {BATCH}"):
        table.add_column(column, justify="left" if not column else "right")
    table.add_row("relayed", _us(figures["relay_us"]), _us(figures["relay_batch_us"]))
    for cause, us in figures["refused_us"].items():
        table.add_row(f"refused: {cause}", _us(us), _us(figures["refused_batch_us"][cause]))
    return table


def _us(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"
