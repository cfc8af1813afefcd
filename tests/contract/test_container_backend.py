"""Containers as a backend: what they may do, and what becomes of a run whose engine or containers fail."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.contract.worlds import CONTAINERS, Impatient, Run
from unlinkabledfl.errors import ConfigError, RunError
from unlinkabledfl.experiment.backends.container.backend import ContainerBackend
from unlinkabledfl.experiment.backends.container.blueprint import Outfit, default_image
from unlinkabledfl.experiment.backends.container.engine import Engine, Found
from unlinkabledfl.experiment.backends.container.images import build_image
from unlinkabledfl.experiment.backends.container.leftovers import RUN_LABEL, labels_of, remove_leftovers
from unlinkabledfl.experiment.conduct import conduct, create_run
from unlinkabledfl.experiment.planning import plan_experiment
from unlinkabledfl.experiment.records import EventKind, RunDirectory, Status
from unlinkabledfl.experiment.scenario import Scenario, preset

pytestmark = CONTAINERS

REPOSITORY = Path(__file__).resolve().parents[2]


def small(*overrides: str) -> Scenario:
    """Three nodes whose learner needs no PyTorch."""
    return preset(
        "demo",
        [
            "run.backend=container",
            "run.rounds=2",
            "topology.nodes=3",
            "topology.degree=2",
            "mixnet.delay_mean_s=0.02",
            "mixnet.emission_rate_per_s=40",
            "mixnet.path_length=2",
            "aggregation.deadline_s=10",
            "process.start_timeout_s=600",
            "learning.factory=tests.e2e.vector_learner:VectorLearner",
            "container.root=host",
            f'container.plugins=["{REPOSITORY}"]',
            *overrides,
        ],
    )


class Watcher:
    """Does something once, when the first node reports its first round, and notes when a node is said to have died."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act: Callable[[], None] | None = act
        self.acted_at_s = 0.0
        self.died_at_s: dict[int | None, float] = {}

    def record(
        self, *, time_s: float, round_number: int | None, node: int | None, metrics: Mapping[str, float]
    ) -> None:
        if round_number == 1 and self._act is not None:
            act, self._act = self._act, None
            self.acted_at_s = time.monotonic()
            act()

    def event(self, *, time_s: float, node: int | None, kind: EventKind, text: str) -> None:
        if kind is EventKind.DEATH:
            self.died_at_s[node] = time.monotonic()

    def phase(self, *, time_s: float, round_number: int, node: int, phase: str) -> None:
        pass

    def finish(self, status: Status, *, reason: str = "") -> None:
        pass


def conducted(scenario: Scenario, path: Path, *watchers: Any, tag: str | None = None) -> Run:
    directory = create_run(scenario, path)
    try:
        conduct(scenario, directory=directory, backend=ContainerBackend(run_tag=tag), watchers=watchers)
    finally:
        directory.release()
    return Run.of(RunDirectory.open(path))


def shadowing_plugin(path: Path, code: str) -> Path:
    """Modules that come before the real ones, and do this."""
    (path / "plugin" / "unlinkabledfl").mkdir(parents=True)
    (path / "plugin" / "unlinkabledfl" / "__init__.py").write_text(f"{code}\n")
    return path / "plugin"


def left_at(engine: Engine) -> list[Found]:
    return [*engine.containers(label=RUN_LABEL), *engine.networks(label=RUN_LABEL)]


def containers_of(engine: Engine) -> dict[int, str]:
    return {int(found.labels["unlinkabledfl.node"]): found.identity for found in engine.containers(label=RUN_LABEL)}


def inspected(engine: Engine, identity: str) -> dict[str, Any]:
    found: dict[str, Any] = engine._client.api.inspect_container(identity)  # noqa: SLF001 - what nobody else needs
    return found


def printed_inside(engine: Engine, identity: str, *command: str) -> str:
    """What a command prints in a container."""
    output: bytes = engine._client.containers.get(identity).exec_run(list(command)).output  # noqa: SLF001
    return output.decode()


