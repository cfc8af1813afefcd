"""One end of a control pipe in an event loop: messages out in order, messages in one by one, files along with them.

    open --bytes arrive-----------------> Received, open
    open --bytes that are no message----> Closed, closed
    open --the other end closes---------> Closed, closed
    open --more unsent than the bound---> Closed, closed
    open --close------------------------> closed

Invariant: messages arrive in the order in which they were sent, and a file with the message that it was sent with. An
end that is closed says so once, with the reason, and drops what is sent from then on: whoever is at the other end is
gone, and its death is dealt with where processes are looked after.
"""

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Final

from pydantic import BaseModel

from unlinkabledfl.errors import ControlError
from unlinkabledfl.experiment.backends.process.messages import FrameReader, frame

__all__ = ["Channel"]

_READ_BYTES: Final = 65_536
_FILES_MAX: Final = 8
_UNSENT_BYTES_MAX: Final = 64 * 1024 * 1024


class Channel:
    """Ours of the two ends.

    `on_message` gets each body, and may take the file that came with it; `on_close` gets the reason, which is empty if
    the other end simply closed.
    """

    def __init__(
        self, end: socket.socket, *, on_message: Callable[[bytes], None], on_close: Callable[[str], None]
    ) -> None:
        end.setblocking(False)
        self._end = end
        self._on_message = on_message
        self._on_close = on_close
        self._reader = FrameReader()
        self._files: deque[int] = deque()
        self._unsent: deque[tuple[bytes, int | None]] = deque()
        self._unsent_bytes = 0
        self._loop = asyncio.get_running_loop()
        self._open = True
        self._loop.add_reader(end, self._read)

    @property
    def is_open(self) -> bool:
        """Whether messages still come and go."""
        return self._open

    def send(self, message: BaseModel, *, file: int | None = None) -> None:
        """Send a message, and a file along with it, which this end then closes. Returns at once."""
        if not self._open:
            if file is not None:
                os.close(file)
            return
        data = frame(message)
        self._unsent.append((data, file))
        self._unsent_bytes += len(data)
        if len(self._unsent) == 1:
            self._write()
        if self._unsent_bytes > _UNSENT_BYTES_MAX:
            self._shut("it reads too slowly")

    def take_file(self) -> int:
        """Take the file that came with the message at hand; ControlError if none did."""
        if not self._files:
            raise ControlError("no_file", "a message that hands over a file came without one")
        return self._files.popleft()

    def read_rest(self) -> None:
        """Take in what has arrived already: the last words of a process that has just ended."""
        self._read()

    def close(self) -> None:
        """Close this end, once what the pipe takes at once has been sent."""
        if self._open:
            self._release()

    def _read(self) -> None:
        while self._open:
            try:
                data, files, _, _ = socket.recv_fds(self._end, _READ_BYTES, _FILES_MAX)
            except BlockingIOError:
                return
            except ConnectionError:
                self._shut("")
                return
            self._files.extend(files)
            if not data:
                self._shut("")
                return
            try:
                for body in self._reader.receive(data):
                    self._on_message(body)
            except ControlError as error:
                self._shut(str(error))

    def _write(self) -> None:
        while self._unsent:
            data, file = self._unsent[0]
            try:
                sent = self._end.send(data) if file is None else socket.send_fds(self._end, [data], [file])
            except BlockingIOError:
                self._loop.add_writer(self._end, self._write)
                return
            except ConnectionError:
                self._shut("")
                return
            if file is not None:
                os.close(file)
            self._unsent_bytes -= sent
            if sent < len(data):
                self._unsent[0] = (data[sent:], None)
            else:
                self._unsent.popleft()
        self._loop.remove_writer(self._end)

    def _shut(self, reason: str) -> None:
        if self._open:
            self._release()
            self._on_close(reason)

    def _release(self) -> None:
        self._open = False
        self._loop.remove_reader(self._end)
        self._loop.remove_writer(self._end)
        self._end.close()
        for file in (*self._files, *(file for _, file in self._unsent if file is not None)):
            os.close(file)
        self._files.clear()
        self._unsent.clear()
