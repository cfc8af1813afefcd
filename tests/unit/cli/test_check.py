"""`unlinkabledfl check`: JSON on stdout, tables on stderr, one sentence for what cannot work."""

import argparse
import json

import pytest

from unlinkabledfl.cli import check
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.figures import Indicators


def run(*arguments: str) -> None:
    parser = argparse.ArgumentParser()
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true")
    check.add_to(parser.add_subparsers(), common)
    parsed = parser.parse_args(["check", *arguments])
    parsed.handle(parsed)


@pytest.mark.parametrize("name", ["demo", "paper", "strong", "direct"])
def test_the_document_is_json_alone_and_complete(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(name, "--json")
    captured = capsys.readouterr()

    assert captured.err == ""
    assert Indicators.model_validate(json.loads(captured.out)).scenario == name
    assert json.loads(captured.out).keys() == {
        "scenario", "backend", "rounds", "graph", "exchange", "fragments", "traffic", "time", "entropy", "linkability",
        "theory", "robustness", "resources", "cautions",
    }  # fmt: skip


def test_people_get_tables_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    run("paper")
    captured = capsys.readouterr()

    assert captured.out == ""
    for words in ("diameter", "last hop alone names the sender", "0.500", "H_path", "13.30 bits", "will not do"):
        assert words in captured.err


def test_overrides_are_heard(capsys: pytest.CaptureFixture[str]) -> None:
    run("paper", "--json", "--set", "mixnet.outbox_size=10", "--set", "run.name=mine")
    document = json.loads(capsys.readouterr().out)

    assert (document["scenario"], round(document["entropy"]["path_bits"], 2)) == ("mine", 6.78)


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["dmo"], "scenario"),
        (["demo", "--set", "mixnet.path_lenght=3"], "mixnet.path_lenght"),
        (["demo", "--set", "topology.degree=9"], "topology.degree"),
        (["demo", "--set", "mixnet.path_length=9"], "mixnet.path_length"),
        (["demo", "--set", "learning.train_samples=5001"], "learning.train_samples"),
    ],
)
def test_what_cannot_work_is_a_configuration_error(arguments: list[str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        run(*arguments)

    assert caught.value.key == key


def test_a_learner_of_ones_own_is_shown_with_what_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    run("demo", "--set", "learning.factory=mine:make")

    assert "not known before the run" in capsys.readouterr().err
