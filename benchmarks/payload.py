"""What a model costs in packets, codec by codec; what encoding costs in CPU, and coarseness in accuracy.

Packets and bytes are those of one whole state of each published model, in packets of the default geometry: LeNet-5
after one epoch on the dataset, the other two as they are initialized (how many packets does not depend on the values).

Accuracy is that of a federation in memory, as in `learning`: degree-4 circulant, peers within two hops, Dirichlet with
α = 10, ten rounds of one local epoch, but every state goes to the peers as fragments, is decoded there and pooled. Runs
of one seed differ in the codec only. The cost is the difference to `f32`, paired by seed: training amplifies any
difference, so a single seed says little, and the interval says how little.
"""

import multiprocessing
import os
import secrets
import time
from concurrent.futures import ProcessPoolExecutor
from math import sqrt
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.environment import describe
from benchmarks.rounds import Case, case, medians
from unlinkabledfl.fragments import (
    FragmentDecoder,
    FragmentEncoder,
    Pool,
    State,
    StateLayout,
    codec_by_name,
    plan_grid,
    rule_by_name,
)
from unlinkabledfl.mixnet.envelope import EnvelopeCodec
from unlinkabledfl.sphinx import Geometry, Hop, NodeId, Sphinx

if TYPE_CHECKING:
    from rich.console import RenderableType

    from unlinkabledfl.learning.settings import TrainingSettings

CODECS = ("f32", "q8", "q4", "fit")
TRAINED_WITH = ("f32", "q8", "fit")
MODELS = {"lenet5": (1, 28, 28), "squeezenet1_1": (3, 32, 32), "mobilenet_v2": (3, 32, 32)}
CLASSES = 10
DATASET = "fashion-mnist-mini"
NODES, SEEDS, ROUNDS = 32, 8, 10
POOLED = 32
TURNS = 20
PEELED = 4
PUBLISHED = {("lenet5", "f32"): 26, ("lenet5", "q8"): 7}
BARS = {
    "lenet5 fit packets": 4,
    "squeezenet1_1 fit/q8": 0.60,
    "mobilenet_v2 fit/q8": 0.60,
    "fit accuracy cost, points": 0.3,
    "encode fit / peel a packet": 1.0,
    "decode fit / peel a packet": 1.0,
    "aggregate 32 LeNet-5, ms": 10,
}
# Student's t at 0.975 for 1, 2, … degrees of freedom: half of a 95% interval is t·s/√n.
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


class Run(NamedTuple):
    """One federation."""

    dataset: str
    codec: str
    seed: int
    nodes: int
    rounds: int


class Exchange:
    """One codec for one model: states to messages, messages to a better state."""

    def __init__(self, state: State, codec_name: str) -> None:
        self.capacity_bytes = EnvelopeCodec(Geometry()).data_bytes
        self.layout = StateLayout(state)
        self._codec = codec_by_name(codec_name)
        self.grid = plan_grid(self.layout, self._codec, capacity_bytes=self.capacity_bytes)

    def encoder(self) -> FragmentEncoder:
        """Return a node's encoder."""
        return FragmentEncoder(self.grid, self._codec, capacity_bytes=self.capacity_bytes)

    def pool(self, first_round: int = 0) -> Pool:
        """Return a node's empty pool."""
        return Pool(FragmentDecoder(self.grid, capacity_bytes=self.capacity_bytes), first_round=first_round)


