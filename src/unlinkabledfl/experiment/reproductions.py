"""What `unlinkabledfl reproduce` can repeat, by name.

An experiment is a module with three functions, and a name in the table below:

- `reproduce(*, tell, …)` runs it and returns the JSON document; its other keywords are its options, and `tell` is
  called with a line whenever there is something to say to who waits;
- `render(document)` returns what people see of it on a terminal;
- `page(document)` returns it as one HTML page with its pictures.

Adding an experiment is adding a module and a line here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from unlinkabledfl.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["EXPERIMENTS", "Experiment", "Listed", "experiment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One experiment in the list."""

    module: str
    says: str


EXPERIMENTS: dict[str, Listed] = {
    "linking": Listed(
        module="unlinkabledfl.experiment.linking.reproduction",
        says="who can be linked: every deployment against every adversary, beside the published ablation",
    ),
    "theory": Listed(
        module="unlinkabledfl.experiment.theory_study.reproduction",
        says="entropies, bounds and reach, beside the numbers that the published text states",
    ),
    "content": Listed(
        module="unlinkabledfl.experiment.content.reproduction",
        says="what a destination recognises in the fragments that it decrypts, and what masks leave of that",
    ),
    "frontier": Listed(
        module="unlinkabledfl.experiment.linking.frontier",
        says="linkability against delay and bytes, over path lengths and delays: what `tune` reads",
    ),
}


class Experiment(Protocol):
    """What the module of an experiment offers."""

    reproduce: Callable[..., dict[str, Any]]
    render: Callable[[dict[str, Any]], "RenderableType"]
    page: Callable[[dict[str, Any]], str]


def experiment(name: str) -> Experiment:
    """Return the experiment with this name; ConfigError if there is none."""
    if name not in EXPERIMENTS:
        raise ConfigError(key="reproduce", got=name, takes=", ".join(EXPERIMENTS))
    return cast("Experiment", import_module(EXPERIMENTS[name].module))
