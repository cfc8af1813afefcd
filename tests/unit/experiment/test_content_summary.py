"""Figures of single federations put together: means, intervals, costs in pairs, and what has to hold."""

from typing import Any

import pytest

from tests.unit.experiment.html_pages import sound_page
from unlinkabledfl.experiment.content.reproduction import document_of, page, render, settings_of
from unlinkabledfl.experiment.content.summary import accuracies, bars, grid, mean_of, rows


def federation(
    obfuscation: str = "none", *, preset: str = "strong", seed: int = 1, accuracy: float = 0.8, identity: float = 0.9
) -> dict[str, Any]:
    figures = [
        {"attack": attack, "ratio": 1.0, "reference": "received", "identity": identity, "tracking": identity / 2,
         "fragments": 100}
        for attack in ("published", "persistent")
    ]  # fmt: skip
    return {
        "preset": preset, "obfuscation": obfuscation, "scale": 3.0 if obfuscation == "masks" else 0.0, "dispersal": 1.0,
        "lost": 0.0, "alpha": 0.1, "seed": seed, "peers": 10, "accuracy": accuracy, "figures": figures,
    }  # fmt: skip


PAIRS = [
    federation(seed=1, accuracy=0.80, identity=0.90),
    federation(seed=2, accuracy=0.70, identity=0.80),
    federation("masks", seed=1, accuracy=0.79, identity=0.10),
    federation("masks", seed=2, accuracy=0.72, identity=0.20),
    federation(preset="paper", seed=1, identity=0.6),
]


def test_an_interval_is_one_of_a_mean_over_seeds() -> None:
    # Student's t at one, two and nine degrees of freedom, from a table.
    assert mean_of([0.4, 0.6]) == {"mean": 0.5, "half_width": pytest.approx(12.706 * 0.1, rel=1e-3), "seeds": 2}
    assert mean_of([1.0, 2.0, 3.0])["half_width"] == pytest.approx(4.303 / 3**0.5, rel=1e-3)
    assert mean_of([0.0, 1.0] * 5)["half_width"] == pytest.approx(2.262 * 0.52705 / 10**0.5, rel=1e-3)
    assert mean_of([0.5])["half_width"] is None


def test_a_cell_holds_all_seeds_of_a_kind() -> None:
    cells = {(cell["preset"], cell["obfuscation"], cell["attack"]): cell for cell in grid(PAIRS)}

    cell = cells["strong", "masks", "persistent"]
    assert cell["identity"]["mean"] == pytest.approx(0.15)
    assert cell["tracking"]["mean"] == pytest.approx(0.075)
    assert (cell["identity"]["seeds"], cell["fragments"], cell["chance"]) == (2, 200, 0.1)


def test_what_masks_cost_is_reckoned_seed_by_seed() -> None:
    found = {(kind["preset"], kind["obfuscation"]): kind for kind in accuracies(PAIRS)}

    assert found["strong", "masks"]["cost_points"]["mean"] == pytest.approx(-0.5)
    assert found["strong", "none"]["cost_points"]["mean"] == 0.0


def test_published_figures_stand_beside_ours() -> None:
    found = {row["what"]: row for row in rows(grid(PAIRS))}

    assert found["identity linking by the published attack, α=0.1, r=1"] == {
        "what": "identity linking by the published attack, α=0.1, r=1",
        "published": 0.97,
        "published_interval": [0.97, 0.97],
        "paper_preset": pytest.approx(0.6),
        "strong_preset": pytest.approx(0.15),
        "unit": "share of fragments",
    }
    ours = found["bucket tracking by the persistent attack, α=0.1, r=0.1"]
    assert (ours["published"], ours["paper_preset"], ours["strong_preset"]) == (None, None, None)


@pytest.mark.parametrize(("identity", "accuracy", "holds"), [(0.2, 0.795, [True, True]), (0.6, 0.75, [False, False])])
def test_bars_hold_at_a_third_of_the_bare_figure_and_a_point(
    identity: float, accuracy: float, holds: list[bool]
) -> None:
    found = [federation(), federation("masks", identity=identity, accuracy=accuracy)]

    reached = bars(grid(found), accuracies(found))

    assert [bar["holds"] for bar in reached] == [holds[0], holds[0], holds[1]]
    assert [bar["high"] for bar in reached] == [pytest.approx(0.3), pytest.approx(0.3), 1.0]


def test_guessing_is_the_least_that_can_be_asked_for() -> None:
    found = [federation(identity=0.15), federation("masks", identity=0.09)]

    assert all(bar["holds"] for bar in bars(grid(found), accuracies(found)))


def test_people_and_browsers_get_all_of_it() -> None:
    document = {**document_of(PAIRS), "seconds": 1.0}

    assert render(document)
    sound_page(page(document))
    assert [each["preset"] for each in document["federations"]] == ["strong"] * 4 + ["paper"]


def test_a_study_is_every_alpha_and_seed_and_a_quick_one_is_small() -> None:
    full, quick = settings_of([1, 2], quick=False), settings_of([1], quick=True)

    assert len(full) == 2 * 4 * 3
    assert len(quick) == 3
    assert {(each.preset, each.obfuscation) for each in full} == {
        ("paper", "none"), ("strong", "none"), ("strong", "masks")
    }  # fmt: skip
    assert {each.dataset for each in quick} == {"fashion-mnist-mini"}
