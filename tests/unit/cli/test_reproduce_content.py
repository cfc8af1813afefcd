"""`reproduce content` on the command line."""

import json
from pathlib import Path

import pytest

from tests.unit.experiment.html_pages import sound_page
from unlinkabledfl.cli import main


@pytest.mark.slow
def test_a_quick_one_has_the_published_figures_beside_ours_and_the_whole_grid(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["reproduce", "content", "--quick", "--seeds", "1", "--json", "--out", str(tmp_path)]) == 0

    document = json.loads(capsys.readouterr().out)
    assert set(document) >= {"experiment", "rows", "grid", "accuracy", "bars", "machine", "versions", "seconds"}
    row = document["rows"][0]
    assert set(row) >= {"what", "published", "paper_preset", "strong_preset", "unit"}
    assert (row["what"], row["published"]) == ("identity linking by the published attack, α=0.1, r=1", 0.97)
    cells = {(each["preset"], each["obfuscation"], each["attack"], each["reference"], each["ratio"])
             for each in document["grid"]}  # fmt: skip
    attacks, ratios = ("published", "persistent"), (0.1, 0.25, 0.5, 0.75, 1.0)
    bare = {(name, "none", attack, "received", r) for name in ("paper", "strong") for attack in attacks for r in ratios}
    masked = {("strong", "masks", attack, kind, r)
              for attack in attacks for kind in ("received", "leaked") for r in ratios}  # fmt: skip
    assert cells == bare | masked
    sound_page((tmp_path / "content.html").read_text())
