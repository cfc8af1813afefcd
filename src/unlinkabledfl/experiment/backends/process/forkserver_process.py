"""The forkserver's own side: import once, then fork a process a request, and tell how each one ends.

    serving --fork asked for-----------> Forked, serving
    serving --fork impossible----------> Refused, serving
    serving --signal asked for---------> serving
    serving --a child ends-------------> Exited, serving
    serving --the socket closes--------> ending
    ending --all children have ended---> ended
    ending --their time is up----------> ended

It has one thread and reaps its own children, so a process number that it knows is never that of somebody else.

Invariant: no child outlives this process. When the socket closes, which even SIGKILL on the other side does, the
children get a signal, a moment, and SIGKILL; should this very process be killed, the kernel sends them their signal.

It is no `multiprocessing` forkserver because a launcher needs two, one with and one without PyTorch, and because that
one pickles, and hands its files to children that know of each other.
"""

import gc
import json
import logging
import os
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, NoReturn, cast

from unlinkabledfl.errors import UnlinkableError
from unlinkabledfl.experiment.backends.process.lifeline import die_with_parent, name_process, pin

__all__ = ["MESSAGE_BYTES_MAX", "Main", "serve"]

MESSAGE_BYTES_MAX: Final = 65_536
GRACE_S: Final = 2.0
_FILES_MAX: Final = 2

Main = Callable[[socket.socket], int]
"""The main function of a forked process: it is given its socket and returns its exit code."""


@dataclass(frozen=True, slots=True)
class _Child:
    death_signal: int


def serve(control: socket.socket) -> None:
    """Serve until the other side closes the socket; this is the main function of the forkserver."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    gc.disable()
    first = json.loads(control.recv(MESSAGE_BYTES_MAX))
    sys.path[:] = first["path"]
    try:
        for module in first["preload"]:
            import_module(module)
        for name, settings in first["prepare"].items():
            _find(name)(settings)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other side reports it
        problem = str(error) if isinstance(error, UnlinkableError) else f"{type(error).__name__}: {error}"
        control.send(json.dumps({"problem": problem}).encode())
        return
    # What is there now stays where it is: a collection in a child would touch, and so copy, pages that all share. One
    # here would leave holes in them, which the children would fill, each with a copy of its own.
    gc.freeze()
    _Server(control).run()


def _find(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    return cast("Callable[..., Any]", getattr(import_module(module), function))


class _Server:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: dict[int, _Child] = {}
        self._wake, self._woken = socket.socketpair()
        for end in (self._wake, self._woken):
            end.setblocking(False)
        signal.set_wakeup_fd(self._woken.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._control, selectors.EVENT_READ)
        self._selector.register(self._wake, selectors.EVENT_READ)

    def run(self) -> None:
        self._tell({"problem": None, "process_id": os.getpid()})
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._wake:
                    self._reap()
                elif not self._take_request():
                    self._end()
                    return

    def _take_request(self) -> bool:
        try:
            data, files, _, _ = socket.recv_fds(self._control, MESSAGE_BYTES_MAX, _FILES_MAX)
        except ConnectionError:
            return False
        if not data:
            return False
        request = json.loads(data)
        try:
            if "fork" in request:
                self._fork(request, files)
            elif (process_id := request["signal"]) in self._children:
                os.kill(process_id, request["number"])
        finally:
            for file in files:
                os.close(file)
        return True

    def _fork(self, request: dict[str, Any], files: Sequence[int]) -> None:
        parent = os.getpid()
        try:
            process_id = os.fork()
        except OSError as error:
            self._tell({"refused": request["fork"], "reason": str(error)})
            return
        if process_id == 0:
            self._be_child(request, files, parent)
        self._children[process_id] = _Child(death_signal=request["death_signal"])
        self._tell({"forked": request["fork"], "process_id": process_id})

    def _be_child(self, request: dict[str, Any], files: Sequence[int], parent: int) -> NoReturn:
        code = 1
        try:
            gc.enable()
            self._leave()
            _set_up(request, files[1:], parent)
            main = cast("Main", _find(request["main"]))
            with socket.socket(fileno=os.dup(files[0])) as connection:
                os.close(files[0])
                code = main(connection)
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 1
        except BaseException:  # noqa: BLE001 - the last frame of a process: it goes to the log, whatever it is
            traceback.print_exc()
        finally:
            # Not `sys.exit`: the frames of the forkserver are below us, and its exit handlers are not ours.
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _leave(self) -> None:
        """Let go of what belongs to the forkserver."""
        signal.set_wakeup_fd(-1)
        self._selector.close()
        for end in (self._control, self._wake, self._woken):
            end.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _reap(self) -> None:
        try:
            while self._wake.recv(4096):
                pass
        except BlockingIOError:
            pass
        # One signal may stand for several children.
        while self._children:
            process_id, status = os.waitpid(-1, os.WNOHANG)
            if process_id == 0:
                return
            if self._children.pop(process_id, None) is not None:
                self._tell({"exited": process_id, "code": os.waitstatus_to_exitcode(status)})

    def _tell(self, message: dict[str, Any]) -> None:
        try:
            self._control.send(json.dumps(message).encode())
        except (BrokenPipeError, ConnectionError):
            return  # the next read says so too, and that one acts

    def _end(self) -> None:
        for process_id, child in self._children.items():
            os.kill(process_id, child.death_signal)
        until_s = time.monotonic() + GRACE_S
        while self._children and (left_s := until_s - time.monotonic()) > 0:
            for key, _ in self._selector.select(left_s):
                if key.fileobj is self._wake:
                    self._reap()
                else:
                    self._selector.unregister(self._control)
        for process_id in self._children:
            os.kill(process_id, signal.SIGKILL)
        for process_id in self._children:
            os.waitpid(process_id, 0)


def _set_up(request: dict[str, Any], log: Sequence[int], parent: int) -> None:
    for file in log:
        os.dup2(file, sys.stdout.fileno())
        os.dup2(file, sys.stderr.fileno())
        os.close(file)
    name_process(request["name"])
    if request["cores"] is not None:
        pin(request["cores"])
    os.nice(request["niceness"])
    die_with_parent(signal.Signals(request["death_signal"]), parent=parent)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
