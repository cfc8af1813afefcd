"""The document of `bench learning` holds what it promises; here with the packaged dataset and few nodes."""

from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import learning
from benchmarks.learning import Run, federate


@pytest.mark.slow
def test_the_document_carries_the_promised_keys_and_can_be_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNLINKABLEDFL_DATA", str(tmp_path))

    document = learning.measure(datasets=["fashion-mnist-mini"], sizes=[5], seeds=2, memory=False)

    found = document["accuracy"]["fashion-mnist-mini"]["5"]
    assert {"machine", "versions", "seconds"} <= set(document)
    assert found["mean"] == pytest.approx(sum(found["seeds"]) / 2)
    assert found["half_width"] > 0.0
    assert found["mean"] > 0.6
    console = Console(width=200, record=True)
    console.print(learning.render(document))
    assert f"{found['mean']:.4f}" in console.export_text()


def test_a_federation_is_the_same_again_from_the_same_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNLINKABLEDFL_DATA", str(tmp_path))
    run = Run("fashion-mnist-mini", nodes=5, seed=4, rounds=1)

    assert federate(run) == federate(run)
