"""Where the nodes of a run live, as their launcher sees it: processes of this machine, or an engine's containers.

The launcher asks for nodes, learners and ends; whoever keeps them tells what came of it. What a node says goes through
its control pipe, past the keeper, to the launcher.
"""

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from unlinkabledfl.experiment.backends.process import messages as say

__all__ = ["Hosts", "NodeLaunch", "Processes", "Reports"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLaunch:
    """What one node is started with."""

    node_id: str
    configure: say.Configure
    log: Path
    first_round: int = 1
    core: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """The processes of a node on this machine, as far as they live and can be seen."""

    mix: int | None = None
    learner: Sequence[int] = ()


class Reports(Protocol):
    """What a keeper of nodes tells."""

    def connected(self, index: int, end: socket.socket) -> None:
        """This is our end of the node's control pipe. Said once, before or after the node runs."""
        ...

    def ended(self, index: int, how: str) -> None:
        """A node has ended, or will never be there; `how` says it in words. Said once for every node."""
        ...

    def tell(self, index: int, message: say.ToNode, *, file: int | None = None) -> None:
        """Send a node something that only its keeper knows, and a file along with it."""
        ...


class Hosts(Protocol):
    """Who keeps the nodes of one run."""

    async def open(self, reports: Reports) -> None:
        """Get ready; RunError or ConfigError if no node could be started here."""
        ...

    async def start(self) -> None:
        """Start all nodes. Those that cannot be are reported as ended."""
        ...

    async def start_learner(self, index: int) -> None:
        """Start a process for the learner of a node, in the place of the one before, and tell the node."""
        ...

    def kill(self, index: int) -> None:
        """End a node by force. If it has not been started it never will be."""
        ...

    def round_finished(self, index: int) -> None:
        """A node has finished a round: what it has left behind is whole."""
        ...

    def processes(self, index: int) -> Processes:
        """Return what this node uses of the machine."""
        ...

    async def close(self) -> None:
        """End whatever is left, and take away all that was made."""
        ...
