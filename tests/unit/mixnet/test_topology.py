from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.mixnet.mixing import seeded
from tests.unit.mixnet.networks import simple_paths
from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.mixnet import topology
from unlinkabledfl.mixnet.topology import UNREACHABLE, Topology


def edges_of(graph: Topology) -> set[tuple[int, int]]:
    return {(node, near) for node in range(graph.nodes) for near in graph.neighbours(node)}


def assert_simple(graph: Topology) -> None:
    edges = edges_of(graph)
    assert edges == {(other, one) for one, other in edges}
    assert all(one != other for one, other in edges)
    assert len(edges) == 2 * graph.edges == sum(len(graph.neighbours(node)) for node in range(graph.nodes))
    assert all(list(graph.neighbours(node)) == sorted(graph.neighbours(node)) for node in range(graph.nodes))


@st.composite
def small_graphs(draw: st.DrawFn) -> Topology:
    nodes = draw(st.integers(2, 8))
    pairs = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(lambda pair: pair[0] != pair[1])
    return topology.from_edges(nodes, draw(st.lists(pairs, max_size=20)))


degrees = st.integers(2, 40).flatmap(
    lambda nodes: st.tuples(
        st.just(nodes),
        st.just(1) if nodes == 2 else st.integers(2, nodes - 1).filter(lambda degree: nodes * degree % 2 == 0),
    )
)


def test_the_default_circulant_has_the_sizes_of_the_paper() -> None:
    graph = topology.circulant(32, 4)

    assert graph.neighbours(0) == (1, 6, 26, 31)
    assert [len(graph.reach_within(node, 2)) for node in range(32)] == [12] * 32
    assert graph.reach_exactly(0, 2) == (2, 5, 7, 12, 20, 25, 27, 30)
    assert [len(graph.reach_exactly(node, 2)) for node in range(32)] == [8] * 32


def test_a_full_mesh_reaches_everybody() -> None:
    graph = topology.full(32)

    assert len(graph.reach_within(0, 2)) == len(graph.reach_exactly(0, 2)) == 31
    assert graph.diameter() == 1


@given(size=degrees)
def test_a_circulant_is_regular_connected_and_the_same_from_every_node(size: tuple[int, int]) -> None:
    nodes, degree = size

    graph = topology.circulant(nodes, degree)

    assert_simple(graph)
    assert {len(graph.neighbours(node)) for node in range(nodes)} == {degree}
    assert graph.is_connected()
    steps = {(near - node) % nodes for node, near in edges_of(graph)}
    assert len(steps) == degree


@pytest.mark.parametrize(("nodes", "degree", "diameter"), [(32, 4, 5), (100, 6, 5), (1000, 8, 8), (10_000, 8, 18)])
def test_spread_offsets_keep_a_circulant_narrow(nodes: int, degree: int, diameter: int) -> None:
    assert topology.circulant(nodes, degree).diameter() == diameter


