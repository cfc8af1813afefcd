"""The board: every deployment, every adversary, one row each.

Deployments run in parallel processes, as many as there are cores; a row depends on its deployment and the seed alone.
"""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, TypeAlias

import numpy as np

from unlinkabledfl.analysis.adversaries.route import route_prior
from unlinkabledfl.analysis.attack import all_relays_compromised, line_up, published_candidates
from unlinkabledfl.analysis.score import Score, score
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.linking.configurations import Entry, row_name
from unlinkabledfl.experiment.linking.deployment import Recorded, record
from unlinkabledfl.simulation import chances

Tell: TypeAlias = Callable[[str], None]
"""What is called with a line for whoever waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One adversary against one deployment with one share of compromised nodes."""

    configuration: str
    share: float
    all_compromised: float
    """Share of the targets of which every relay is compromised; the destination counts for none."""
    score: Score
    delivery_s_mean: float
    rtt_s_mean: float | None
    bytes_per_node_round: float

    def document(self) -> dict[str, Any]:
        """Return it as the board prints it."""
        return {
            "configuration": self.configuration,
            "compromised": self.share,
            "all_relays_compromised": self.all_compromised,
            **self.score.document(),
            "delivery_s_mean": self.delivery_s_mean,
            "rtt_s_mean": self.rtt_s_mean,
            "bytes_per_node_round": self.bytes_per_node_round,
        }


def run_board(entries: Sequence[Entry], *, seed: int, tell: Tell) -> list[Row]:
    """Record and attack every deployment; the rows come in the order of the entries."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(min(cores, len(entries)), mp_context=context) as pool:
        # What takes longest begins first, so that no core waits for another at the end.
        order = sorted(entries, key=_cost, reverse=True)
        under_way = {pool.submit(attack_entry, entry, seed=seed): entry.deployment.name for entry in order}
        found = {}
        for done in as_completed(under_way):
            found[under_way[done]] = done.result()
            tell(f"{len(found)} of {len(entries)} deployments: {under_way[done]} is attacked")
    return [row for entry in entries for row in found[entry.deployment.name]]


def _cost(entry: Entry) -> float:
    """Return what a deployment costs, in no unit: packets recorded, and followed under each share."""
    deployment = entry.deployment
    return deployment.packets_per_s * deployment.end_s * (1 + len(entry.shares) * deployment.path_length)


def attack_entry(entry: Entry, *, seed: int) -> list[Row]:
    """Record one deployment and attack it under each share of compromised nodes."""
    recorded = _thinned(record(entry.deployment, seed=seed), entry.targets, seed=seed)
    return [row for share in entry.shares for row in _attack(entry, recorded, share=share, seed=seed)]


def _thinned(recorded: Recorded, wanted: int, *, seed: int) -> Recorded:
    """Return the recording with about so many targets: rounds come whole, and few targets are attacked sooner.

    Groups are kept whole, for who multiplies their evidence. Who writes how far is kept in proportion: on a circulant
    that is what the worth of a last hop depends on.
    """
    recording, nodes = recorded.recording, recorded.recording.settings.topology.nodes
    names, first = np.unique(recorded.groups, return_index=True)
    written_to = recording.crossings.target[recording.targets[first]]
    how_far = (written_to - recording.oracle.origin[first]) % nodes
    order = np.lexsort((np.random.default_rng(seed).random(len(names)), how_far))
    enough = ceil(wanted * len(names) / max(len(recorded.groups), 1))
    rows = np.arange(0)
    # Groups are not of one size where fragments were lost: some more of them, until there are enough targets.
    while len(rows) < min(wanted, len(recorded.groups)):
        kept = names[order[np.linspace(0, len(names) - 1, min(enough, len(names))).round().astype(np.int64)]]
        rows = np.flatnonzero(np.isin(recorded.groups, kept))
        enough += 1 + enough // 50
    return replace(recorded, recording=recording.of_targets(rows), groups=recorded.groups[rows])


def _attack(entry: Entry, recorded: Recorded, *, share: float, seed: int) -> Iterator[Row]:
    deployment = entry.deployment
    luck = chances(seed, "compromised")
    owned = sorted(luck.sample(range(deployment.nodes), round(share * deployment.nodes)))
    recording = recorded.recording
    trace, oracle = recording.observed(compromised=owned)
    sought = ~np.isin(recording.oracle.origin, owned)
    feasible = route_prior(trace)
    candidates = published_candidates(trace)
    for adversary in line_up(trace, recorded.groups[sought]):
        try:
            posteriors = adversary.posteriors(trace)
        except ConfigError:
            continue  # it does not know this deployment: no row
        yield Row(
            configuration=row_name(deployment.name, share),
            share=share,
            all_compromised=all_relays_compromised(oracle, owned),
            score=score(
                adversary.name,
                posteriors,
                oracle,
                feasible=feasible,
                published_candidates=candidates,
            ),
            delivery_s_mean=recorded.delivery_s_mean,
            rtt_s_mean=recorded.rtt_s_mean,
            bytes_per_node_round=recorded.bytes_per_node_round,
        )
