"""The finding that the choice of routes rests on, by enumeration."""

import numpy as np
import pytest

from unlinkabledfl.analysis.last_hop import LastHop, direct_law, overlay_law, walk_law
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.mixnet.topology import Topology, circulant, full

NODES = 32


def everybody_else(nodes: int) -> list[list[int]]:
    return [[other for other in range(nodes) if other != node] for node in range(nodes)]


def ends_of_walks(topology: Topology, path_length: int) -> list[tuple[int, ...]]:
    return [topology.reach_exactly(node, path_length) for node in range(topology.nodes)]


@pytest.mark.parametrize(("path_length", "accuracy"), [(2, 0.500), (3, 0.250), (4, 0.167), (5, 0.116)])
def test_walks_name_the_sender_by_their_last_hop(path_length: int, accuracy: float) -> None:
    topology = circulant(NODES, 4)

    found = LastHop(walk_law(topology, path_length=path_length), ends_of_walks(topology, path_length))

    assert found.accuracy == pytest.approx(accuracy, abs=0.001)


def test_a_single_hop_names_the_sender_always() -> None:
    topology = circulant(NODES, 4)

    found = LastHop(walk_law(topology, path_length=1), ends_of_walks(topology, 1))

    assert found.accuracy == pytest.approx(1.0)
    assert found.blind_accuracy == pytest.approx(1 / 4)


@pytest.mark.parametrize("path_length", [2, 3, 4, 5])
def test_relays_drawn_from_everybody_tell_only_who_did_not_send(path_length: int) -> None:
    found = LastHop(overlay_law(NODES, path_length=path_length), everybody_else(NODES))

    # The last hop is not the sender, nor is the destination: one in thirty, where guessing blindly has one in 31.
    assert found.accuracy == pytest.approx(1 / 30)
    assert found.blind_accuracy == pytest.approx(1 / 31)
    assert found.candidates(0, 1) == 30


def test_writing_to_few_makes_the_crowd_small_whatever_the_routes() -> None:
    topology = circulant(NODES, 4)
    within_two_hops = [topology.reach_within(node, 2) for node in range(NODES)]

    found = LastHop(overlay_law(NODES, path_length=4), within_two_hops)

    assert found.blind_accuracy == pytest.approx(1 / 12)
    assert found.accuracy == pytest.approx(0.0861, abs=1e-4)


def test_paths_of_up_to_two_edges_name_the_sender_one_time_in_three() -> None:
    topology = circulant(NODES, 4)
    within_two_hops = [topology.reach_within(node, 2) for node in range(NODES)]

    found = LastHop(walk_law(topology, path_length=2, up_to=True), within_two_hops)

    assert found.accuracy == pytest.approx(1 / 3)
    # The last hop itself may have sent directly.
    assert found.posterior(0, 1)[1] == pytest.approx(1 / 3)


def test_direct_delivery_hides_nothing() -> None:
    assert LastHop(direct_law(NODES), everybody_else(NODES)).accuracy == pytest.approx(1.0)


def test_posteriors_are_distributions_over_possible_senders() -> None:
    topology = circulant(NODES, 4)
    found = LastHop(walk_law(topology, path_length=3), ends_of_walks(topology, 3))

    for last_hop in topology.neighbours(5):
        posterior = found.posterior(5, last_hop)
        assert posterior.sum() == pytest.approx(1.0)
        assert posterior[5] == 0.0
        assert np.count_nonzero(posterior) == found.candidates(5, last_hop)


def test_what_cannot_be_seen_has_no_posterior() -> None:
    topology = circulant(NODES, 4)
    found = LastHop(walk_law(topology, path_length=2), ends_of_walks(topology, 2))

    with pytest.raises(ConfigError, match="travelled by the stated routes"):
        found.posterior(0, 16)


def test_in_a_full_mesh_walks_hide_as_well_as_overlay_routes() -> None:
    topology = full(NODES)

    walk = LastHop(walk_law(topology, path_length=2), ends_of_walks(topology, 2))

    assert walk.accuracy == pytest.approx(1 / 30)
