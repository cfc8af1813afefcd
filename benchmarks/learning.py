"""How well nodes learn together: gossip averaging in memory, without packets, against the published accuracies.

The published setting: LeNet-5, degree-4 circulant, every node averages with all peers within two hops (12 of them at
N = 100), Dirichlet partition with α = 10, ten rounds of one local epoch, shared initialization. An accuracy is the mean
over all nodes of the aggregated model after the last round, on the whole test set. A seed draws the initialization, the
partition and the order of the samples.

Runs are spread over the cores, one run a process and one thread a run. Datasets come from `unlinkabledfl data get`.
`--datasets`, `--sizes` and `--seeds` cut the work; `--keep FILE` writes every finished run to a file, and the next call
goes on from there.
"""

import hashlib
import json
import multiprocessing
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from math import sqrt
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.environment import describe
from benchmarks.kept_runs import KeptRuns

if TYPE_CHECKING:
    from rich.console import RenderableType

    from unlinkabledfl.learning.many import SharedModelLearners
    from unlinkabledfl.learning.settings import TrainingSettings
    from unlinkabledfl.node.learner import State

DATASETS = ("mnist", "fashion-mnist", "cifar10")
SIZES = (16, 100)
SEEDS = 3
ROUNDS = 10
DEGREE = 4
HOPS = 2
ALPHA = 10.0
BARS = {
    ("mnist", 16): 0.98,
    ("mnist", 100): 0.95,
    ("fashion-mnist", 16): 0.85,
    ("fashion-mnist", 100): 0.78,
    ("cifar10", 16): 0.56,
    ("cifar10", 100): 0.42,
}
PUBLISHED = {
    ("mnist", 16): 0.959,
    ("mnist", 100): 0.729,
    ("fashion-mnist", 16): 0.759,
    ("fashion-mnist", 100): 0.641,
    ("cifar10", 16): 0.531,
    ("cifar10", 100): 0.387,
}
# Student's t at 0.975 for 1, 2, … degrees of freedom: half of a 95% interval is t·s/√n.
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


class Run(NamedTuple):
    """One federation: what it learns, and how it is drawn."""

    dataset: str
    nodes: int
    seed: int
    rounds: int = ROUNDS


def measure(
    *,
    datasets: Sequence[str] = DATASETS,
    sizes: Sequence[int] = SIZES,
    seeds: int = SEEDS,
    keep: Path | None = None,
    memory: bool = True,
) -> dict[str, Any]:
    """Run every federation that `keep` does not hold yet, the long ones first, and return the document."""
    from benchmarks.learner_memory import measure_memory

    started_s = time.perf_counter()
    runs = [Run(dataset, nodes, seed) for nodes in sizes for dataset in reversed(datasets) for seed in range(seeds)]
    found = _results(runs, KeptRuns(keep))
    accuracy = {
        dataset: {
            str(nodes): _summary([found[run] for run in runs if (run.dataset, run.nodes) == (dataset, nodes)])
            for nodes in sizes
        }
        for dataset in datasets
    }
    return {
        "accuracy": accuracy,
        "recipes": {dataset: _as_json(recipe(dataset)) for dataset in datasets},
        "rounds": ROUNDS,
        "memory": measure_memory() if memory else None,
        "seconds": time.perf_counter() - started_s,
        **describe("torch", "numpy"),
    }


def _results(runs: Sequence[Run], kept: KeptRuns) -> dict[Run, float]:
    """Return the accuracy of every run, and keep each as soon as it is known."""
    from unlinkabledfl.learning.worker import PRELOAD

    described = {run: _identity(run) for run in runs}
    found = {run: accuracy for run in runs if (accuracy := kept.find(described[run])) is not None}
    missing = [run for run in runs if run not in found]
    if not missing:
        return found
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOAD))
    with ProcessPoolExecutor(min(cores or 1, len(missing)), mp_context=context) as pool:
        futures = {pool.submit(_timed, run): run for run in missing}
        for future in as_completed(futures):
            run = futures[future]
            found[run], seconds = future.result()
            kept.keep(described[run], found[run], seconds=seconds)
    return found


def _timed(run: Run) -> tuple[float, float]:
    started_s = time.process_time()
    return federate(run), time.process_time() - started_s


def _identity(run: Run) -> dict[str, Any]:
    """Return all that decides what a run finds, the model it begins with included."""
    from unlinkabledfl.learning import datasets
    from unlinkabledfl.learning.models import build_model

    train = datasets.load(run.dataset).train
    initial = build_model("lenet5", train.image_shape, len(train.classes), seed=run.seed).state_dict()
    digest = hashlib.sha256(b"".join(tensor.numpy().tobytes() for tensor in initial.values()))
    return {
        **run._asdict(),
        "recipe": _as_json(recipe(run.dataset)),
        "initial": digest.hexdigest()[:16],
        "versions": describe("torch", "numpy")["versions"],
    }