def measure(
    *, rounds: int = 15, dataset: str = DATASET, nodes: int = NODES, seeds: int = SEEDS, accuracy: bool = True
) -> dict[str, Any]:
    """Return the document; `rounds` is how often times are taken."""
    started_s = time.perf_counter()
    states = {name: initial_state(name) for name in MODELS} | {"lenet5": trained_lenet(dataset)}
    sizes = {name: {codec: packet_sizes(state, codec) for codec in CODECS} for name, state in states.items()}
    packets = {name: {codec: len(each) for codec, each in codecs.items()} for name, codecs in sizes.items()}
    document: dict[str, Any] = {
        "packets": packets,
        "bytes": {name: {codec: sum(each) for codec, each in codecs.items()} for name, codecs in sizes.items()},
        "ratio_to_q8": {name: each["fit"] / each["q8"] for name, each in packets.items()},
        "capacity_bytes": EnvelopeCodec(Geometry()).data_bytes,
        "cpu": measure_cpu(states["lenet5"], rounds=rounds),
        **measure_accuracy(dataset, nodes=nodes, seeds=seeds if accuracy else 0),
    }
    return {**document, "seconds": time.perf_counter() - started_s, **describe("numpy", "zstandard", "torch")}


def initial_state(model: str) -> State:
    """Return a published model as it is before training."""
    from unlinkabledfl.learning.models import build_model

    tensors = build_model(model, MODELS[model], CLASSES, seed=1).state_dict()
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def trained_lenet(dataset: str) -> State:
    """Return LeNet-5 after one epoch."""
    import torch

    # One thread, as in the federations below.
    torch.set_num_threads(1)
    (learner,) = _learners(Run(dataset, "f32", 1, 1, 1))
    learner.train(1)
    return dict(learner.state())


def packet_sizes(state: State, codec: str) -> list[int]:
    """Return the bytes of each packet of one state."""
    exchange = Exchange(state, codec)
    vector = exchange.layout.flatten(state)
    return [len(data) for data in exchange.encoder().encode(vector, round_number=0, rng=np.random.default_rng(1))]


def measure_cpu(state: State, *, rounds: int) -> dict[str, Any]:
    """Return CPU µs a fragment, and CPU ms for aggregating the states of 32 nodes."""
    cases: dict[str, Case] = {}
    for codec in ("q8", "fit"):
        cases |= _transcoding(state, codec)
    for rule in ("fragfedavg", "fragkrum", "median", "trimmed_mean"):
        cases[f"aggregate_ms {rule}"] = _aggregating(state, rule)
    cases["peel_us packet"] = _peeling()
    found: dict[str, Any] = {"encode_us": {}, "decode_us": {}, "aggregate_ms": {}, "peel_us": {}}
    for key, value in medians(cases, rounds=rounds).items():
        what, name = key.split()
        found[what][name] = value
    return found


def _transcoding(state: State, codec: str) -> dict[str, Case]:
    exchange = Exchange(state, codec)
    vector, rng, encoder = exchange.layout.flatten(state), np.random.default_rng(1), exchange.encoder()
    decoder = FragmentDecoder(exchange.grid, capacity_bytes=exchange.capacity_bytes)
    # The first round of a node searches longer for its steps; what counts is every other one.
    messages = encoder.encode(vector, round_number=0, rng=rng)

    def nothing() -> None:
        pass

    def encode(_: None) -> None:
        for _turn in range(TURNS):
            encoder.encode(vector, round_number=0, rng=rng)

    def decode(_: None) -> None:
        for _turn in range(TURNS):
            for data in messages:
                decoder.decode(data)

    each = TURNS * len(messages)
    return {
        f"encode_us {codec}": case(nothing, encode, per=each),
        f"decode_us {codec}": case(nothing, decode, per=each),
    }


def _aggregating(state: State, rule_name: str) -> Case:
    """Return a case whose µs, divided by a thousand more, are ms."""
    exchange, rule = Exchange(state, "fit"), rule_by_name(rule_name, byzantine=8)
    vector, encoder, rng = exchange.layout.flatten(state), exchange.encoder(), np.random.default_rng(1)
    received = [data for _ in range(POOLED - 1) for data in encoder.encode(vector, round_number=0, rng=rng)]

    def filled() -> Pool:
        pool = exchange.pool()
        for data in received:
            pool.receive(data)
        return pool

    def aggregate(pool: Pool) -> None:
        pool.aggregate(vector, rule)

    return case(filled, aggregate, per=1000)


