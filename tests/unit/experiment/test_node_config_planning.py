"""From a scenario to its nodes: everything follows from the seed, and both ends of every exchange agree."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.graphs import ExchangeSets, build_topology, fewest_present
from unlinkabledfl.experiment.planning import ExperimentPlan, local_hosting, plan_experiment
from unlinkabledfl.experiment.scenario import Scenario, preset


def plan(name: str = "demo", *overrides: str) -> ExperimentPlan:
    return plan_experiment(preset(name, overrides))


def test_equal_seeds_give_equal_plans_and_others_do_not() -> None:
    assert list(plan()) == list(plan())
    assert plan().node_ids != plan("demo", "run.seed=2").node_ids


def test_the_virtual_world_has_no_link_keys() -> None:
    assert all(node.link is None and not node.contacts for node in plan())


def test_on_this_host_nodes_know_where_their_neighbours_listen() -> None:
    scenario = preset("demo", ["process.base_port=7000"])
    nodes = list(plan_experiment(scenario, hosting=local_hosting(scenario)))
    links = [node.link for node in nodes if node.link is not None]

    assert [link.addresses for link in links] == [(f"127.0.0.1:{7000 + index}",) for index in range(8)]
    assert all(link.allow_loopback and link.datagram_bytes == 16_384 for link in links)
    by_id = {node.node_id: link for node, link in zip(nodes, links, strict=True)}
    for node in nodes:
        assert {contact.node_id for contact in node.contacts} == set(node.neighbours)
        for contact in node.contacts:
            assert contact.addresses == by_id[contact.node_id].addresses
            assert contact.fingerprint == by_id[contact.node_id].identity().fingerprint.hex()


def test_without_ports_addresses_are_left_to_whoever_binds() -> None:
    scenario = preset("demo")
    node = plan_experiment(scenario, hosting=local_hosting(scenario)).node(0)

    assert node.link is not None
    assert (node.link.port, node.link.addresses) == (0, ())
    assert all(contact.addresses == () for contact in node.contacts)


@pytest.mark.parametrize(
    ("overrides", "partners"),
    [
        (["mixnet.route=walk", "mixnet.path_length=2", "mixnet.exchange=reach"], 8),
        (["mixnet.route=walk_up_to", "mixnet.path_length=2", "mixnet.exchange=reach"], 12),
        (["mixnet.route=walk_up_to", "mixnet.path_length=2", "mixnet.exchange=neighbours"], 4),
        (["mixnet.route=overlay", "mixnet.exchange=reach"], 31),
        (["mixnet.route=overlay", "mixnet.exchange=within", "mixnet.exchange_hops=2"], 12),
        (["mixnet.route=valiant", "mixnet.exchange=neighbours"], 4),
    ],
)
def test_the_partners_of_the_published_graph(overrides: list[str], partners: int) -> None:
    assert {len(node.destinations) for node in plan("paper", *overrides)} == {partners}


graphs = st.sampled_from(
    [
        ["topology.family=circulant", "topology.degree=4"],
        ["topology.family=ring", "topology.degree=2"],
        ["topology.family=full"],
        ["topology.family=random_regular", "topology.degree=4"],
        ["topology.family=small_world", "topology.degree=4", "topology.rewire=0.3"],
    ]
)
exchanges = st.sampled_from(
    [
        ["mixnet.route=overlay", "mixnet.exchange=within"],
        ["mixnet.route=overlay", "mixnet.exchange=reach"],
        ["mixnet.route=overlay", "mixnet.exchange=neighbours"],
        ["mixnet.route=walk", "mixnet.path_length=2", "mixnet.exchange=reach"],
        ["mixnet.route=walk", "mixnet.path_length=3", "mixnet.exchange=reach"],
        ["mixnet.route=walk_up_to", "mixnet.path_length=2", "mixnet.exchange=reach"],
    ]
)


@settings(max_examples=40)
@given(graphs, exchanges, st.integers(6, 14), st.integers(1, 1_000))
def test_whoever_sends_to_a_node_is_expected_by_it(
    graph: list[str], exchange: list[str], nodes: int, seed: int
) -> None:
    scenario = preset("demo", [f"topology.nodes={nodes}", f"run.seed={seed}", *graph, *exchange])
    configs = list(plan_experiment(scenario))
    sends = {(config.node_id, other) for config in configs for other in config.destinations}
    expected = {(other, config.node_id) for config in configs for other in config.expected_from}

    assert sends == expected
    assert not any(one == other for one, other in sends)


@given(st.integers(5, 30), st.integers(1, 8), st.integers(1, 1_000))
def test_partners_within_some_links_are_all_that_are_so_near(nodes: int, hops: int, seed: int) -> None:
    scenario = preset(
        "demo",
        [f"topology.nodes={2 * nodes}", "topology.family=random_regular", "topology.degree=3", f"run.seed={seed}",
         f"mixnet.exchange_hops={hops}"],
    )  # fmt: skip
    graph = build_topology(scenario)
    sets = ExchangeSets(graph, scenario.mixnet)

    assert all(sets.of(node) == graph.reach_within(node, hops) for node in range(0, graph.nodes, 5))


@pytest.mark.parametrize("family", ["random_regular", "small_world"])
def test_a_random_graph_follows_its_own_seed_or_else_the_scenarios(family: str) -> None:
    def neighbours(*overrides: str) -> list[tuple[int, ...]]:
        graph = build_topology(preset("demo", [f"topology.family={family}", "topology.nodes=20", *overrides]))
        return [graph.neighbours(node) for node in range(graph.nodes)]

    assert neighbours("run.seed=1") != neighbours("run.seed=2")
    assert neighbours("topology.seed=5", "run.seed=1") == neighbours("topology.seed=5", "run.seed=2")


# -- schedule and attackers -------------------------------------------------------------------------------------------


def test_joins_and_exits_reach_the_nodes_and_their_partners() -> None:
    made = plan("demo", "topology.join=[{node=3,round=2},{node=5,round=4}]", "topology.exit=[{node=1,round=3}]")
    names = [node_id.hex() for node_id in made.node_ids]
    schedules = [(node.schedule.first_round, node.schedule.last_round) for node in made]

    assert schedules == [(1, None), (1, 3), (1, None), (2, None), (1, None), (4, None), (1, None), (1, None)]
    assert set(made.node(0).absent) == {names[3], names[5]}
    assert set(made.node(3).absent) == {names[5]}
    assert set(made.node(5).absent) == {names[1]}
    assert made.absent == (3, 5)
    assert [made.joins_in(number) for number in (1, 2, 4)] == [(), (3,), (5,)]


def test_the_seed_chooses_attackers_and_only_they_are_told() -> None:
    made = plan("paper", "attack.kind=gaussian", "attack.nodes=5")

    assert len(made.attackers) == 5
    assert [node.index for node in made if node.attack == "gaussian"] == list(made.attackers)
    assert [node.index for node in made if node.learner.settings["attack"]] == list(made.attackers)
    assert made.attackers == plan("paper", "attack.kind=gaussian", "attack.nodes=5").attackers
    assert made.attackers != plan("paper", "attack.kind=gaussian", "attack.nodes=5", "run.seed=2").attackers


def test_attackers_may_be_chosen() -> None:
    assert plan("demo", "attack.kind=sign_flip", "attack.chosen=[6,2]").attackers == (2, 6)


def test_a_deadline_is_taken_as_given_or_leaves_room() -> None:
    assert plan("demo", "aggregation.deadline_s=7.5").node(0).schedule.deadline_s == 7.5
    assert plan("strong").deadline_s > 60.0


# -- graphs from files ------------------------------------------------------------------------------------------------


def from_file(tmp_path: Path, text: str, nodes: int = 4) -> Scenario:
    path = tmp_path / "links.txt"
    path.write_text(text, encoding="utf-8")
    return preset("demo", ["topology.family=file", f"topology.file={path}", f"topology.nodes={nodes}"])


def test_a_graph_is_read_from_a_file(tmp_path: Path) -> None:
    graph = build_topology(from_file(tmp_path, "# a square\n0 1\n1,2\n2\t3\n3 0 # closed\n\n1 0\n"))

    assert [graph.neighbours(node) for node in range(4)] == [(1, 3), (0, 2), (1, 3), (0, 2)]


@pytest.mark.parametrize("line", ["0", "0 1 2", "0 4", "0 0", "a b", "-1 0", "0 1.5", "\u0660 1"])
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError, match=r"links\.txt, line 2: "):
        build_topology(from_file(tmp_path, f"0 1\n{line}\n"))


def test_a_graph_in_pieces_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a connected graph") as caught:
        build_topology(from_file(tmp_path, "0 1\n2 3\n"))

    assert caught.value.key == "topology.file"


@pytest.mark.parametrize("content", [b"\xff\xfe", None])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "links.txt"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(ConfigError, match=r"topology\.file: got .*links\.txt"):
        build_topology(preset("demo", ["topology.family=file", f"topology.file={path}"]))


# -- what does not fit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overrides", "key", "words"),
    [
        (["mixnet.route=walk", "mixnet.path_length=2", "mixnet.exchange=within"], "mixnet.exchange", "reach"),
        (["mixnet.route=walk", "mixnet.path_length=2", "mixnet.exchange=neighbours"], "mixnet.exchange", "node 0"),
        (["topology.degree=8"], "topology.degree", "7"),
        (["mixnet.path_length=8"], "mixnet.path_length", "at most 7"),
        (["mixnet.path_length=7", "topology.join=[{node=1,round=3}]"], "mixnet.path_length", "at most 6"),
        (["mixnet.path_length=7", "topology.exit=[{node=1,round=3}]"], "mixnet.path_length", "at most 6"),
        (["topology.nodes=2", "topology.degree=1", "mixnet.route=valiant"], "topology.nodes", "at least 3"),
        (["learning.train_samples=6000"], "learning.train_samples", "5,000"),
        (["learning.test_samples=6000"], "learning.test_samples", "1,000"),
        (["learning.train_samples=7"], "topology.nodes", "every node needs one"),
        (["learning.partition=shards", "learning.shards_per_node=700"], "learning.shards_per_node", "625"),
        (["topology.nodes=7", "topology.degree=3"], "topology.degree", "even"),
        (["topology.family=small_world", "topology.degree=2"], "topology.degree", "small world"),
    ],
)
def test_a_graph_that_does_not_carry_the_scenario_is_refused(overrides: list[str], key: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        plan("demo", *overrides)

    assert caught.value.key == key


@pytest.mark.parametrize(
    ("events", "fewest"),
    [
        ([], 8),
        (["topology.exit=[{node=1,round=5}]"], 8),  # after the last round nobody counts any more
        (["topology.exit=[{node=1,round=4}]"], 7),
        (["topology.join=[{node=1,round=1}]"], 8),
        (["topology.join=[{node=1,round=2}]", "topology.exit=[{node=2,round=1}]"], 7),
        (["topology.join=[{node=1,round=3}]", "topology.exit=[{node=2,round=1}]"], 6),
    ],
)
def test_the_fewest_nodes_there_are_follow_from_joins_and_exits(events: list[str], fewest: int) -> None:
    assert fewest_present(preset("demo", events)) == fewest


def test_partners_of_a_circulant_are_those_of_its_first_node_moved_on() -> None:
    scenario = preset("paper")
    graph = build_topology(scenario)
    sets = ExchangeSets(graph, scenario.mixnet)

    assert all(sets.of(node) == graph.reach_exactly(node, 2) for node in range(graph.nodes))
