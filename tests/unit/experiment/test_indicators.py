"""What a scenario promises, against what is known by other means; and what is said against it."""

import math

import pytest

from tests.unit.mixnet.mixing import seeded
from unlinkabledfl.analysis.last_hop import LastHop, overlay_law, valiant_law, walk_law
from unlinkabledfl.experiment.expectations import exchange_s, traffic_of
from unlinkabledfl.experiment.figures import Indicators
from unlinkabledfl.experiment.graphs import ExchangeSets, build_topology
from unlinkabledfl.experiment.indicators import indicators
from unlinkabledfl.experiment.linkability import last_hop_linkability
from unlinkabledfl.experiment.scenario import preset
from unlinkabledfl.mixnet.routes import TransportGraph, ValiantRoutes
from unlinkabledfl.sphinx import NodeId


def check(name: str, *overrides: str) -> Indicators:
    return indicators(preset(name, overrides))


def keys_of(found: Indicators, *, serious: bool) -> set[str]:
    return {caution.key for caution in found.cautions if caution.serious is serious}


# -- linkability ------------------------------------------------------------------------------------------------------


def test_the_last_hop_of_the_published_design_names_the_sender_half_of_the_time() -> None:
    linkability = check("paper").linkability

    assert linkability.last_hop == pytest.approx(0.5)
    assert linkability.guess == pytest.approx(1 / 8)


def test_with_relays_from_everybody_it_is_one_in_thirty_one_or_so() -> None:
    linkability = check("paper", "mixnet.route=overlay").linkability

    assert linkability.guess == pytest.approx(1 / 31)
    assert linkability.last_hop == pytest.approx(1 / 30)


@pytest.mark.parametrize(
    "overrides",
    [
        ["mixnet.route=walk", "mixnet.path_length=2"],
        ["mixnet.route=walk", "mixnet.path_length=3"],
        ["mixnet.route=walk_up_to", "mixnet.path_length=2"],
        ["mixnet.route=overlay", "mixnet.exchange=within"],
        ["mixnet.route=overlay", "mixnet.path_length=1"],
    ],
)
@pytest.mark.parametrize("family", [["topology.nodes=16"], ["topology.family=random_regular", "topology.nodes=14"]])
def test_it_is_what_the_exact_posteriors_of_the_analysis_give(overrides: list[str], family: list[str]) -> None:
    scenario = preset("paper", [*family, *overrides])
    graph, mixnet = build_topology(scenario), scenario.mixnet
    sets = ExchangeSets(graph, mixnet)
    law = (
        overlay_law(graph.nodes, path_length=mixnet.path_length)
        if mixnet.route == "overlay"
        else walk_law(graph, path_length=mixnet.path_length, up_to=mixnet.route == "walk_up_to")
    )
    exact = LastHop(law, [sets.of(node) for node in range(graph.nodes)])

    assert last_hop_linkability(graph, mixnet).accuracy == pytest.approx(exact.accuracy)


def test_the_law_of_valiant_routes_is_that_of_its_draws() -> None:
    scenario = preset("paper", ["topology.nodes=9", "topology.family=random_regular", "mixnet.route=valiant"])
    graph = build_topology(scenario)
    ids = tuple(NodeId(node.to_bytes(32)) for node in range(9))
    routes, draw = ValiantRoutes(graph=TransportGraph(topology=graph, node_ids=ids)), seeded(5)
    many = 20_000
    counts = [0] * 9
    for _ in range(many):
        path = routes.route(source=ids[0], destination=ids[4], draw=draw)
        counts[int.from_bytes(path[-2]) if len(path) > 1 else 0] += 1

    expected = valiant_law(graph)(0, 4)

    # Five standard errors of a share of 20,000 draws.
    assert expected.sum() == pytest.approx(1.0)
    assert all(
        abs(count / many - share) < 5 * math.sqrt(0.25 / many) for count, share in zip(counts, expected, strict=True)
    )


def test_large_graphs_are_answered_or_said_not_to_be() -> None:
    overlay = check("strong", "topology.nodes=1000", "mixnet.exchange=within").linkability
    walk = check("paper", "topology.nodes=1000").linkability

    assert overlay.last_hop == pytest.approx(1 / 12, rel=0.01)
    assert walk.last_hop is None
    assert "not computed" in walk.basis


