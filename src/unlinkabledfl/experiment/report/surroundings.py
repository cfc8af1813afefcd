"""The scenario as it was written, and the machine and versions that ran it."""

from collections.abc import Mapping
from typing import Any

from unlinkabledfl.experiment.report.charts.svg import escaped
from unlinkabledfl.experiment.report.page import Table, table_html
from unlinkabledfl.experiment.report.run_data import RunData

__all__ = ["machine_html", "surroundings_html"]

_VALUE_MAX = 200


def surroundings_html(data: RunData) -> str:
    """Write the scenario beside the tables."""
    scenario = escaped(data.scenario_toml.strip()) or "The scenario is missing."
    tables = machine_html(data.summary)
    again = f"unlinkabledfl run {data.path / 'scenario.toml'}"
    return (
        f'<div class="columns"><div><pre>{scenario}</pre><p>The same run again: <code>{escaped(again)}</code></p></div>'
        f"<div>{tables}</div></div>"
    )


def machine_html(document: Mapping[str, Any]) -> str:
    """Write the machine and the versions that a document names."""
    return "".join(_block(name, document.get(name)) for name in ("machine", "versions"))


def _block(name: str, block: Any) -> str:  # noqa: ANN401 - read from a file, checked here
    if not isinstance(block, Mapping) or not block:
        return ""
    rows = [
        [str(key).replace("_gib", ", GiB")[:_VALUE_MAX], "not installed" if value is None else str(value)[:_VALUE_MAX]]
        for key, value in block.items()
    ]
    return table_html(Table(caption=name.capitalize(), headings=(), rows=rows))
