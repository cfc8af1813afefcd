"""What a run came to, for people: `load_run` reads a run directory, `write_report` makes one page of it."""

from pathlib import Path

from unlinkabledfl.experiment.records.files import write_file
from unlinkabledfl.experiment.report.document import report_html
from unlinkabledfl.experiment.report.run_data import RunData, load_run

__all__ = ["RunData", "load_run", "report_html", "write_report"]


def write_report(data: RunData, path: Path | None = None) -> Path:
    """Write the page of a run, into its directory unless told where, and return where it lies."""
    target = data.path / "report.html" if path is None else path
    write_file(target, report_html(data))
    return target
