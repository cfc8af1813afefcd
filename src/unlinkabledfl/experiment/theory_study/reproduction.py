"""`reproduce theory`: the theorems' quantities beside the published numbers.

The document describes itself:

- `published`: every number that the published text states, what it is here, and whether they agree;
- `rows`: what `check` says of the presets `paper` and `strong`, beside the published figure where there is one;
- `entropies`: H_path and H_relay^loc over K and O;
- `bounds`: what last hop and destination leave of the sender for walks and for overlay routes, over K: |U|, γ_R,
  H∞(R_K | T), the bound, and the best guess, which it bounds;
- `reach`: how many peers routes lead to, by family, degree and K, and how many of them are possible senders;
- `statements`: the theorem, its corollary and the lemma on reply blocks, in words.

Nothing is sampled: but for the graphs that are drawn from the seed, two runs of it are the same.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from unlinkabledfl.analysis.bound import overlay_paths, route_view, walk_paths
from unlinkabledfl.analysis.entropy import CompromiseRegime, local_relay_entropy_bits, path_entropy_bits
from unlinkabledfl.experiment.indicators import indicators
from unlinkabledfl.experiment.records.surroundings import describe
from unlinkabledfl.experiment.scenario import preset
from unlinkabledfl.experiment.theory_study.reach import NODES, reach_rows
from unlinkabledfl.mixnet.topology import circulant, full

if TYPE_CHECKING:
    from rich.console import RenderableType

    from unlinkabledfl.experiment.figures import Indicators

__all__ = ["STATEMENTS", "page", "render", "reproduce"]

STATEMENTS: Final = {
    "Theorem 1": "Whoever sees the trace T names the sender of a packet with probability at most"
    " min(1, γ_T · 2^−H∞(R_K | T) · O^−h). γ_T is the most trajectories that one sender has, H∞(R_K | T) the"
    " min-entropy left in the route, and h the number of hidden shuffles on the least hidden trajectory. Counted in"
    " full, γ_T holds every matching in every shuffle: O^h a route. So without compromised relays the bound is that of"
    " the routes alone, whatever O is; with them γ_T counts the most hidden trajectories and h the least hidden one,"
    " the product soon exceeds one, and the bound says nothing.",
    "Corollary": "If each of K stages is compromised with probability c by itself, all of them are with probability"
    " c^K. Real routes have K − 1 relays, all different, and an honest sender: of N nodes with m = cN compromised, all"
    " relays of a route are with probability m(m−1)…(m−K+2) / (N−1)(N−2)…(N−K+1), on average over which ones they are.",
    "Lemma (reply blocks)": "If the way back is drawn independently of the way there, the destination uses the reply"
    " block without learning the sender, and acknowledgements look like every other packet, then seeing them tells"
    " nothing of the way there that the trace did not tell before. Here both ways are drawn by separate calls of the"
    " route strategy, and acknowledgements have the size of all packets and pass the same mixers.",
}

_DEGREE: Final = 4
_LENGTHS: Final = (1, 2, 3, 4, 5)
_SIZES: Final = (10, 25, 50, 100, 200)
_HALF_A_DIGIT: Final = 0.011
"""Published numbers have two digits, some rounded and some cut."""


def reproduce(*, tell: Callable[[str], None], seed: int = 1) -> dict[str, Any]:
    """Compute everything and return the document."""
    started_s = time.perf_counter()
    tell("counting routes")
    return {
        "experiment": "theory",
        "seed": seed,
        "published": _published(),
        "rows": _rows(indicators(preset("paper")), indicators(preset("strong"))),
        "entropies": [
            {
                "path_length": length,
                "outbox_size": size,
                "path_bits": path_entropy_bits(length, size),
                "local_relay_bits": local_relay_entropy_bits(length, size),
            }
            for size in _SIZES
            for length in _LENGTHS
        ],
        "bounds": _bounds(),
        "reach": reach_rows(seed=seed),
        "statements": STATEMENTS,
        "seconds": time.perf_counter() - started_s,
        **describe("numpy"),
    }


def _published() -> list[dict[str, Any]]:
    ring_of_links, mesh = circulant(NODES, _DEGREE), full(NODES)
    stated = [
        ("H_path, K=1, O=100", 6.64, path_entropy_bits(1, 100), "bits"),
        ("H_path, K=2, O=10", 6.78, path_entropy_bits(2, 10), "bits"),
        ("H_path, K=2, O=100", 13.30, path_entropy_bits(2, 100), "bits"),
        ("H_path, K=5, O=100", 33.23, path_entropy_bits(5, 100), "bits"),
        ("H_relay^loc, K=1, O=100", 0.0, local_relay_entropy_bits(1, 100), "bits"),
        ("H_relay^loc, K=2, O=10", 2.66, local_relay_entropy_bits(2, 10), "bits"),
        ("H_relay^loc, K=2, O=100", 4.32, local_relay_entropy_bits(2, 100), "bits"),
        ("H_relay^loc, K=5, O=100", 6.04, local_relay_entropy_bits(5, 100), "bits"),
        ("peers within two hops, circulant of degree 4", 12.0, float(len(ring_of_links.reach_within(0, 2))), "peers"),
        ("peers in a full mesh", 31.0, float(len(mesh.reach_within(0, 1))), "peers"),
        ("candidates that FragKrum needs at B = 8: N > 2B + 2", 19.0, 2.0 * 8 + 3, "slices"),
    ]
    return [
        {
            "what": what,
            "published": said,
            "computed": found + 0.0,
            "unit": unit,
            "holds": abs(said - found) < _HALF_A_DIGIT,
        }
        for what, said, found, unit in stated
    ]


def _rows(paper: "Indicators", strong: "Indicators") -> list[dict[str, Any]]:
    rows: list[tuple[str, float | None, Callable[[Indicators], float | None], str]] = [
        ("H_path, counted", 13.30, lambda of: of.entropy.path_bits, "bits"),
        ("H_relay^loc, counted", 4.32, lambda of: of.entropy.local_relay_bits, "bits"),
        ("H_relay, every stage hidden", None, lambda of: of.theory.relay_bits, "bits"),
        ("|U|, possible senders once the last hop is known", None, lambda of: of.theory.senders, "nodes"),
        ("peers that routes reach", None, lambda of: of.exchange.reachable_mean, "peers"),
        ("H∞(R_K | T)", None, lambda of: of.theory.route_bits, "bits"),
        ("log2 γ_T", None, lambda of: of.theory.multiplicity_bits, "bits"),
        ("Theorem 1, nothing compromised", None, lambda of: of.theory.bound, "probability"),
        ("last hop alone names the sender", None, lambda of: of.linkability.last_hop, "probability"),
        ("Theorem 1, c = 0.25", None, lambda of: of.theory.bound_compromised, "probability"),
        ("c^K, c = 0.25", None, lambda of: of.theory.all_compromised_idealized, "probability"),
        ("all relays compromised, c = 0.25", None, lambda of: of.theory.all_relays_compromised, "probability"),
    ]
    return [
        {"what": what, "published": said, "paper_preset": ask(paper), "strong_preset": ask(strong), "unit": unit}
        for what, said, ask, unit in rows
    ]


def _bounds() -> list[dict[str, Any]]:
    graph = circulant(NODES, _DEGREE)
    everybody = [tuple(other for other in range(NODES) if other != node) for node in range(NODES)]
    found = []
    for length in _LENGTHS:
        ends = [graph.reach_exactly(node, length) for node in range(NODES)]
        for route, routes_of, writes in (
            ("walk", walk_paths(graph, path_length=length), ends),
            ("overlay", overlay_paths(NODES, path_length=length), everybody),
        ):
            view = route_view(routes_of, writes, destinations=[0])
            regime = CompromiseRegime(path_length=length, share=0.25)
            found.append(
                {
                    "route": route,
                    "path_length": length,
                    "senders": view.senders,
                    "routes": view.routes,
                    "route_bits": view.route_bits,
                    "bound": view.bound,
                    "guess": view.guess,
                    "all_compromised_idealized": regime.all_compromised,
                    "all_relays_compromised": regime.all_relays_compromised(NODES),
                }
            )
    return found


def render(document: dict[str, Any]) -> "RenderableType":
    """Return the tables that people see."""
    from rich.console import Group  # noqa: PLC0415 -- readers of JSON need no tables

    from unlinkabledfl.experiment.theory_study.tables import tables_of  # noqa: PLC0415

    return Group(*tables_of(document))


def page(document: dict[str, Any]) -> str:
    """Return the page with its pictures."""
    from unlinkabledfl.experiment.theory_study.page import theory_page_html  # noqa: PLC0415

    return theory_page_html(document)
