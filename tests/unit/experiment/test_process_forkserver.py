import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.backends.process.forkserver import ForkRequest, ForkServer
from unlinkabledfl.experiment.backends.process.lifeline import available_cores, check_cores

MAINS = "tests.unit.experiment.process_mains"


@asynccontextmanager
async def forkserver(*preload: str) -> AsyncIterator[ForkServer]:
    server = ForkServer(preload=preload or (MAINS,))
    await server.start()
    try:
        yield server
    finally:
        await server.close()


class Forked:
    """A process, our end of its socket, and how it ended."""

    def __init__(self) -> None:
        self.connection, self.theirs = socket.socketpair()
        self.connection.setblocking(False)
        self.ended: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self.process_id = 0

    def has_ended(self, process_id: int, code: int | None) -> None:
        assert process_id == self.process_id
        self.ended.set_result(code)

    async def read(self) -> bytes:
        return await asyncio.get_running_loop().sock_recv(self.connection, 65_536)

    async def end(self) -> int | None:
        code = await asyncio.wait_for(self.ended, 20.0)
        self.connection.close()
        return code


async def fork(server: ForkServer, main: str, **options: object) -> Forked:
    forked = Forked()
    request = ForkRequest(main=f"{MAINS}:{main}", name="a test", **options)  # type: ignore[arg-type]
    with forked.theirs:
        try:
            forked.process_id = await server.fork(request, forked.theirs, on_exit=forked.has_ended)
        except OSError:
            forked.connection.close()
            raise
    return forked


async def gone(process_id: int) -> bool:
    """Wait until a process that is nobody's child here has ended."""
    try:
        descriptor = os.pidfd_open(process_id)
    except ProcessLookupError:
        return True
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, ended.set)
    try:
        await asyncio.wait_for(ended.wait(), 20.0)
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    return True


def test_a_forked_process_talks_over_its_socket_and_its_exit_code_is_told() -> None:
    async def run() -> tuple[bytes, int | None]:
        async with forkserver() as server:
            forked = await fork(server, "echo")
            forked.connection.send(b"hello")
            answer = await forked.read()
            forked.connection.shutdown(socket.SHUT_WR)
            return answer, await forked.end()

    assert asyncio.run(run()) == (b"hello", 7)


def test_a_forked_process_is_what_was_asked_for_and_holds_no_file_of_the_forkserver() -> None:
    core = min(available_cores())

    async def run() -> tuple[dict[str, object], int | None, str]:
        with tempfile.TemporaryFile() as log:
            async with forkserver(MAINS, "numpy") as server:
                forked = await fork(server, "describe", niceness=3, cores=[core], log=log.fileno())
                facts = json.loads(await forked.read())
                assert await forked.end() == 0
                parent = server.process_id
            log.seek(0)
            return facts, parent, log.read().decode()

    facts, parent, log = asyncio.run(run())

    assert facts["parent"] == parent
    assert facts["niceness"] == os.nice(0) + 3
    assert facts["cores"] == [core]
    assert facts["threads"] == "1"
    assert (facts["numpy"], facts["torch"]) == (True, False)
    # 0 to 2, the connection, and the directory that is being listed.
    assert len(facts["files"]) == 5  # type: ignore[arg-type]
    assert log == "a line for the log\n"


def test_a_crash_is_an_exit_code_and_a_traceback_in_the_log() -> None:
    async def run() -> tuple[int | None, str]:
        with tempfile.TemporaryFile() as log:
            async with forkserver() as server:
                forked = await fork(server, "crash", log=log.fileno())
                code = await forked.end()
            log.seek(0)
            return code, log.read().decode()

    code, log = asyncio.run(run())

    assert code == 1
    assert log.endswith("RuntimeError: a bug in the main function\n")


def test_a_signal_reaches_a_process_and_its_end_is_told_as_that_signal() -> None:
    async def run() -> int | None:
        async with forkserver() as server:
            forked = await fork(server, "wait")
            await forked.read()
            server.signal(forked.process_id, signal.SIGKILL)
            return await forked.end()

    assert asyncio.run(run()) == -signal.SIGKILL


def test_closing_the_forkserver_ends_its_processes_the_deaf_ones_too() -> None:
    async def run() -> list[int | None]:
        async with forkserver() as server:
            children = [await fork(server, main, death_signal=signal.SIGTERM) for main in ("wait", "deaf")]
            for child in children:
                await child.read()
        assert all([await gone(child.process_id) for child in children])
        return [await child.end() for child in children]

    assert asyncio.run(run()) == [None, None]


def test_killing_the_forkserver_ends_its_processes_and_is_told_for_each() -> None:
    async def run() -> list[int | None]:
        async with forkserver() as server:
            children = [await fork(server, "wait") for _ in range(3)]
            for child in children:
                await child.read()
            assert server.process_id is not None
            os.kill(server.process_id, signal.SIGKILL)
            codes = [await child.end() for child in children]
            assert all([await gone(child.process_id) for child in children])
            with pytest.raises(OSError, match="the forkserver has ended"):
                await fork(server, "echo")
            return codes

    assert asyncio.run(run()) == [None, None, None]


LAUNCHER = """
import asyncio, os, signal, sys
from tests.unit.experiment.test_process_forkserver import fork, forkserver

async def run():
    async with forkserver() as server:
        ids = [server.process_id]
        for main in ("wait", "deaf"):
            child = await fork(server, main, death_signal=signal.SIGTERM)
            await child.read()
            ids.append(child.process_id)
        print(*ids, flush=True)
        await asyncio.Event().wait()

asyncio.run(run())
"""


def test_nothing_outlives_a_launcher_that_is_killed() -> None:
    launcher = subprocess.Popen([sys.executable, "-c", LAUNCHER], stdout=subprocess.PIPE, text=True)
    assert launcher.stdout is not None
    with launcher.stdout as pipe:
        process_ids = [int(word) for word in pipe.readline().split()]
        assert len(process_ids) == 3

        launcher.kill()
        launcher.wait()

        async def all_gone() -> list[bool]:
            return [await gone(process_id) for process_id in process_ids]

        assert asyncio.run(all_gone()) == [True, True, True]


def test_a_forkserver_that_cannot_import_says_what() -> None:
    async def run() -> None:
        async with forkserver("a_module_that_is_nowhere"):
            pass

    with pytest.raises(OSError, match="ModuleNotFoundError: No module named 'a_module_that_is_nowhere'"):
        asyncio.run(run())


def test_a_core_that_does_not_exist_is_named() -> None:
    with pytest.raises(ConfigError, match=r"process\.cores: got 4711, takes cores that exist here") as caught:
        check_cores([min(available_cores()), 4711], key="process.cores")

    assert caught.value.got == 4711
