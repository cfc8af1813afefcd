"""What containers are made of and what is said of them, without an engine."""

import asyncio
import io
import os
import socket
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from unlinkabledfl.cli import main
from unlinkabledfl.errors import ConfigError, RunError
from unlinkabledfl.experiment.backends.container import images, keeper
from unlinkabledfl.experiment.backends.container.blueprint import Blueprint, Mount, Outfit, host_mounts
from unlinkabledfl.experiment.backends.container.engine import Ending, Engine, Found, last_words
from unlinkabledfl.experiment.backends.container.keeper import say_container_ending
from unlinkabledfl.experiment.backends.container.leftovers import labels_of, remove_leftovers
from unlinkabledfl.experiment.backends.container.place import Place
from unlinkabledfl.experiment.backends.process.hosts import NodeLaunch
from unlinkabledfl.experiment.backends.process.messages import Configure, ToNode
from unlinkabledfl.experiment.backends.process.usage import descendants
from unlinkabledfl.experiment.scenario import Scenario, preset

ME = {"user_id": os.getuid(), "group_id": os.getgid()}


def scenario_with(*overrides: str) -> Scenario:
    return preset("demo", ["run.backend=container", *overrides])


# -- what one is given ------------------------------------------------------------------------------------------------


def test_a_container_sees_its_own_directory_and_reads_the_rest(tmp_path: Path) -> None:
    overrides = ["container.root=host", f'container.plugins=["{tmp_path}"]', "container.pids=99"]
    outfit = Outfit(scenario_with(*overrides), run="r", labels={"unlinkabledfl.run": "r"})

    made = outfit.blueprint(7, place=tmp_path / "place", core=1)

    assert (made.name, made.hostname, made.network) == ("unlinkabledfl-r-0007", "node-0007", "unlinkabledfl-r")
    assert [mount for mount in made.mounts if not mount.read_only] == [
        Mount(source=tmp_path / "place", target="/node", read_only=False)
    ]
    assert Mount(source=tmp_path.resolve(), target="/plugins/0") in made.mounts
    assert made.environment["PYTHONPATH"] == "/plugins/0"
    assert made.labels == {"unlinkabledfl.run": "r", "unlinkabledfl.node": "7"}
    assert (made.pids, made.cores) == (99, (1,))
    assert made.user_id != 0


def test_an_image_needs_no_mount_of_this_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNLINKABLEDFL_DATA", str(tmp_path / "empty"))
    made = Outfit(scenario_with(), run="r", labels={}).blueprint(0, place=tmp_path, core=None)

    assert made.mounts == (Mount(source=tmp_path, target="/node", read_only=False),)
    assert made.command[0] == "python"


def test_a_dataset_that_is_here_is_mounted_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNLINKABLEDFL_DATA", str(tmp_path))
    scenario = scenario_with()
    (tmp_path / scenario.learning.dataset).mkdir()

    mounts = Outfit(scenario, run="r", labels={}).blueprint(0, place=tmp_path, core=None).mounts

    name = scenario.learning.dataset
    assert Mount(source=tmp_path / name, target=f"/data/{name}") in mounts
    assert len(mounts) == 2


def test_the_mounts_of_this_host_hold_the_interpreter_and_no_home() -> None:
    mounted = [mount.source for mount in host_mounts()]

    for needed in (Path(sys.executable), Path(sys.executable).resolve(), Path(images.__file__), Path(io.__file__)):
        assert any(needed.is_relative_to(path) for path in mounted), needed
    assert not any(Path.home().is_relative_to(path) for path in mounted)
    assert not any(one != other and one.is_relative_to(other) for one in mounted for other in mounted)


def test_root_launches_nodes_under_nobodys_number_and_others_under_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def user(uid: int, *overrides: str) -> tuple[int, int]:
        monkeypatch.setattr(os, "getuid", lambda: uid)
        monkeypatch.setattr(os, "getgid", lambda: uid)
        outfit = Outfit(scenario_with(*overrides), run="r", labels={})
        return outfit.user_id, outfit.group_id

    assert user(0) == (10_001, 10_001)
    assert user(1_000) == (1_000, 1_000)
    assert user(0, "container.user_id=77") == (77, 77)


def test_a_plugin_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"container\.plugins: got .*nowhere', takes directories that exist"):
        Outfit(scenario_with(f'container.plugins=["{tmp_path / "nowhere"}"]'), run="r", labels={})


# -- a node's directory -----------------------------------------------------------------------------------------------


