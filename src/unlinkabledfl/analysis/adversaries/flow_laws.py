"""Laws of delay as `flow` reads them: with which probability a departure of a relay came from one of its arrivals."""

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from unlinkabledfl.analysis.trace import Indices, Trace
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.mixnet.mixers import MixerSettings, OffSettings, OutboxSettings, PoissonSettings

Floats = npt.NDArray[np.float64]
Weights = npt.NDArray[np.float32]
"""By target, node and order. Single precision: what is added up spans seven orders of magnitude, the smallest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Departures and arrivals of every node in the order of time, padded to equal length."""

    left_at_s: Floats  # [node, place]; infinite where padded
    arrived_at_s: Floats  # likewise
    ranks: Indices  # [node, place]: how many departures the node had before this one, since the trace began
    until_s: float


class FlowLaw(Protocol):
    """How a relay's departures come from its arrivals."""

    def longest_s(self, steps: int) -> float:
        """Return how long a packet takes through that many relays at most, nearly."""
        ...

    def prepare(self, places: Places) -> None:
        """Compute what depends on the times alone."""
        ...

    def arrivals(self, departures: Weights) -> Weights:
        """Carry weights from departures, by target, node and order, back to arrivals, likewise."""
        ...

    def departures(self, arrivals: Weights) -> Weights:
        """Carry weights from arrivals on to departures: the same probabilities, read the other way."""
        ...

    def fresh(self) -> Floats:
        """Return the probability of every departure to be a packet that its node made."""
        ...


_PLACES_LEAST = 25

_SCALINGS = 4
"""After so many, claims meet hit rates; more of them are no more right."""


class PoissonFlow:
    """Exponential delays: the density of a delay d is e^(−d/m)/m, whatever else happens in the relay.

    A sum over all earlier arrivals of e^(−(t − a)/m) is e^(−t/m) times a running sum, so that carrying a thousand
    crossings back costs a thousand steps and not a million. Times count from the end of the stretch, where the
    exponentials are largest: the running sums then only add what is small to what is smaller.
    """

    _TAIL_MEANS = 7.0  # beyond one mean a relay; three relays take longer three times in a thousand, four five times

    def __init__(self, settings: PoissonSettings, *, own_rate_per_s: float, caused_share: float) -> None:
        self._mean_s = settings.delay_mean_s
        self._own_rate_per_s = own_rate_per_s
        self._caused_share = caused_share

    def longest_s(self, steps: int) -> float:
        return (steps + self._TAIL_MEANS) * self._mean_s

    def prepare(self, places: Places) -> None:
        left = (places.left_at_s - places.until_s) / self._mean_s
        arrived = (places.arrived_at_s - places.until_s) / self._mean_s
        after = np.where(np.isfinite(arrived), np.exp(np.minimum(arrived, 0.0)), 0.0)
        self._from = _places_after(places.arrived_at_s, places.left_at_s)
        self._until = _places_after(places.left_at_s, places.arrived_at_s, closed=True)
        is_real = np.isfinite(left)
        decay = np.where(is_real, np.exp(-np.where(is_real, left, 0.0)), 0.0) / self._mean_s
        # Every arrival becomes one departure at most, as every departure comes from one arrival: scale until both hold.
        scaled = after
        for _ in range(_SCALINGS):
            per_density = decay / self._total(scaled, decay)
            becomes = after * (1.0 + _gather(_later(per_density), self._from))
            scaled = np.where(after > 0.0, after / np.where(after > 0.0, becomes, 1.0), 0.0)
        total = self._total(scaled, decay)
        self._after_arrival = scaled.astype(np.float32)
        self._per_density = (decay / total).astype(np.float32)
        self._fresh = self._own_rate_per_s / total

    def _total(self, after: Floats, decay: Floats) -> Floats:
        """Return the density of departures: of fresh ones, and of what is held."""
        return self._own_rate_per_s + self._caused_share * _gather(_earlier(after), self._until) * decay

    def fresh(self) -> Floats:
        return self._fresh

    def arrivals(self, departures: Weights) -> Weights:
        found: Weights = _gather(_later(departures * self._per_density), self._from) * self._after_arrival
        return found

    def departures(self, arrivals: Weights) -> Weights:
        found: Weights = _gather(_earlier(arrivals * self._after_arrival), self._until) * self._per_density
        return found