# -- time and traffic -------------------------------------------------------------------------------------------------


def test_more_fragments_or_fewer_slots_take_longer() -> None:
    def takes(*overrides: str) -> float:
        scenario = preset("strong", overrides)
        found = exchange_s(scenario, traffic_of(scenario, build_topology(scenario)))
        assert found is not None
        return found

    assert takes() < takes("payload.codec=q8") < takes("payload.codec=f32")
    assert takes("mixnet.emission_rate_per_s=16") < takes() < takes("mixnet.emission_rate_per_s=2")
    assert takes("mixnet.delay_mean_s=0.5") < takes() < takes("mixnet.path_length=6")


def test_without_delays_an_exchange_lasts_as_long_as_its_slots() -> None:
    scenario = preset("strong", ["mixnet.delay_mean_s=0", "links.latency_s=0", "links.jitter_s=0"])
    found = exchange_s(scenario, traffic_of(scenario, build_topology(scenario)))

    # 124 fragments at 8 a second, and what the slowest of 32 streams takes longer.
    assert found is not None
    assert 15.5 < found < 20.0


def test_cover_costs_what_its_rates_say() -> None:
    traffic = check("strong").traffic

    assert traffic.packets_per_s == pytest.approx(8.0 * 10 + 1.0 * 5)
    assert check("strong", "mixnet.cover=false").traffic.packets_per_s == 0.0
    assert check("paper").traffic.packets_per_s == pytest.approx(10.0)


def test_a_share_of_the_fragments_is_a_share_of_the_messages() -> None:
    found = check("paper", "payload.ratio=0.25").fragments

    assert (found.per_model, found.per_partner, found.per_round) == (7, 2, 16.0)


@pytest.mark.parametrize(
    ("overrides", "round_s"),
    [
        (["aggregation.completion=cadence", "aggregation.cadence_s=90"], 90.0),
        (["aggregation.completion=deadline", "aggregation.deadline_s=90"], 94.0),
        (["aggregation.completion=immediate"], 4.0),
    ],
)
def test_a_round_ends_as_its_completion_says(overrides: list[str], round_s: float) -> None:
    assert check("strong", "learning.training_time_s=3", *overrides).time.round_s == pytest.approx(round_s)


def test_for_a_learner_of_ones_own_sizes_are_not_guessed() -> None:
    found = check("strong", "learning.factory=my.module:make")

    assert found.fragments.per_model is None
    assert found.time.round_s is None
    assert found.traffic.bytes_per_round is None
    assert found.time.deadline_s == 600.0


# -- entropy ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path_length", "outbox_size", "path_bits", "relay_bits"),
    [(1, 100, 6.64, 0.0), (5, 100, 33.23, 6.04), (2, 10, 6.78, 2.66), (2, 100, 13.30, 4.32)],
)
def test_counted_entropies_are_the_published_ones(
    path_length: int, outbox_size: int, path_bits: float, relay_bits: float
) -> None:
    entropy = check(
        "paper", "mixnet.route=overlay", f"mixnet.path_length={path_length}", f"mixnet.outbox_size={outbox_size}"
    ).entropy

    assert entropy.path_bits == pytest.approx(path_bits, abs=0.006)
    assert entropy.local_relay_bits == pytest.approx(relay_bits, abs=0.006)


def test_exponential_delays_count_as_the_outbox_of_equal_entropy() -> None:
    entropy = check("strong").entropy

    # 8 packets a second held in 9 mixers each for 1.5 s, a loop in 4.
    assert entropy.held_packets == pytest.approx(114.0)
    assert entropy.outbox_size == pytest.approx(math.e * 114.0)


# -- robustness -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("byzantine", "feasible"), [(3, True), (4, False)])
def test_krum_needs_more_than_two_candidates_for_each_malicious_one(byzantine: int, feasible: bool) -> None:
    robustness = check("paper", "aggregation.rule=fragkrum", f"aggregation.byzantine={byzantine}").robustness

    assert (robustness.candidates, robustness.feasible, robustness.tolerated) == (9.0, feasible, 3)


def test_a_share_of_the_fragments_gives_fewer_candidates() -> None:
    assert check("paper", "payload.ratio=0.5").robustness.candidates == 5.0


