"""docs/link.md names every counter and gauge of links, and none that there is not."""

import re
from pathlib import Path

from tests.unit.transport.virtual import Place, run

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "link.md").read_text(encoding="utf-8")
CAUSE = re.compile(r'"((?:link|cell|udp|lost|control|dial|closed)_[a-z_]+)"')
NO_CAUSES = {"cell_bytes"}  # an attribute


def documented() -> set[str]:
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_every_counter_in_the_code_is_on_the_page_and_the_other_way_round() -> None:
    sources = (ROOT / "src" / "unlinkabledfl" / "transport").glob("*.py")
    causes = {cause for path in sources for cause in CAUSE.findall(path.read_text(encoding="utf-8"))} - NO_CAUSES

    assert causes == {name for name in documented() if not name.startswith("links_")}


def test_every_gauge_is_on_the_page_and_the_other_way_round() -> None:
    async def main() -> set[str]:
        return set((await Place(1).open()).endpoint.gauges())

    assert run(main()) == {name for name in documented() if name.startswith("links_")}
