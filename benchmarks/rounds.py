"""Time several things against each other fairly: in turns, in one process, by CPU time, and by the median.

Other work on the machine, its clock's changes and its caches then fall on all of them alike. Each turn starts one
place further, so that none always runs in the shadow of the same neighbour.
"""

import gc
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import TypeVar

Prepared = TypeVar("Prepared")

Case = Callable[[], float]
"""Does its work a few times and returns the CPU µs of one."""


def case(prepare: Callable[[], Prepared], work: Callable[[Prepared], object], *, per: int) -> Case:
    """Return a case that prepares outside the measurement; `work` does `per` of whatever is counted."""

    def run() -> float:
        prepared = prepare()
        start = time.process_time_ns()
        work(prepared)
        return (time.process_time_ns() - start) / 1000 / per

    return run


def medians(cases: Mapping[str, Case], *, rounds: int) -> dict[str, float]:
    """Return the median of each case over that many rounds; one more, not counted, comes first."""
    names = list(cases)
    samples: dict[str, list[float]] = {name: [] for name in names}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for number in range(rounds + 1):
            start = number % len(names)
            for name in names[start:] + names[:start]:
                sample = cases[name]()
                if number:
                    samples[name].append(sample)
            gc.collect()
    finally:
        if collecting:
            gc.enable()
    return {name: median(values) for name, values in samples.items()}