def test_a_container_may_do_nothing_but_its_work_and_shows_no_secret(engine: Engine, tmp_path: Path) -> None:
    scenario = small("container.memory_mib=512", "container.pids=64", "container.cpus=1.5", "process.cores=[0]")
    seen: dict[str, Any] = {}

    def look() -> None:
        identity = containers_of(engine)[1]
        seen["status"] = dict(
            line.split(":\t", 1) for line in printed_inside(engine, identity, "cat", "/proc/1/status").splitlines()
        )
        seen["root"] = printed_inside(engine, identity, "touch", "/usr/x", "/x", "/node/x")
        seen["routes"] = printed_inside(engine, identity, "cat", "/proc/net/route")
        seen["node"] = printed_inside(engine, identity, "ls", "-A", "/node")
        seen["host"] = inspected(engine, identity)["HostConfig"]
        seen["all"] = json.dumps([inspected(engine, one) for one in containers_of(engine).values()])

    run = conducted(scenario, tmp_path / "run", Watcher(look))

    assert run.reporters() == {1: [0, 1, 2], 2: [0, 1, 2]}
    status = seen["status"]
    assert {status[name].strip("0") for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {""}
    assert (status["NoNewPrivs"], status["Cpus_allowed_list"]) == ("1", "0")
    assert "0" not in status["Uid"].split()
    assert seen["root"].count("Read-only file system") == 2
    # No way out: not a single route whose destination is everything.
    assert "00000000" not in {line.split()[1] for line in seen["routes"].splitlines()[1:]}
    assert set(seen["node"].split()) <= {"control", "model.npz", "x"}
    limits = {name: seen["host"][name] for name in ("Memory", "MemorySwap", "PidsLimit", "CpusetCpus", "Privileged")}
    assert limits == {
        "Memory": 512 << 20, "MemorySwap": 512 << 20, "PidsLimit": 64, "CpusetCpus": "0", "Privileged": False,
    }  # fmt: skip
    logs = [path.read_text() for path in (tmp_path / "run" / "logs").glob("node-*.log")]
    assert len(logs) == 3
    seeds = [config.signing_seed.hex() for config in plan_experiment(scenario)]
    hidden = [*seeds, "identity_seed", "private_key"]
    assert not any(secret in text for text in (seen["all"], *logs) for secret in hidden)
    assert not (tmp_path / "run" / "containers").exists()
    assert left_at(engine) == []


def test_a_container_that_is_killed_is_seen_within_seconds_and_the_others_finish(
    engine: Engine, tmp_path: Path
) -> None:
    watcher = Watcher(lambda: engine.kill(containers_of(engine)[1]))

    run = conducted(small("run.rounds=3"), tmp_path / "run", watcher)

    (death,) = [event for event in run.events if event.kind is EventKind.DEATH]
    assert (death.node, death.text.partition(",")[0]) == (1, "was killed by SIGKILL")
    # It takes one; a machine that does a lot of other things gets some more.
    assert watcher.died_at_s[1] - watcher.acted_at_s < 10.0
    assert run.reporters()[3] == [0, 2]
    assert left_at(engine) == []


def test_nodes_that_need_more_memory_than_they_may_have_say_so(engine: Engine, tmp_path: Path) -> None:
    plugin = shadowing_plugin(tmp_path, "hoard = bytearray(1 << 30)")
    limits = ["container.memory_mib=64", f'container.plugins=["{plugin}"]']

    with pytest.raises(RunError, match=r"SIGKILL, (perhaps )?for more memory than container\.memory_mib, 64 MiB"):
        conducted(small(*limits), tmp_path / "run")

    assert left_at(engine) == []


def test_a_node_that_dies_before_it_can_speak_is_shown_with_its_last_words(engine: Engine, tmp_path: Path) -> None:
    plugin = shadowing_plugin(tmp_path, "raise RuntimeError('not today')")

    with pytest.raises(RunError, match=r"last words were of node \d: ended with exit code 1: .*not today"):
        conducted(small(f'container.plugins=["{plugin}"]'), tmp_path / "run")

    assert "not today" in (tmp_path / "run" / "logs" / "node-0000.log").read_text()
    assert left_at(engine) == []


def test_an_interrupted_run_takes_its_containers_with_it(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        # Who ends the second round has fragments of it from everybody, so everybody has ended the first.
        conducted(small("run.rounds=1000"), tmp_path / "run", Impatient(round_number=2))

    directory = RunDirectory.open(tmp_path / "run")
    assert directory.status() is Status.INTERRUPTED
    assert list(directory.checkpointed_nodes()) == [0, 1, 2]
    assert left_at(engine) == []


def test_an_image_that_is_not_there_is_the_operators_mistake(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"container\.image: got 'no/such:image', takes an image that the engine has"):
        conducted(small("container.image=no/such:image"), tmp_path / "run")

    assert RunDirectory.open(tmp_path / "run").status() is Status.FAILED
    assert left_at(engine) == []


def test_an_image_without_python_is_told_in_one_sentence(engine: Engine, tmp_path: Path) -> None:
    scenario = small("container.root=image", f"container.image={default_image('host')}")

    with pytest.raises(RunError, match=r"could not be started: starting the container .*: the engine says '.*python"):
        conducted(scenario, tmp_path / "run")

    assert left_at(engine) == []


def test_a_build_that_fails_is_told_in_one_sentence(engine: Engine) -> None:
    with pytest.raises(RunError, match=r"building the image broken:1") as raised:
        # The empty root has no shell to run the first instruction with.
        list(build_image(engine, "broken:1", base=default_image("host")))

    assert "\n" not in str(raised.value)
    assert engine.image_labels("broken:1") is None


def test_a_network_of_the_same_name_is_not_used(engine: Engine, tmp_path: Path) -> None:
    engine.create_network("unlinkabledfl-taken", labels={"theirs": "1"})
    try:
        with pytest.raises(RunError, match="there is a network of the name unlinkabledfl-taken already"):
            conducted(small(), tmp_path / "run", tag="taken")

        assert [network.name for network in engine.networks(label="theirs")] == ["unlinkabledfl-taken"]
    finally:
        for network in engine.networks(label="theirs"):
            engine.remove_network(network.identity)
    assert left_at(engine) == []


def test_what_a_killed_launcher_has_left_is_taken_away_and_nothing_else(engine: Engine, tmp_path: Path) -> None:
    scenario = small()
    directory = create_run(scenario, tmp_path / "goes-on")
    for tag, path in (("left", tmp_path / "gone"), ("runs", directory.path)):
        outfit = Outfit(scenario, run=tag, labels=labels_of(tag, path))
        engine.create_network(outfit.network, labels=outfit.labels)
        (tmp_path / tag).mkdir()
        engine.start(outfit.blueprint(0, place=tmp_path / tag, core=None))

    removed = remove_leftovers(engine)

    assert sorted(removed) == ["unlinkabledfl-left", "unlinkabledfl-left-0000"]
    assert {found.name for found in left_at(engine)} == {"unlinkabledfl-runs", "unlinkabledfl-runs-0000"}

    directory.release()

    assert sorted(remove_leftovers(engine)) == ["unlinkabledfl-runs", "unlinkabledfl-runs-0000"]
    assert left_at(engine) == []
