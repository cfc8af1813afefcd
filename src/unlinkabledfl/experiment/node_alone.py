"""A node on a host of its own, with no launcher: its configuration says where the others are and when to begin.

    linking --linked, and all partners are known--> running
    linking --out of patience---------------------> running
    running --its rounds are over, time passes----> stopping
    running --told to stop------------------------> stopping
    linking --told to stop------------------------> stopping

After its last round it goes on relaying for whoever is not done yet, for as long as it is told to linger.
"""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from unlinkabledfl.experiment.backends.process import messages as say
from unlinkabledfl.experiment.node_config import FullNodeConfig
from unlinkabledfl.learning.worker_start import WorkerProcess, fork_worker

__all__ = ["Alone"]

_LOG = logging.getLogger(__name__)
_PATIENCE_S: Final = 60.0


class Alone:
    """It fulfils `node_runtime.Surroundings`, and keeps what the node reports."""

    def __init__(self, config: FullNodeConfig, *, linger_s: float = math.inf, patience_s: float = _PATIENCE_S) -> None:
        self._config = config
        self._linger_s = linger_s
        self._patience_s = patience_s
        self._loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()
        self._begun_at_s: float | None = None
        self.stopping = asyncio.Event()
        self.lost: asyncio.Queue[str] = asyncio.Queue()
        self.trained: asyncio.Queue[int] = asyncio.Queue()
        self.rounds: dict[int, Mapping[str, float]] = {}
        self.counters: Mapping[str, int] = {}
        self.ending: str | None = None

    @property
    def at_s(self) -> float:
        return 0.0 if self._begun_at_s is None else self._loop.time() - self._begun_at_s

    async def introduce(self, _address: str) -> Mapping[str, tuple[str, ...]]:
        config = self._config
        partners = {*config.destinations, *config.expected_from} - set(config.absent)
        known: dict[str, tuple[str, ...]] = dict.fromkeys(sorted(partners), ())
        known.update((contact.node_id, contact.addresses) for contact in config.contacts)
        return known

    async def begin(self) -> None:
        try:
            await asyncio.wait_for(self._ready.wait(), self._patience_s)
        except TimeoutError:
            _LOG.warning("not everybody is linked after %g s; the first round begins without them", self._patience_s)
        self._begun_at_s = self._loop.time()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Compute at once: there is nobody else."""
        yield

    def start_worker(self) -> WorkerProcess:
        return fork_worker()

    def report(self, message: say.FromNode) -> None:
        match message:
            case say.Ready():
                self._ready.set()
            case say.RoundReport(round_number=round_number, metrics=metrics):
                self.rounds[round_number] = metrics
            case say.Finished(ending=ending):
                self.ending = ending
                if self._linger_s < math.inf:
                    self._loop.call_later(self._linger_s, self.stop)
                else:
                    _LOG.info("all rounds are over; relaying for the others until told to stop")
            case say.Stopped(counters=counters):
                self.counters = counters
            case _:
                return  # the node has logged what else there is to say

    def stop(self) -> None:
        """Stop the node in order."""
        self.stopping.set()
