import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.unit.learning.toys import ARRAYS, FILES, ToySource, toy_entry
from unlinkabledfl.errors import ConfigError, DatasetError
from unlinkabledfl.learning.datasets import catalogue, data_directory, get, load, state, verify
from unlinkabledfl.learning.datasets.sources import Source

Register = Callable[..., None]


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Register:
    """Put a toy dataset with these sources into the catalogue."""

    def put(*sources: Source) -> None:
        monkeypatch.setattr(catalogue, "CATALOGUE", {**catalogue.CATALOGUE, "toy": toy_entry(*sources)})

    return put


def test_what_a_source_delivers_is_stored_and_loads_as_it_was(register: Register, tmp_path: Path) -> None:
    register(ToySource())

    fetched = get("toy", directory=tmp_path)
    train, test = load("toy", directory=tmp_path)

    assert (fetched.source, fetched.path) == ("toy", tmp_path / "toy")
    assert fetched.size_bytes == sum((tmp_path / "toy" / f"{name}.npy").stat().st_size for name in ARRAYS)
    for dataset, split in ((train, "train"), (test, "test")):
        assert np.array_equal(dataset.images, ARRAYS[f"{split}_images"])
        assert np.array_equal(dataset.labels, ARRAYS[f"{split}_labels"])
        assert (dataset.name, dataset.classes, dataset.image_shape) == ("toy", ("a", "b", "c"), (1, 4, 5))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".toy.lock", "toy"]


def test_loading_maps_the_file_and_nobody_can_write_into_it(register: Register, tmp_path: Path) -> None:
    register(ToySource())
    get("toy", directory=tmp_path)

    images = load("toy", directory=tmp_path).train.images

    assert isinstance(images.base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        images[0] = 0


def test_what_is_whole_is_not_fetched_again(register: Register, tmp_path: Path) -> None:
    source = ToySource()
    register(source)
    get("toy", directory=tmp_path)

    assert get("toy", directory=tmp_path).source is None
    assert source.asked == 1


def test_the_next_source_is_asked_when_one_fails_or_lies(register: Register, tmp_path: Path) -> None:
    sources = [
        ToySource(name="down", problem="cannot be reached"),
        ToySource(name="liar", files={**FILES, "t10k-labels-idx1-ubyte": b"x"}),
        ToySource(name="partial", files={}),
        ToySource(name="good"),
        ToySource(name="unneeded"),
    ]
    register(*sources)

    assert get("toy", directory=tmp_path).source == "good"
    assert [source.asked for source in sources] == [1, 1, 1, 1, 0]
    assert verify("toy", directory=tmp_path).keys() == ARRAYS.keys()


def test_only_the_source_that_was_asked_for_is_tried(register: Register, tmp_path: Path) -> None:
    sources = [ToySource(name="one"), ToySource(name="two")]
    register(*sources)

    assert get("toy", directory=tmp_path, source="two").source == "two"
    assert sources[0].asked == 0


def test_when_no_source_works_the_message_says_why_and_what_to_do(register: Register, tmp_path: Path) -> None:
    register(
        ToySource(name="mirrors", problem="cannot be reached"),
        ToySource(name="liar", files={**FILES, "t10k-labels-idx1-ubyte": b"x"}),
    )

    with pytest.raises(DatasetError) as caught:
        get("toy", directory=tmp_path)

    lines = str(caught.value).splitlines()
    assert lines[0] == "toy: no source could deliver it. Tried:"
    assert lines[1] == "  mirrors: cannot be reached"
    assert lines[2].startswith(
        "  liar: t10k-labels-idx1-ubyte: its SHA-256 is 2d711642b726b04401627ca9fbac32f5c8530fb1"
    )
    assert "HTTPS_PROXY" in lines[3]
    assert f"copy the directory toy to {tmp_path}" in lines[3]
    assert "fashion-mnist-mini, which needs no network" in lines[3]
    assert not (tmp_path / "toy").exists()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _other_shape(path: Path) -> None:
    np.save(path, np.zeros((12, 1, 5, 4), dtype=np.uint8))


def _other_type(path: Path) -> None:
    np.save(path, np.zeros((12, 1, 4, 5), dtype=np.int8))


def _objects(path: Path) -> None:
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)


def _archive(path: Path) -> None:
    with path.open("wb") as sink:
        np.savez(sink, a=np.zeros(1))