def _peeling() -> Case:
    """Return a case of a relay's work on one packet, a packet at a time: the measure of what encoding may cost."""
    sphinx = Sphinx(Geometry(), backend="pynacl")
    keys = [sphinx.generate_key(secrets.token_bytes) for _ in range(3)]
    path = [Hop(NodeId(secrets.token_bytes(32)), key.public_bytes) for key in keys]
    payload = secrets.token_bytes(Geometry().payload_bytes)
    packets = [sphinx.wrap(path, payload, entropy=secrets.token_bytes) for _ in range(PEELED)]

    def peel(windows: list[_Tags]) -> None:
        for window in windows:
            for packet in packets:
                sphinx.unwrap(packet, key=keys[0], replays=window)

    return case(lambda: [_Tags() for _ in range(TURNS)], peel, per=TURNS * PEELED)


class _Tags:
    """The replay check at its plainest."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def test_and_set(self, tag: bytes, /) -> bool:
        fresh = tag not in self._seen
        self._seen.add(tag)
        return fresh


def measure_accuracy(dataset: str, *, nodes: int, seeds: int) -> dict[str, Any]:
    """Run the federations, spread over the cores, and return what each codec costs in percentage points."""
    runs = [Run(dataset, codec, seed, nodes, ROUNDS) for seed in range(seeds) for codec in TRAINED_WITH]
    if not runs:
        return {"accuracy": None, "accuracy_cost_points": None, "accuracy_cost_half_width": None, "setting": None}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(cores or 1, len(runs)), mp_context=context) as pool:
        found = dict(zip(runs, pool.map(federate, runs), strict=True))
    by_codec = {codec: [found[run] for run in runs if run.codec == codec] for codec in TRAINED_WITH}
    costs = {
        codec: [100.0 * (exact - coarse) for exact, coarse in zip(by_codec["f32"], each, strict=True)]
        for codec, each in by_codec.items()
        if codec != "f32"
    }
    return {
        "accuracy": {codec: mean(each) for codec, each in by_codec.items()},
        "accuracy_cost_points": {codec: mean(each) for codec, each in costs.items()},
        "accuracy_cost_half_width": {codec: _half_width(each) for codec, each in costs.items()},
        "setting": {"model": "lenet5", "dataset": dataset, "nodes": nodes, "rounds": ROUNDS, "seeds": seeds},
    }


def federate(run: Run, settings: "TrainingSettings | None" = None) -> float:
    """Let one federation train and exchange fragments; return its mean accuracy on the whole test set."""
    import torch

    from unlinkabledfl.mixnet.topology import circulant

    torch.set_num_threads(1)
    learners = _learners(run, settings)
    exchange = Exchange(learners[0].state(), run.codec)
    encoders = [exchange.encoder() for _ in learners]
    rng = np.random.default_rng((run.seed, 1))
    topology, rule = circulant(run.nodes, 4), rule_by_name("fragfedavg")
    for round_number in range(1, run.rounds + 1):
        for learner in learners:
            learner.train(round_number)
        states = [learner.state() for learner in learners]
        vectors = [exchange.layout.flatten(state) for state in states]
        messages = [
            encoder.encode(vector, round_number=round_number, rng=rng)
            for encoder, vector in zip(encoders, vectors, strict=True)
        ]
        for node, learner in enumerate(learners):
            pool = exchange.pool(round_number)
            for peer in topology.reach_within(node, 2):
                for data in messages[peer]:
                    pool.receive(data)
            learner.load(exchange.layout.unflatten(pool.aggregate(vectors[node], rule).vector, states[node]))
    return float(mean(learner.evaluate()["accuracy"] for learner in learners))


def render(document: dict[str, Any]) -> "RenderableType":
    """Return the tables that people see."""
    from rich.console import Group
    from rich.table import Table

    sizes = Table(title=f"packets (kB) a state, {document['capacity_bytes']:,} bytes a packet", title_justify="left")
    for column in ("", *CODECS, "fit/q8"):
        sizes.add_column(column, justify="right" if column else "left")
    for model, packets in document["packets"].items():
        cells = [f"{packets[codec]:,} ({document['bytes'][model][codec] / 1e3:,.0f})" for codec in CODECS]
        sizes.add_row(model, *cells, f"{document['ratio_to_q8'][model]:.0%}")
    bars = Table()
    for column in ("", "measured", "claimed", "holds"):
        bars.add_column(column, justify="right" if column else "left")
    for (name, bar), value in zip(BARS.items(), _figures(document), strict=True):
        measured, holds = ("–", "–") if value is None else (f"{value:.3g}", "yes" if value <= bar else "no")
        bars.add_row(name, measured, f"≤ {bar:g}", holds)
    return Group(sizes, bars, *_accuracy_lines(document), document["machine"]["cpu"])


def _figures(document: dict[str, Any]) -> list[float | None]:
    """Return what the bars are about, in their order."""
    cpu, cost = document["cpu"], document["accuracy_cost_points"]
    return [
        document["packets"]["lenet5"]["fit"],
        document["ratio_to_q8"]["squeezenet1_1"],
        document["ratio_to_q8"]["mobilenet_v2"],
        None if cost is None else cost["fit"],
        cpu["encode_us"]["fit"] / cpu["peel_us"]["packet"],
        cpu["decode_us"]["fit"] / cpu["peel_us"]["packet"],
        cpu["aggregate_ms"]["fragfedavg"],
    ]


def _accuracy_lines(document: dict[str, Any]) -> list[str]:
    setting = document["setting"]
    if setting is None:
        return []
    title = (
        f"accuracy after {setting['rounds']} rounds, {setting['nodes']} nodes, {setting['dataset']}, "
        f"{setting['seeds']} seeds (cost against f32 in points, ± half a 95% interval):"
    )
    lines = []
    for codec, accuracy in document["accuracy"].items():
        cost, half = document["accuracy_cost_points"].get(codec), document["accuracy_cost_half_width"].get(codec)
        interval = "" if half is None else f" ± {half:.2f}"
        lines.append(f"  {codec:4} {accuracy:.4f}" + ("" if cost is None else f"   {cost:+.2f}{interval}"))
    return [title, *lines]


def _learners(run: Run, settings: "TrainingSettings | None" = None) -> list[Any]:
    """Return the nodes of a federation, as in the benchmark `learning`."""
    from benchmarks.learning import ALPHA, recipe
    from unlinkabledfl.learning import datasets
    from unlinkabledfl.learning.images import Images, channel_statistics
    from unlinkabledfl.learning.models import build_model
    from unlinkabledfl.learning.partition import Dirichlet
    from unlinkabledfl.learning.pytorch_learner import PyTorchLearner

    train, test = datasets.load(run.dataset)
    mean_pixel, std_pixel = channel_statistics(train.images)
    parts = Dirichlet(ALPHA).split(train.labels, nodes=run.nodes, rng=np.random.default_rng(run.seed))
    tested = Images(test.images, test.labels, mean=mean_pixel, std=std_pixel, name="test")
    return [
        PyTorchLearner(
            build_model("lenet5", train.image_shape, len(train.classes), seed=run.seed),
            Images(train.images[part], train.labels[part], mean=mean_pixel, std=std_pixel, name=f"node {node}"),
            tested,
            settings=recipe(run.dataset) if settings is None else settings,
            seed=run.seed * run.nodes + node,
        )
        for node, part in enumerate(parts)
    ]


def _half_width(values: list[float]) -> float | None:
    count = len(values)
    return _T[count - 2] * stdev(values) / sqrt(count) if 1 < count <= len(_T) + 1 else None
