"""Two runs side by side: `compare_runs` finds what differs, `write_comparison` makes one page of it."""

from pathlib import Path

from unlinkabledfl.experiment.compare.comparison import Comparison, compare_runs
from unlinkabledfl.experiment.compare.page import comparison_html, comparison_tables
from unlinkabledfl.experiment.records.files import write_file

__all__ = ["Comparison", "compare_runs", "comparison_html", "comparison_tables", "write_comparison"]


def write_comparison(comparison: Comparison, path: Path) -> Path:
    """Write the page of a comparison."""
    write_file(path, comparison_html(comparison))
    return path
