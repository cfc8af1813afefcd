"""A run that never was: test data in the shape of a real one, told through the public interface of the recorder."""

import random
from pathlib import Path

import numpy as np

from unlinkabledfl.experiment.records import EventKind, Recorder, RunDescription, RunDirectory, RunRecorder, Status
from unlinkabledfl.mixnet.topology import circulant

SCENARIO = """\
[run]
name = "synthetic"
seed = {seed}
rounds = {rounds}
backend = "simulation"

[learning]
dataset = "fashion-mnist-mini"
model = "lenet5"
partition = "dirichlet"
alpha = 10.0

[topology]
nodes = {nodes}
family = "circulant"
degree = 4

[mixnet]
route = "{route}"
path_length = 2
mixer = "outbox"
outbox_size = 100
delay_mean_s = 0.1
"""


def description(*, nodes: int = 8, rounds: int = 5, seed: int = 7, run: str = "synthetic") -> RunDescription:
    return RunDescription(run=run, backend="simulation", nodes=nodes, planned_rounds=rounds, seed=seed)


def create_run(
    path: Path, *, nodes: int = 8, rounds: int = 5, seed: int = 7, run: str = "synthetic", route: str = "walk"
) -> RunDirectory:
    topology = circulant(nodes, 4)
    edges = [(one, other) for one in range(nodes) for other in topology.neighbours(one) if one < other]
    return RunDirectory.create(
        path,
        scenario_toml=SCENARIO.format(seed=seed, rounds=rounds, nodes=nodes, route=route),
        description=description(nodes=nodes, rounds=rounds, seed=seed, run=run),
        edges=edges,
    )


def write_run(
    path: Path,
    *,
    nodes: int = 8,
    rounds: int = 5,
    seed: int = 7,
    run: str = "synthetic",
    route: str = "walk",
    ceiling: float = 0.86,
    slowness: float = 1.0,
) -> RunDirectory:
    """Write a whole run and return its directory, opened to be read."""
    directory = create_run(path, nodes=nodes, rounds=rounds, seed=seed, run=run, route=route)
    recorder = RunRecorder(directory)
    play(recorder, nodes=nodes, rounds=rounds, seed=seed, ceiling=ceiling, slowness=slowness)
    recorder.finish(Status.FINISHED)
    return RunDirectory.open(path)


def play(
    recorder: Recorder,
    *,
    nodes: int,
    rounds: int,
    seed: int = 7,
    ceiling: float = 0.86,
    slowness: float = 1.0,
    first_round: int = 1,
) -> float:
    """Tell a recorder what might have happened in these rounds, and return when the last of them ended."""
    draw = random.Random(seed)
    attackers = {node for node in range(nodes) if node % 16 == 5}
    for node in sorted(attackers):
        recorder.event(time_s=0.0, node=node, kind=EventKind.ATTACK, text=f"node {node} flips labels")
    now_s = 1.0
    packets = dict.fromkeys(range(nodes), 0)
    for round_number in range(first_round, first_round + rounds):
        round_s = 0.0
        for node in range(nodes):
            recorder.phase(time_s=now_s, round_number=round_number, node=node, phase="train")
            figures = _round(draw, round_number=round_number, ceiling=ceiling, slowness=slowness, bad=node in attackers)
            packets[node] += int(figures["packets_sent"])
            round_s = max(round_s, figures["round_s"])
            recorder.phase(time_s=now_s + figures["train_s"], round_number=round_number, node=node, phase="exchange")
            recorder.record(time_s=now_s + figures["round_s"], round_number=round_number, node=node, metrics=figures)
            processor = {"cpu_learner_s": draw.gauss(2.4, 0.2), "cpu_mix_s": draw.gauss(0.8, 0.05)}
            processor["cpu_s"] = sum(processor.values())
            recorder.record(
                time_s=now_s + figures["round_s"],
                round_number=round_number,
                node=node,
                metrics={**processor, "pss_mib": draw.gauss(41 + 0.2 * round_number, 1.2)},
            )
        for moment in np.linspace(now_s, now_s + round_s, 8, endpoint=False):
            for node in range(nodes):
                full = max(0.0, draw.gauss(40.0, 12.0) * (1 - (moment - now_s) / round_s))
                sample = {"queue_own": full, "queue_transit": draw.gauss(12.0, 3.0), "packets_sent": packets[node]}
                recorder.record(time_s=float(moment), round_number=None, node=node, metrics=sample)
        if round_number == 2:
            recorder.event(
                time_s=now_s + 0.4 * round_s, node=3, kind=EventKind.LINK, text="link to 4 lost, back in 1 s"
            )
        if round_number == 3:
            recorder.event(
                time_s=now_s + 0.2 * round_s,
                node=nodes - 1,
                kind=EventKind.DEATH,
                text="killed by SIGKILL; last line of its log:\n<training & more>",
            )
        now_s += round_s
    return now_s


def _round(draw: random.Random, *, round_number: int, ceiling: float, slowness: float, bad: bool) -> dict[str, float]:
    accuracy = ceiling - 0.55 * 2.0**-round_number + draw.gauss(0.0, 0.012) - (0.06 if bad else 0.0)
    train_s, exchange_s = draw.gauss(1.1, 0.1), slowness * draw.gauss(31.0, 2.5)
    expected = 56
    late = int(draw.random() < 0.04) * draw.randrange(1, 4)
    refused = int(draw.random() < 0.02)
    received = expected - refused
    given_up = int(draw.random() < 0.03)
    rtt_s = slowness * draw.gauss(20.0, 0.9)
    relayed, resent = draw.randrange(300, 330), draw.randrange(3)
    cover = draw.randrange(190, 230)
    own = expected + resent + cover
    sent = own + expected + relayed  # every fragment received is acknowledged by a packet
    return {
        "accuracy": min(1.0, accuracy),
        "loss": 2.3 * 0.7**round_number + abs(draw.gauss(0.0, 0.02)),
        "train_loss": 2.2 * 0.68**round_number + abs(draw.gauss(0.0, 0.03)),
        "train_s": train_s,
        "exchange_s": exchange_s,
        "aggregate_s": 0.05,
        "evaluate_s": 0.4,
        "round_s": train_s + exchange_s + 0.45,
        "completeness": (received - late) / expected,
        "fragments_expected": expected,
        "fragments_received": received,
        "fragments_sent": expected,
        "fragments_acknowledged": expected - given_up,
        "fragments_given_up": given_up,
        "fragments_aggregated": received - late,
        "fragments_late": late,
        "fragments_refused": refused,
        "fragments_resent": resent,
        "rtt_s_mean": rtt_s * 1.02,
        "rtt_s_p50": rtt_s,
        "rtt_s_p95": rtt_s * 1.35 + abs(draw.gauss(0.0, 0.8)),
        "candidates_mean": 9.0,
        "candidates_min": 8.0,
        "packets_sent": sent,
        "packets_relayed": relayed,
        "cover_sent": cover,
        "cover_share": cover / own,
        "bytes_sent": sent * 10_772.0,
        "peers_routable": 31.0,
    }
