"""Where output goes: documents for machines on stdout, everything for people on stderr.

So a document can be piped while progress stays visible, and nothing ever has to be filtered out of it.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


def print_document(document: Mapping[str, Any]) -> None:
    """Print one JSON document on stdout."""
    # NaN is not JSON: a result that holds one is a bug, and must not reach whoever parses it.
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def show(renderable: "RenderableType") -> None:
    """Show something to people."""
    _console().print(renderable)


@contextmanager
def waiting(message: str) -> Iterator[None]:
    """Tell people what takes so long: a spinner on a terminal, nothing in a log."""
    with _console().status(message):
        yield


@contextmanager
def working(title: str) -> Iterator[Callable[[str], None]]:
    """Tell people how far it is: yields what is called with each line that says so."""
    with _console().status(title) as status:
        yield lambda line: status.update(f"{title}: {line}")


def _console() -> "Console":
    from rich.console import Console

    return Console(stderr=True)
