"""Python's cyclic garbage collector, out of the way while a world runs.

A world of ten thousand peers is millions of live objects, none of them garbage. Every full collection walks all of
them: time that grows with the world and finds nothing. The machines make no reference cycles while they run, so
reference counting frees everything; the soak test holds them to it.

Switching the collector off affects the whole process. That is the decision of a program (a command, a benchmark), so
the world never does it by itself.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Collect once, then do without the cyclic collector until the block ends, and leave all as it was."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
