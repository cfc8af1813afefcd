"""Theorem 1 for whole designs: routes counted by hand, and a bound that is above what it bounds."""

from itertools import combinations
from math import log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unlinkabledfl.analysis.bound import bound_of, overlay_paths, relays_owned, route_view, walk_paths
from unlinkabledfl.analysis.entropy import CompromiseRegime
from unlinkabledfl.analysis.last_hop import LastHop, overlay_law, walk_law
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.mixnet.topology import circulant, ring

GRAPH = circulant(32, 4)


def ends(path_length: int) -> list[tuple[int, ...]]:
    return [GRAPH.reach_exactly(node, path_length) for node in range(32)]


def everybody(nodes: int) -> list[tuple[int, ...]]:
    return [tuple(other for other in range(nodes) if other != node) for node in range(nodes)]


@pytest.mark.parametrize("path_length", [2, 3, 4, 5])
def test_the_best_guess_is_the_enumerated_one(path_length: int) -> None:
    exact = LastHop(walk_law(GRAPH, path_length=path_length), ends(path_length)).accuracy

    view = route_view(walk_paths(GRAPH, path_length=path_length), ends(path_length), destinations=[0])

    assert view.guess == pytest.approx(exact)
    assert view.guess <= view.bound <= 1.0


def test_routes_over_relays_hide_the_sender_among_all_but_two() -> None:
    view = route_view(overlay_paths(32, path_length=4), everybody(32), destinations=range(32))

    assert view.senders == pytest.approx(30.0)
    assert view.routes == 29 * 28
    assert view.route_bits == pytest.approx(log2(30 * 29 * 28))
    assert view.guess == view.bound == pytest.approx(1 / 30)
    assert view.guess == pytest.approx(LastHop(overlay_law(32, path_length=4), everybody(32)).accuracy)


def test_on_a_ring_the_last_hop_tells_everything() -> None:
    graph = ring(12)
    writes = [graph.reach_exactly(node, 3) for node in range(12)]

    view = route_view(walk_paths(graph, path_length=3), writes, destinations=range(12))

    assert (view.senders, view.routes, view.route_bits, view.guess, view.bound) == (1.0, 1, 0.0, 1.0, 1.0)


def test_without_compromised_relays_the_outbox_is_not_in_the_bound() -> None:
    view = route_view(walk_paths(GRAPH, path_length=2), ends(2), destinations=[0])

    values = [bound_of(view, outbox_size=size, hidden_most=2, hidden_least=2).value for size in (1, 10, 1_000)]

    assert values == pytest.approx([0.5, 0.5, 0.5])


@pytest.mark.parametrize(("outbox_size", "vacuous"), [(1, False), (2, True), (100, True)])
def test_one_shuffle_less_on_the_least_hidden_trajectory_makes_the_bound_vacuous(
    outbox_size: int, vacuous: bool
) -> None:
    view = route_view(walk_paths(GRAPH, path_length=2), ends(2), destinations=[0])

    bound = bound_of(view, outbox_size=outbox_size, hidden_most=2, hidden_least=1)

    assert bound.is_vacuous is vacuous
    assert bound.unclipped == pytest.approx(0.5 * outbox_size)


@settings(max_examples=20, deadline=None)
@given(st.integers(5, 12), st.integers(2, 4))
def test_the_bound_is_never_below_the_guess(nodes: int, path_length: int) -> None:
    graph = circulant(nodes, 4)
    writes = [graph.reach_exactly(node, path_length) for node in range(nodes)]

    view = route_view(walk_paths(graph, path_length=path_length), writes, destinations=range(nodes))

    assert view.guess <= view.bound + 1e-12
    assert view.senders >= 1.0
    assert 1 / view.senders <= view.guess + 1e-12


@pytest.mark.parametrize("path_length", [2, 3])
def test_over_all_sets_of_compromised_nodes_the_graph_averages_out(path_length: int) -> None:
    graph = circulant(9, 4)
    writes = [graph.reach_exactly(node, path_length) for node in range(9)]
    owned = round(0.4 * 9)

    # For each set the mean is over its honest senders, of which there are equally many.
    sets = list(combinations(range(9), owned))
    mean = sum(relays_owned(graph, writes, path_length=path_length, owned=each) for each in sets) / len(sets)

    assert mean == pytest.approx(CompromiseRegime(path_length=path_length, share=0.4).all_relays_compromised(9))


def test_of_one_set_the_graph_decides() -> None:
    spread, together = range(0, 32, 4), range(8)

    apart, close = (relays_owned(GRAPH, ends(2), path_length=2, owned=owned) for owned in (spread, together))

    assert apart > close


def test_real_routes_are_compromised_more_often_than_the_idealized_ones() -> None:
    regime = CompromiseRegime(path_length=4, share=0.25)

    assert regime.all_compromised == pytest.approx(0.0039, abs=1e-4)
    assert regime.all_relays_compromised(32) == pytest.approx(8 * 7 * 6 / (31 * 30 * 29))
    assert CompromiseRegime(path_length=4, share=0.05).all_relays_compromised(32) == 0.0


def test_nobody_who_reaches_anybody_is_an_error() -> None:
    with pytest.raises(ConfigError, match="somebody reaches another"):
        route_view(overlay_paths(4, path_length=2), [(), (), (), ()], destinations=range(4))