class OutboxFlow:
    """The outbox leaves traces of its cycles: every O departures it is filled with what came since the last filling.

    So a departure came from the arrivals of one known interval, each with the same probability 1/O. Where bursts of a
    node's own fill its outbox, a share of what came waits for one cycle more, and of that the same share again. How
    many of a cycle's places are fresh depends on those bursts too, which nobody sees; it is left out.
    """

    _CYCLES = 4  # within which a packet passes a relay, nearly always

    def __init__(self, settings: OutboxSettings, *, waits: float) -> None:
        self._size = settings.outbox_size
        self._cycle_s = settings.outbox_size * settings.delay_mean_s
        self._waits = waits

    def longest_s(self, steps: int) -> float:
        return (self._CYCLES * steps + 1) * self._cycle_s

    def prepare(self, places: Places) -> None:
        cycles = places.ranks // self._size
        self._first = cycles[:, :1]
        # Cycle c is filled when the last packet of cycle c − 1 leaves. Of the stretch's first cycle that is not seen.
        self._cycle = cycles - self._first
        count = int(self._cycle.max()) + 1
        is_last = (places.ranks % self._size == self._size - 1) & np.isfinite(places.left_at_s)
        filled = np.full((len(cycles), count + 1), np.inf)
        filled[:, 0] = -np.inf
        node, place = np.nonzero(is_last)
        filled[node, self._cycle[node, place] + 1] = places.left_at_s[node, place]
        # An arrival takes part in the first filling that is not before it.
        self._joins = _places_after(places.arrived_at_s, filled)
        self._cycles = count + 1
        self._fresh = np.ones_like(places.left_at_s)

    def fresh(self) -> Floats:
        return self._fresh

    def arrivals(self, departures: Weights) -> Weights:
        sums = np.zeros((*departures.shape[:2], self._cycles + 2), dtype=np.float32)
        nodes = np.arange(departures.shape[1])[:, None]
        for row, weights in enumerate(departures):
            used = weights > 0.0
            np.add.at(sums[row], (np.broadcast_to(nodes, weights.shape)[used], self._cycle[used]), weights[used])
        sums /= self._size
        # What joins in cycle c leaves in c, or waits and is as what joins in c + 1.
        for cycle in range(sums.shape[2] - 2, -1, -1):
            sums[:, :, cycle] = (1.0 - self._waits) * sums[:, :, cycle] + self._waits * sums[:, :, cycle + 1]
        return np.take_along_axis(sums, self._joins[None, :, :], axis=2)

    def departures(self, arrivals: Weights) -> Weights:
        sums = np.zeros((*arrivals.shape[:2], self._cycles + 2), dtype=np.float32)
        nodes = np.arange(arrivals.shape[1])[:, None]
        for row, weights in enumerate(arrivals):
            used = weights > 0.0
            np.add.at(sums[row], (np.broadcast_to(nodes, weights.shape)[used], self._joins[used]), weights[used])
        sums /= self._size
        waiting = np.zeros(sums.shape[:2], dtype=np.float32)
        for cycle in range(sums.shape[2]):
            joined = sums[:, :, cycle] + waiting
            waiting = self._waits * joined
            sums[:, :, cycle] = joined - waiting
        return np.take_along_axis(sums, self._cycle[None, :, :], axis=2)


def has_cycles(mixer: MixerSettings) -> bool:
    """Return whether the cycles of an outbox can be told from its departures; true of mixers that have none."""
    return not isinstance(mixer, OutboxSettings) or (mixer.cover and mixer.outbox_size >= _PLACES_LEAST)


def flow_laws(trace: Trace) -> list[FlowLaw]:
    """Return the laws of delay that the settings allow: one for each of some values of what is not public."""
    settings = trace.settings
    match settings.mixer:
        case PoissonSettings():
            own_rate_per_s = settings.own_rate_per_s
            return [PoissonFlow(settings.mixer, own_rate_per_s=own_rate_per_s, caused_share=_caused_share(trace))]
        case OutboxSettings():
            if not has_cycles(settings.mixer):
                raise ConfigError(
                    key="attack.mixer",
                    got=f"an outbox of {settings.mixer.outbox_size}, cover {str(settings.mixer.cover).lower()}",
                    takes=f"an outbox of {_PLACES_LEAST} places or more, with cover",
                    hint="without cover cycles have no fixed length, and a small outbox is overrun by chance;"
                    " `route` does not depend on either",
                )
            return [OutboxFlow(settings.mixer, waits=waits) for waits in (0.02, 0.2, 0.4, 0.6, 0.8)]
        case OffSettings():
            takes = "a mixer that delays"
            hint = "without delays a packet leaves when it came: `route` and the order of crossings say all"
            raise ConfigError(key="attack.mixer", got="off", takes=takes, hint=hint)


def _caused_share(trace: Trace) -> float:
    """Return how many departures an arrival causes on average: relayed packets, and acknowledgements."""
    crossings = trace.crossings
    duration_s = float(crossings.left_at_s[-1] - crossings.left_at_s[0])
    arrivals = int(np.count_nonzero(~np.isnan(crossings.arrived_at_s)))
    fresh = trace.settings.own_rate_per_s * duration_s * trace.nodes
    return min(1.0, max(len(crossings) - fresh, 1.0) / max(arrivals, 1))


def _earlier(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return, for every place and the one after the last, the sum of all values before it."""
    sums = np.cumsum(values, axis=-1)
    return np.concatenate([np.zeros_like(sums[..., :1]), sums], axis=-1)


def _later(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return, for every place and the one after the last, the sum of all values from it on."""
    sums = np.cumsum(values[..., ::-1], axis=-1)[..., ::-1]
    return np.concatenate([sums, np.zeros_like(sums[..., :1])], axis=-1)


def _gather(sums: npt.NDArray[Any], places: Indices) -> npt.NDArray[Any]:
    """Return the sums at these places, node by node, for every target if there are several."""
    return np.take_along_axis(sums, places if sums.ndim == places.ndim else places[None, :, :], axis=-1)


def _places_after(times: Floats, table: Floats, *, closed: bool = False) -> Indices:
    """Return, row by row, the place in `table` before which as many of its times lie as are smaller (or equal)."""
    side: Literal["left", "right"] = "right" if closed else "left"
    return np.stack([np.searchsorted(row, wanted, side=side) for wanted, row in zip(times, table, strict=True)])