def test_who_dials_first_is_the_node_and_there_is_no_second(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    place = Place(deep / "0", **ME)
    place.make()
    reached = f"/proc/self/fd/{os.open(deep / '0', os.O_PATH)}/control"

    with socket.socket(socket.AF_UNIX) as node, socket.socket(socket.AF_UNIX) as late:
        node.connect(reached)
        end, process_id = place.accept()
        with end:
            assert process_id == os.getpid()
            assert (deep / "0").stat().st_mode & 0o777 == 0o700
            with pytest.raises(ConnectionRefusedError):
                late.connect(reached)


def test_what_a_node_leaves_is_moved_and_a_link_is_thrown_away(tmp_path: Path) -> None:
    place = Place(tmp_path / "0", **ME)
    (tmp_path / "before.npz").write_text("the last model")
    place.make(model=tmp_path / "before.npz")
    place.close_door()
    assert (place.path / "model.npz").read_text() == "the last model"
    secret = tmp_path / "secret"
    secret.write_text("not for nodes")

    place.take("model.npz", tmp_path / "kept.npz")
    place.take("model.npz", tmp_path / "kept.npz")
    (place.path / "model.npz").symlink_to(secret)
    place.take("model.npz", tmp_path / "kept.npz")

    assert (tmp_path / "kept.npz").read_text() == "the last model"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "before.npz", "kept.npz", "secret"]


def test_a_node_that_leaves_a_directory_for_a_model_changes_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path / "0", **ME)
    place.path.mkdir()
    (tmp_path / "kept.npz").write_text("the last model")
    (place.path / "model.npz" / "deeper").mkdir(parents=True)

    place.take("model.npz", tmp_path / "kept.npz")

    assert (tmp_path / "kept.npz").read_text() == "the last model"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "kept.npz"]


# -- who is over, and what is left -------------------------------------------------------------------------------------


class FalteringEngine:
    """Its only container has ended; asked how, it fails the first time."""

    def __init__(self, *found: Found) -> None:
        self.found = list(found)
        self.removed: list[str] = []
        self._fails = True

    def create_network(self, name: str, *, labels: Mapping[str, str]) -> None:
        pass

    def networks(self, *, label: str) -> list[Found]:
        return []

    def start(self, blueprint: Blueprint) -> str:
        self.found.append(Found(identity="1", name=blueprint.name, labels=blueprint.labels, is_over=True))
        return "1"

    def containers(self, *, label: str) -> list[Found]:
        return self.found

    def ending(self, identity: str) -> Ending:
        if self._fails:
            self._fails = False
            raise RunError("asking how a container ended: the engine does not answer")
        return Ending(code=3, out_of_memory=False, error="")

    def log(self, identity: str) -> str:
        return ""

    def remove(self, identity: str) -> None:
        self.removed.append(identity)


class Ends:
    """Waits until a node is said to have ended."""

    def __init__(self) -> None:
        self.first: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def connected(self, index: int, end: socket.socket) -> None:
        end.close()

    def ended(self, index: int, how: str) -> None:
        self.first.set_result(how)

    def tell(self, index: int, message: ToNode, *, file: int | None = None) -> None:
        pass


def test_a_node_is_seen_to_be_over_though_the_engine_failed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "_LOOK_EVERY_S", 0.001)
    outfit = Outfit(scenario_with(), run="r", labels={"unlinkabledfl.run": "r"})
    configure = Configure(config="{}", checkpoint=str(tmp_path / "kept.npz"))
    launches = [NodeLaunch(node_id="0", configure=configure, log=tmp_path / "0.log")]
    engine: Any = FalteringEngine()

    async def how_it_ended() -> str:
        kept = keeper.Keeper(launches, engine=engine, outfit=outfit, places=tmp_path / "places")
        ends = Ends()
        await kept.open(ends)
        await kept.start()
        try:
            return await asyncio.wait_for(ends.first, timeout=30)
        finally:
            await kept.close()

    assert asyncio.run(how_it_ended()) == "ended with exit code 3"
    assert engine.removed == ["1"]


def test_containers_of_another_users_run_are_left_to_him(tmp_path: Path) -> None:
    gone, closed = tmp_path / "gone", tmp_path / "closed"
    closed.mkdir()
    # A link to itself: like another user's lock it is there and cannot be opened, even by root.
    (closed / ".lock").symlink_to(".lock")
    engine: Any = FalteringEngine(
        *(Found(identity=path.name, name=path.name, labels=labels_of("r", path)) for path in (gone, closed))
    )

    assert remove_leftovers(engine) == ["gone"]
    assert engine.removed == ["gone"]


