"""The presets: what they are for, in the figures that they promise."""

import pytest

from unlinkabledfl.experiment.expectations import packets_per_s, traffic_of
from unlinkabledfl.experiment.graphs import build_topology
from unlinkabledfl.experiment.indicators import indicators
from unlinkabledfl.experiment.scenario import PRESETS, preset
from unlinkabledfl.learning import datasets


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_called_by_its_name_and_promises_a_run(name: str) -> None:
    scenario = preset(name)

    assert scenario.run.name == name
    assert indicators(scenario).robustness.feasible


def test_paper_is_the_published_default() -> None:
    scenario = preset("paper")
    run, learning, topology, mixnet = scenario.run, scenario.learning, scenario.topology, scenario.mixnet

    assert (run.rounds, learning.model, learning.dataset, learning.partition, learning.alpha) == (
        10, "lenet5", "mnist", "dirichlet", 10.0,
    )  # fmt: skip
    assert (topology.nodes, topology.family, topology.degree) == (32, "circulant", 4)
    assert (mixnet.route, mixnet.path_length, mixnet.mixer, mixnet.outbox_size) == ("walk", 2, "outbox", 100)
    assert (mixnet.delay_mean_s, mixnet.delay_deviation_s, mixnet.cover) == (0.1, 0.001, True)
    assert (scenario.payload.codec, scenario.aggregation.rule) == ("q8", "fragfedavg")


def test_paper_has_the_published_reach_fragments_and_entropies() -> None:
    found = indicators(preset("paper"))

    assert (found.exchange.partners_mean, found.fragments.per_model, found.fragments.by_codec["f32"]) == (8.0, 7, 26)
    assert found.entropy.path_bits == pytest.approx(13.30, abs=0.005)
    assert found.entropy.local_relay_bits == pytest.approx(4.32, abs=0.005)


def test_in_strong_everybody_may_have_written_and_the_last_hop_says_hardly_more_than_a_guess() -> None:
    found = indicators(preset("strong"))

    assert found.exchange.partners_mean == 31.0
    assert found.linkability.last_hop is not None
    assert found.linkability.last_hop < 1.05 * found.linkability.guess


def test_strong_is_faster_than_paper() -> None:
    strong, paper = indicators(preset("strong")).time.round_s, indicators(preset("paper")).time.round_s

    assert strong is not None
    assert paper is not None
    assert strong < 0.6 * paper


def test_direct_sends_fragments_and_nothing_else() -> None:
    scenario = preset("direct")
    graph = build_topology(scenario)

    assert packets_per_s(scenario, traffic_of(scenario, graph)) == 0.0
    assert indicators(scenario).traffic.packets_per_message == 2.0


def test_demo_needs_no_network_and_is_over_soon_on_two_cores() -> None:
    scenario = preset("demo")
    found = indicators(scenario)

    assert datasets.state(scenario.learning.dataset) in {"packaged", "ready"}
    assert (scenario.run.backend, scenario.topology.nodes, scenario.run.rounds) == ("process", 8, 5)
    assert found.time.run_s is not None
    assert found.time.run_s < 40.0
