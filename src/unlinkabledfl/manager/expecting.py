"""Indicators while somebody types: remembered, one at a time, and only of what is soon reckoned.

Scenarios come over the network, and a scenario can name code to import, files to read, directories to mount and an
engine to call. Whoever has the token may run experiments; they are given to him only if the manager was told so.
"""

from collections import OrderedDict
from threading import Lock
from typing import Final

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.figures import Indicators
from unlinkabledfl.experiment.scenario import Scenario
from unlinkabledfl.experiment.scenario.learning import BUILT_IN_LEARNER
from unlinkabledfl.manager.settings import Settings

__all__ = ["Expectations", "check_reach"]

_REMEMBERED: Final = 64
_LINKS_MAX: Final = 250_000
_SEARCH_MAX: Final = 4_000_000
_REACHING: Final = ("engine", "image", "plugins")
"""What in `[container]` is called, run or mounted. A directory of plug-ins is imported from, too."""
_REGULAR: Final = frozenset({"circulant", "ring"})


class Expectations:
    """Indicators of scenarios that were asked for of late."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = Lock()
        self._remembered: OrderedDict[str, Indicators] = OrderedDict()

    def of(self, scenario: Scenario) -> Indicators:
        """Return the indicators; ConfigError where the scenario cannot work, or may not be asked about here."""
        # The page is there before what only this needs.
        from unlinkabledfl.experiment.indicators import indicators  # noqa: PLC0415

        check_reach(scenario, self._settings)
        _check_size(scenario)
        key = scenario.model_dump_json()
        with self._lock:
            found = self._remembered.pop(key, None)
            if found is None:
                found = indicators(scenario)
            self._remembered[key] = found
            while len(self._remembered) > _REMEMBERED:
                self._remembered.popitem(last=False)
        return found


def check_reach(scenario: Scenario, settings: Settings) -> None:
    """ConfigError where a scenario reaches for code or files of this machine, and may not."""
    if settings.trusts_scenarios:
        return
    hint = "run it with `unlinkabledfl run`, or start the manager with --trust-scenarios"
    if scenario.learning.factory != BUILT_IN_LEARNER:
        takes = "the built-in learner: code is not imported at the word of a request"
        raise ConfigError(key="learning.factory", got=scenario.learning.factory, takes=takes, hint=hint)
    if scenario.topology.file:
        takes = "nothing: files are not read at the word of a request"
        raise ConfigError(key="topology.file", got=scenario.topology.file, takes=takes, hint=hint)
    for name in _REACHING:
        if given := getattr(scenario.container, name):
            takes = "nothing: engines, images and directories of this machine are not chosen by a request"
            raise ConfigError(key=f"container.{name}", got=given, takes=takes, hint=hint)


def _check_size(scenario: Scenario) -> None:
    topology = scenario.topology
    nodes = topology.nodes
    links = nodes * (nodes - 1) // 2 if topology.family == "full" else nodes * min(topology.degree, nodes - 1) // 2
    if links > _LINKS_MAX or (topology.family not in _REGULAR and nodes * links > _SEARCH_MAX * 10):
        raise ConfigError(
            key="topology.nodes",
            got=nodes,
            takes=f"fewer for a graph of this kind: {links:,} links are too many to search while you type",
            hint="`unlinkabledfl check` takes its time",
        )