def test_a_ring_joins_each_node_with_the_next() -> None:
    assert edges_of(topology.ring(4)) == {(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (3, 0), (0, 3)}
    assert edges_of(topology.ring(2)) == {(0, 1), (1, 0)}


@given(size=degrees, seed=st.integers(0, 2**32))
def test_a_random_regular_graph_is_regular_connected_and_reproducible(size: tuple[int, int], seed: int) -> None:
    nodes, degree = size

    graph = topology.random_regular(nodes, degree, seeded(seed))

    assert_simple(graph)
    assert {len(graph.neighbours(node)) for node in range(nodes)} == {degree}
    assert graph.is_connected()
    assert edges_of(graph) == edges_of(topology.random_regular(nodes, degree, seeded(seed)))


def test_random_regular_graphs_differ_with_the_seed() -> None:
    one, other = (topology.random_regular(30, 4, seeded(seed)) for seed in (1, 2))

    assert edges_of(one) != edges_of(other)


@given(half=st.integers(2, 4), nodes=st.integers(10, 40), rewire=st.floats(0.0, 1.0), seed=st.integers(0, 2**32))
def test_a_small_world_keeps_its_number_of_edges_and_is_connected(
    half: int, nodes: int, rewire: float, seed: int
) -> None:
    graph = topology.small_world(nodes, 2 * half, rewire, seeded(seed))

    assert_simple(graph)
    assert graph.edges == nodes * half
    assert graph.is_connected()


def test_without_rewiring_a_small_world_is_a_ring_lattice() -> None:
    assert topology.small_world(10, 4, 0.0, seeded(1)).neighbours(0) == (1, 2, 8, 9)


def test_rewiring_shortens_a_ring_lattice() -> None:
    graph = topology.small_world(400, 4, 0.2, seeded(1))

    assert graph.diameter() < topology.small_world(400, 4, 0.0, seeded(1)).diameter() / 5


@pytest.mark.parametrize(
    "build",
    [
        lambda: topology.circulant(10_000, 8),
        lambda: topology.random_regular(10_000, 8, seeded(1)),
        lambda: topology.small_world(10_000, 8, 0.1, seeded(1)),
    ],
)
def test_ten_thousand_nodes_are_no_obstacle(build: Callable[[], Topology]) -> None:
    graph = build()

    assert (graph.nodes, graph.edges, graph.is_connected()) == (10_000, 40_000, True)


def test_given_edges_may_repeat_in_either_direction() -> None:
    graph = topology.from_edges(3, [(0, 1), (1, 0), (1, 2), (1, 2)])

    assert [graph.neighbours(node) for node in range(3)] == [(1,), (0, 2), (1,)]


@pytest.mark.parametrize(
    ("build", "key", "says"),
    [
        (lambda: topology.circulant(1, 0), "topology.nodes", "got 1, takes at least 2 nodes"),
        (lambda: topology.ring(0), "topology.nodes", "got 0, takes at least 2 nodes"),
        (lambda: topology.full(1), "topology.nodes", "got 1, takes at least 2 nodes"),
        (lambda: topology.circulant(2, 2), "topology.degree", "got 2, takes 1 when there are 2 nodes"),
        (lambda: topology.circulant(8, 1), "topology.degree", "got 1, takes a degree from 2 to 7"),
        (lambda: topology.circulant(8, 8), "topology.degree", "got 8, takes a degree from 2 to 7"),
        (lambda: topology.circulant(9, 3), "topology.degree", "takes an even degree .* odd .9. .2 works"),
        (lambda: topology.random_regular(9, 5, seeded(1)), "topology.degree", "takes an even degree .* .4 works"),
        (lambda: topology.small_world(10, 3, 0.1, seeded(1)), "topology.degree", "got 3, takes an even degree of at"),
        (lambda: topology.small_world(10, 2, 0.1, seeded(1)), "topology.degree", "got 2, takes an even degree of at"),
        (lambda: topology.small_world(10, 4, 1.5, seeded(1)), "topology.rewire", "got 1.5, takes a probability"),
        (lambda: topology.from_edges(3, [(0, 3)]), "topology.edges", "got .0, 3., takes pairs .* 0 to 2"),
        (lambda: topology.from_edges(3, [(1, 1)]), "topology.edges", "got .1, 1., takes pairs of different nodes"),
    ],
)
def test_an_impossible_topology_names_key_value_and_way_out(build: Callable[[], Topology], key: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        build()

    assert caught.value.key == key


def test_distances_count_edges_and_mark_what_is_out_of_reach() -> None:
    graph = topology.from_edges(5, [(0, 1), (1, 2), (3, 4)])

    assert graph.distances_from(0) == [0, 1, 2, UNREACHABLE, UNREACHABLE]
    assert not graph.is_connected()
    with pytest.raises(LocalProtocolError, match="diameter"):
        graph.diameter()


@given(graph=small_graphs())
def test_the_diameter_is_the_largest_distance(graph: Topology) -> None:
    distances = [distance for node in range(graph.nodes) for distance in graph.distances_from(node)]

    if UNREACHABLE in distances:
        assert not graph.is_connected()
    else:
        assert graph.diameter() == max(distances)


@given(graph=small_graphs(), hops=st.integers(1, 8), data=st.data())
def test_reach_agrees_with_a_listing_of_all_simple_paths(graph: Topology, hops: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, graph.nodes - 1))
    ends = {
        length: {end for end in range(graph.nodes) if end != start and simple_paths(graph, start, end, length)}
        for length in range(1, hops + 1)
    }

    assert set(graph.reach_exactly(start, hops)) == ends[hops]
    assert set(graph.reach_within(start, hops)) == set().union(*ends.values())
    assert graph.starts_simple_path(start, hops) == bool(ends[hops])
    assert [graph.has_simple_path(start, end, hops) for end in range(graph.nodes) if end != start] == [
        end in ends[hops] for end in range(graph.nodes) if end != start
    ]


def test_a_search_on_a_graph_made_to_be_hard_ends() -> None:
    # A clique that hangs on one node: a simple path that has entered it never comes out to the leaf.
    clique = [(one, other) for one in range(2, 40) for other in range(2, one)]
    graph = topology.from_edges(40, [(0, 1), (1, 2), *clique])

    assert not graph.has_simple_path(2, 0, 10)
    assert graph.has_simple_path(2, 0, 2)
