"""The contract with the dashboard is a file, and must say what the manager does."""

from docs.generate_openapi import FILE, render


def test_the_schema_that_the_dashboard_is_made_from_is_not_stale() -> None:
    assert FILE.read_text(encoding="utf-8") == render(), "run `make docs`"