# -- what is said against it ------------------------------------------------------------------------------------------


def test_nothing_is_said_against_strong() -> None:
    assert keys_of(check("strong", "learning.dataset=fashion-mnist-mini"), serious=True) == set()


@pytest.mark.parametrize(
    ("name", "overrides", "key"),
    [
        ("paper", [], "mixnet.route"),
        ("strong", ["mixnet.path_length=1"], "mixnet.path_length"),
        ("strong", ["mixnet.cover=false"], "mixnet.cover"),
        ("strong", ["aggregation.deadline_s=2"], "aggregation.deadline_s"),
        ("strong", ["aggregation.deadline_s=15"], "aggregation.deadline_s"),
        ("strong", ["aggregation.completion=cadence", "aggregation.cadence_s=5"], "aggregation.cadence_s"),
        ("strong", ["mixnet.emission_rate_per_s=0.05"], "mixnet.emission_rate_per_s"),
        ("strong", ["mixnet.transit_capacity=20"], "mixnet.transit_capacity"),
        ("paper", ["mixnet.neighbour_packets_per_s=1"], "mixnet.neighbour_packets_per_s"),
        ("paper", ["mixnet.transit_capacity=100"], "mixnet.neighbour_share"),
        ("paper", ["aggregation.rule=fragkrum", "aggregation.byzantine=4"], "aggregation.rule"),
        ("demo", ["topology.family=ring", "topology.join=[{node=0,round=2},{node=4,round=2}]"], "topology.join"),
        ("strong", ["topology.nodes=10000", "learning.model=mobilenet_v2"], "topology.nodes"),
    ],
)
def test_what_will_not_do_is_said_by_key(name: str, overrides: list[str], key: str) -> None:
    assert key in keys_of(check(name, *overrides), serious=True)


@pytest.mark.parametrize(
    ("name", "overrides", "key"),
    [
        ("direct", [], "mixnet.mixer"),
        ("paper", ["mixnet.route=overlay"], "mixnet.path_length"),
        ("strong", ["mixnet.delay_mean_s=0.01"], "mixnet.delay_mean_s"),
        ("strong", ["mixnet.exchange=within", "mixnet.exchange_hops=1", "topology.family=ring"], "mixnet.exchange"),
        ("strong", ["mixnet.own_capacity=10"], "mixnet.own_capacity"),
        ("strong", ["aggregation.byzantine=2"], "aggregation.byzantine"),
        (
            "strong",
            ["aggregation.rule=fragkrum", "aggregation.byzantine=1", "attack.kind=gaussian", "attack.nodes=3"],
            "aggregation.byzantine",
        ),
        ("strong", ["run.backend=process", "topology.nodes=200"], "topology.nodes"),
        ("demo", ["process.pin=true", "topology.nodes=200"], "process.pin"),
        ("strong", ["payload.obfuscation=masks"], "payload.obfuscation"),
    ],
)
def test_what_is_worth_knowing_is_said_by_key(name: str, overrides: list[str], key: str) -> None:
    assert key in keys_of(check(name, *overrides), serious=False)


def test_masks_that_not_everybody_shares_with_everybody_are_warned_of() -> None:
    masks = "payload.obfuscation=masks"  # among 31 senders of every destination

    assert "payload.obfuscation_peers" not in keys_of(check("strong", masks), serious=True)
    assert "payload.obfuscation_peers" not in keys_of(
        check("strong", masks, "payload.obfuscation_peers=30"), serious=True
    )
    assert "payload.obfuscation_peers" in keys_of(check("strong", masks, "payload.obfuscation_peers=29"), serious=True)


def test_a_dataset_that_is_not_here_is_said_with_the_command_that_fetches_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("UNLINKABLEDFL_DATA", str(tmp_path))

    texts = [caution.text for caution in check("paper").cautions if caution.key == "learning.dataset"]

    assert texts == ["mnist is absent on this machine: `unlinkabledfl data get mnist` fetches it."]


def test_serious_ones_come_first() -> None:
    found = check("paper", "mixnet.cover=false").cautions

    assert [caution.serious for caution in found] == sorted((caution.serious for caution in found), reverse=True)