DAMAGES = [Path.unlink, _cut, _append, _empty, _other_shape, _other_type, _objects, _archive]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_file_is_named_and_get_repairs_it(
    register: Register, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    register(ToySource())
    get("toy", directory=tmp_path)
    file = tmp_path / "toy" / "train_images.npy"
    damage(file)

    assert state("toy", directory=tmp_path) == "damaged"
    for use in (load, verify):
        with pytest.raises(DatasetError) as caught:
            use("toy", directory=tmp_path)
        assert caught.value.file == str(file)
        assert caught.value.hint == f"fetch it again: unlinkabledfl data get toy --dir {tmp_path}"
    assert get("toy", directory=tmp_path).source == "toy"
    verify("toy", directory=tmp_path)


def test_one_changed_bit_is_found_by_verify(register: Register, tmp_path: Path) -> None:
    register(ToySource())
    get("toy", directory=tmp_path)
    file = tmp_path / "toy" / "test_images.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)

    with pytest.raises(DatasetError, match=r"test_images\.npy: the SHA-256 of its array is [0-9a-f]{64}, not"):
        verify("toy", directory=tmp_path)


def test_whoever_has_the_old_files_mapped_keeps_them_through_a_repair(register: Register, tmp_path: Path) -> None:
    register(ToySource())
    get("toy", directory=tmp_path)
    images = load("toy", directory=tmp_path).train.images
    (tmp_path / "toy" / "test_labels.npy").unlink()

    get("toy", directory=tmp_path)

    assert np.array_equal(images, ARRAYS["train_images"])


def test_two_who_fetch_at_once_fetch_once(register: Register, tmp_path: Path) -> None:
    second = threading.Thread(target=lambda: outcomes.append(get("toy", directory=tmp_path).source))
    outcomes: list[str | None] = []
    source = ToySource(before=second.start)  # the second begins while the first is fetching
    register(source)

    outcomes.append(get("toy", directory=tmp_path).source)
    second.join()

    assert sorted(outcomes, key=str) == [None, "toy"]
    assert source.asked == 1


def test_what_was_never_fetched_says_how_to_fetch_it(tmp_path: Path) -> None:
    for use in (load, verify):
        with pytest.raises(DatasetError) as caught:
            use("mnist", directory=tmp_path / "none")
        assert str(caught.value) == (
            f"{tmp_path}/none/mnist: mnist is not here yet "
            f"(fetch it: unlinkabledfl data get mnist --dir {tmp_path}/none)"
        )
    assert state("mnist", directory=tmp_path / "none") == "absent"
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("name", "hint"), [("Fashion_MNIST", " (did you mean fashion-mnist?)"), ("imagenet-22k", ""), ("../mnist", None)]
)
def test_a_name_that_is_not_in_the_catalogue_is_refused(name: str, hint: str | None, tmp_path: Path) -> None:
    for use in (get, load, verify, state):
        with pytest.raises(ConfigError) as caught:
            use(name, directory=tmp_path)
        if hint is not None:
            assert str(caught.value) == (
                f"dataset: got {name!r}, takes one of fashion-mnist-mini, mnist, fashion-mnist, cifar10{hint}"
            )
    assert list(tmp_path.iterdir()) == []


def test_a_source_that_a_dataset_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--source: got 'npm', takes one of mirrors, debian for fashion-mnist"):
        get("fashion-mnist", directory=tmp_path, source="npm")


def test_a_directory_that_cannot_be_made_says_how_to_choose_another(register: Register, tmp_path: Path) -> None:
    register(ToySource())
    (tmp_path / "file").touch()

    with pytest.raises(DatasetError, match=r"file.* cannot be written: .* \(choose another directory with --dir"):
        get("toy", directory=tmp_path / "file" / "below")


def test_where_datasets_lie_is_told_or_in_the_environment_or_in_the_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("UNLINKABLEDFL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert data_directory() == tmp_path / ".cache" / "unlinkabledfl"
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert data_directory() == Path("/xdg/unlinkabledfl")
    monkeypatch.setenv("UNLINKABLEDFL_DATA", "~/data")
    assert data_directory() == tmp_path / "data"
    assert data_directory(Path("/told")) == Path("/told")


def test_the_packaged_dataset_loads_without_a_get(tmp_path: Path) -> None:
    assert state("fashion-mnist-mini", directory=tmp_path) == "packaged"

    train, test = load(directory=tmp_path)

    assert (train.name, train.image_shape) == ("fashion-mnist-mini", (1, 28, 28))
    assert np.bincount(train.labels).tolist() == [500] * 10
    assert np.bincount(test.labels).tolist() == [100] * 10
    assert isinstance(train.images.base, np.memmap)
    verify("fashion-mnist-mini", directory=tmp_path)


def test_the_packaged_dataset_loads_where_no_cache_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    train, test = load(directory=tmp_path / "file")

    assert (len(train), len(test)) == (5_000, 1_000)


def test_the_packaged_dataset_comes_with_its_licence() -> None:
    packaged = catalogue.FASHION_MNIST_MINI.packaged_in
    assert packaged is not None
    notice = (packaged / "FASHION-MNIST-LICENSE.txt").read_text(encoding="utf-8")

    assert "Copyright © 2017 Zalando SE" in notice
    assert "The above copyright notice and this permission notice shall be included" in notice


def test_processes_share_the_pages_of_a_dataset(register: Register, tmp_path: Path) -> None:
    load(directory=tmp_path)
    program = (
        "import sys; from pathlib import Path; from unlinkabledfl.learning.datasets import load\n"
        "images = load(directory=Path(sys.argv[1])).train.images; images.sum()\n"
        "maps = Path('/proc/self/smaps').read_text().split('train_images.npy')[1].splitlines()\n"
        "print(next(line.split()[1] for line in maps if line.startswith('Anonymous:')))"
    )
    if not Path("/proc/self/smaps").exists():
        pytest.skip("only Linux tells whose pages they are")

    finished = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True)

    assert finished.stdout == "0\n"
