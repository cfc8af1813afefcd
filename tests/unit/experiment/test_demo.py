"""The demonstration: what `make demo` prints is what happened."""

import pytest
from rich.console import Console

from unlinkabledfl.experiment.demo import Demo, render, run_demo
from unlinkabledfl.simulation.links import LinkSettings

SMALL = Demo(peers=8, messages_each=3, sending_s=5.0, running_s=60.0)


def test_every_message_arrives_once_and_is_acknowledged() -> None:
    messages = run_demo(seed=7, demo=SMALL)["messages"]

    assert messages["accepted"] == messages["delivered_once"] == messages["acknowledged"] == 24
    assert messages["delivered_more_than_once"] == messages["given_up"] == 0


def test_the_same_seed_gives_the_same_document() -> None:
    first, second, other = (run_demo(seed=seed, demo=SMALL) for seed in (7, 7, 8))

    for document in (first, second, other):
        del document["cpu_s"], document["seed"]
    assert first == second
    assert first != other


def test_a_lossy_network_shows_in_resends_not_in_missing_messages() -> None:
    lossy = Demo(
        peers=8, messages_each=5, sending_s=5.0, running_s=120.0, links=LinkSettings(latency_s=0.02, loss=0.05)
    )

    document = run_demo(seed=3, demo=lossy)

    assert document["messages"]["delivered_once"] == 40
    assert document["messages"]["resent"] > 0
    assert document["on_the_wires"]["lost"] > 0


def test_people_read_the_figures_of_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    document = run_demo(seed=7, demo=SMALL)

    Console(width=100).print(render(document))

    printed = capsys.readouterr().out
    assert "mixnet of 8 peers" in printed
    assert f"{document['on_the_wires']['packets']:,}" in printed
    assert f"{document['on_the_wires']['cover_share']:.1%}" in printed
