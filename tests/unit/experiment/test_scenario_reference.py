"""docs/scenario.md."""

from docs.generate_scenario_reference import PAGE, render
from unlinkabledfl.experiment.scenario import keys, sections


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make docs`"


def test_the_page_has_every_section_and_key() -> None:
    page = render()

    assert all(f"## [{name}]\n" in page for name in sections())
    assert all(f"| `{key.name}`" in page for key in keys().values())
