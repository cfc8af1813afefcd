"""A run as Server-Sent Events: each viewer reads the run's journal by itself, from his own position.

    reading --records-----------------------> Message, pausing
    reading --nothing, the run goes on------> pausing
    reading --nothing, the run is over------> EndMessage, closed
    reading --the record is damaged---------> EndMessage, closed
    pausing --half a second has passed------> reading
    pausing --nothing was sent for long-----> Comment, reading

Invariant: what a message holds, and its id, follow from the journal alone. So all viewers see the same messages in the
same order, whenever they come, also from a manager that was started again; and a viewer that comes back with the id of
the last message misses nothing and gets nothing twice.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import anyio

from unlinkabledfl.errors import UnlinkableError
from unlinkabledfl.experiment.records.journal import read_records
from unlinkabledfl.manager.details import message_of
from unlinkabledfl.manager.documents import EndMessage, RunStatus
from unlinkabledfl.manager.store import NoSuchRunError, RunStore

__all__ = ["MEDIA_TYPE", "stream_of"]

MEDIA_TYPE: Final = "text/event-stream"
_PAUSE_S: Final = 0.5
_QUIET_FOR_STATUS: Final = 2
_QUIET_FOR_COMMENT: Final = 30
_RECORDS_MAX: Final = 1_000
_HELLO: Final = b"retry: 1000\n\n"
"""A browser that lost the manager asks again after so many milliseconds."""


async def stream_of(store: RunStore, run: str, *, after: int) -> AsyncIterator[bytes]:
    """Yield a run's messages from a position on, until the run is over."""
    yield _HELLO
    directory = store.get(run).directory.path
    position, quiet = after, 0
    end: EndMessage | None = None
    while True:
        try:
            frames, position, is_full = await anyio.to_thread.run_sync(_frames, directory, position)
        except UnlinkableError as error:
            yield _end_frame(EndMessage(status=RunStatus.DAMAGED, reason=str(error)))
            return
        if frames:
            yield frames
            quiet = 0
            if is_full:
                continue
        elif end is not None:
            yield _end_frame(end)
            return
        else:
            quiet += 1
            if quiet % _QUIET_FOR_STATUS == 0 and (end := await anyio.to_thread.run_sync(_end_of, store, run)):
                continue  # what was written before it ended is still to be read
            if quiet % _QUIET_FOR_COMMENT == 0:
                yield b": still there\n\n"
        await anyio.sleep(_PAUSE_S)


def _frames(directory: Path, after: int) -> tuple[bytes, int, bool]:
    """Return the next messages, the position behind them, and whether there may be more already."""
    records, position = read_records(directory, after=after, most=_RECORDS_MAX)
    frames = []
    for at, record in records:
        message = message_of(at, record)
        frames.append(f"event: {message.kind}\nid: {at}\ndata: {message.model_dump_json()}\n\n")
    return "".join(frames).encode(), position, len(records) == _RECORDS_MAX


def _end_of(store: RunStore, run: str) -> EndMessage | None:
    try:
        stored = store.get(run)
    except NoSuchRunError:
        return EndMessage(status=RunStatus.DAMAGED, reason="it was deleted")
    return None if stored.is_live else EndMessage(status=stored.status, reason=stored.reason)


def _end_frame(end: EndMessage) -> bytes:
    return f"event: end\ndata: {end.model_dump_json()}\n\n".encode()