# -- images -----------------------------------------------------------------------------------------------------------


def test_the_wheel_installs_and_is_the_code_that_runs(tmp_path: Path) -> None:
    name, content = images.make_wheel()
    (tmp_path / name).write_bytes(content)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]

    subprocess.run([*pip, "--target", str(tmp_path / "there"), str(tmp_path / name)], check=True)

    installed = tmp_path / "there" / "unlinkabledfl" / "errors.py"
    assert installed.read_bytes() == (Path(images.__file__).parents[3] / "errors.py").read_bytes()
    assert images.make_wheel() == (name, content)
    with zipfile.ZipFile(io.BytesIO(content)) as wheel:
        assert not [path for path in wheel.namelist() if "__pycache__" in path]


def test_the_context_of_a_build_is_a_wheel_and_instructions_that_end_without_root() -> None:
    with tarfile.open(fileobj=io.BytesIO(images.build_context())) as context:
        names = context.getnames()
        instructions = context.extractfile("Containerfile")
        assert instructions is not None
        lines = instructions.read().decode().splitlines()

    assert names == ["Containerfile", images.make_wheel()[0]]
    assert [line for line in lines if line.startswith("USER")] == ["USER 10001:10001"]


def test_the_root_of_this_host_is_links_only() -> None:
    with tarfile.open(fileobj=io.BytesIO(images.host_root())) as root:
        entries = root.getmembers()

    assert entries
    assert all(entry.issym() and Path("/", entry.name).readlink() == Path(entry.linkname) for entry in entries)


# -- words ------------------------------------------------------------------------------------------------------------

LOG = "a line\nModuleNotFoundError: no module named x\n\n"


@pytest.mark.parametrize(
    ("code", "out_of_memory", "spoke", "said"),
    [
        (1, False, False, "ended with exit code 1: ModuleNotFoundError: no module named x"),
        (1, False, True, "ended with exit code 1"),
        (139, False, True, "was killed by SIGSEGV: ModuleNotFoundError: no module named x"),
        (137, True, True, "was killed by SIGKILL, for more memory than container.memory_mib, 99 MiB"),
        (137, False, False, "was killed by SIGKILL, perhaps for more memory than container.memory_mib, 99 MiB"),
        (255, False, False, "ended with exit code 255: ModuleNotFoundError: no module named x"),
        (0, False, True, "ended with exit code 0"),
    ],
)
def test_how_a_container_ended_is_told_with_its_last_words(
    code: int, out_of_memory: bool, spoke: bool, said: str
) -> None:
    ending = Ending(code=code, out_of_memory=out_of_memory, error="")

    assert say_container_ending(ending, log=LOG, has_spoken=spoke, memory_mib=99) == said


def test_a_node_that_the_launcher_ended_is_not_suspected_of_its_memory() -> None:
    ending = Ending(code=137, out_of_memory=False, error="")

    assert say_container_ending(ending, log=LOG, has_spoken=True, memory_mib=None) == "was killed by SIGKILL"
    assert last_words("") == ""


# -- engines that cannot be reached -----------------------------------------------------------------------------------


def test_an_engine_that_does_not_listen_is_the_operators_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody")

    code = main(["containers", "clean"])

    assert code == 2
    assert capsys.readouterr().err.startswith(
        f"unlinkabledfl: container.engine: got 'unix://{tmp_path}/nobody', takes the address of a Docker-compatible"
        " engine (No such file or directory; start Docker"
    )


def test_a_socket_that_is_closed_to_us_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "connect", refuse)

    with pytest.raises(ConfigError, match=r"takes an engine that you may use: this socket is closed to you \(join the"):
        Engine.connect(f"unix://{tmp_path}/theirs")


@pytest.mark.parametrize("address", ["nonsense://x", "tcp://127.0.0.1:1"])
def test_an_address_at_which_there_is_no_engine_is_named(address: str) -> None:
    with pytest.raises(ConfigError, match="takes the address of a Docker-compatible engine") as raised:
        Engine.connect(address)

    assert "\n" not in str(raised.value)


def test_descendants_are_found_whichever_thread_started_them() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        assert child.pid in descendants(os.getpid())
    finally:
        child.kill()
        child.wait()
    assert child.pid not in descendants(os.getpid())