def _as_json(settings: "TrainingSettings") -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(asdict(settings)))
    return document


def recipe(dataset: str) -> "TrainingSettings":
    """Return how a dataset is trained: docs/decisions/0005-training-recipe.md."""
    from unlinkabledfl.learning.settings import OptimizerName, Schedule, TrainingSettings

    if dataset == "cifar10":
        return TrainingSettings(
            optimizer=OptimizerName.ADAMW,
            learning_rate=0.001,
            schedule=Schedule.LINEAR,
            steady_rounds=ROUNDS // 2,
            centralize=True,
            rounds=ROUNDS,
        )
    return TrainingSettings(rounds=ROUNDS)


def federate(run: Run, settings: "TrainingSettings | None" = None) -> float:
    """Let the nodes of one federation train and average; return their mean accuracy."""
    from unlinkabledfl.mixnet.topology import circulant

    learners = _learners(run, recipe(run.dataset) if settings is None else settings)
    topology = circulant(run.nodes, DEGREE)
    groups = [[node, *topology.reach_within(node, HOPS)] for node in range(run.nodes)]
    models = [learners.initial()] * run.nodes
    for round_number in range(1, run.rounds + 1):
        trained = [learners.train(node, round_number=round_number, state=models[node])[0] for node in range(run.nodes)]
        models = [_average([trained[member] for member in group]) for group in groups]
    return mean(learners.evaluate(state=model)["accuracy"] for model in models)


def _learners(run: Run, settings: "TrainingSettings") -> "SharedModelLearners":
    from unlinkabledfl.learning import datasets
    from unlinkabledfl.learning.images import Images, channel_statistics
    from unlinkabledfl.learning.many import SharedModelLearners
    from unlinkabledfl.learning.models import build_model
    from unlinkabledfl.learning.partition import Dirichlet

    train, test = datasets.load(run.dataset)
    mean_pixel, std_pixel = channel_statistics(train.images)
    return SharedModelLearners(
        build_model("lenet5", train.image_shape, len(train.classes), seed=run.seed),
        Images(train.images, train.labels, mean=mean_pixel, std=std_pixel, name="train"),
        Dirichlet(ALPHA).split(train.labels, nodes=run.nodes, rng=np.random.default_rng(run.seed)),
        Images(test.images, test.labels, mean=mean_pixel, std=std_pixel, name="test"),
        seeds=[run.seed * run.nodes + node for node in range(run.nodes)],
        settings=settings,
    )


def _average(states: "Sequence[State]") -> "State":
    return {name: np.mean([state[name] for state in states], axis=0) for name in states[0]}


def render(document: dict[str, Any]) -> "RenderableType":
    """Return the tables that people see."""
    from rich.console import Group
    from rich.table import Table

    title = f"accuracy after {document['rounds']} rounds of one local epoch, LeNet-5, Dirichlet α = {ALPHA:g}"
    table = Table(title=title, title_justify="left")
    for column in ("", "nodes", "accuracy", "± (95%)", "seeds", "claimed", "holds", "published"):
        table.add_column(column, justify="right" if column else "left")
    for dataset, sizes in document["accuracy"].items():
        for nodes, found in sizes.items():
            bar = BARS.get((dataset, int(nodes)))
            published = PUBLISHED.get((dataset, int(nodes)))
            table.add_row(
                dataset,
                nodes,
                f"{found['mean']:.4f}",
                "–" if found["half_width"] is None else f"{found['half_width']:.4f}",
                str(len(found["seeds"])),
                "–" if bar is None else f"≥ {bar:.2f}",
                "–" if bar is None else "yes" if found["mean"] >= bar else "no",
                "–" if published is None else f"{published:.3f}",
            )
    memory = document["memory"]
    if memory is None:
        return table
    text = (
        f"{memory['workers']} learner processes training LeNet-5: {memory['pss_mib_training_max']:.1f} MiB PSS at most "
        f"(claimed: ≤ 32), ready after {memory['ready_s']:.1f} s; {document['machine']['cpu']}"
    )
    return Group(table, text)


def _summary(values: list[float]) -> dict[str, Any]:
    count = len(values)
    half_width = _T[count - 2] * stdev(values) / sqrt(count) if 1 < count <= len(_T) + 1 else None
    return {"mean": mean(values), "half_width": half_width, "seeds": values}
