"""The main function of a node's mix process, as a launcher forks it. It never imports PyTorch."""

import asyncio
import faulthandler
import logging
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from unlinkabledfl.errors import ConfigError, UnlinkableError
from unlinkabledfl.experiment.backends.process import messages as say
from unlinkabledfl.experiment.backends.process.failures import first_of
from unlinkabledfl.experiment.backends.process.launcher_link import LauncherLink
from unlinkabledfl.experiment.node_config import FullNodeConfig
from unlinkabledfl.experiment.node_runtime import NodeRuntime, Place
from unlinkabledfl.experiment.tracing.logs import TraceFolder

__all__ = ["explain", "main", "quieten_quic", "serve", "set_up_logging", "stop_on_signals"]

_OK: Final = 0
_BUG: Final = 1
_CONFIG: Final = 2
_FAILED: Final = 3
"""The exit codes of the command, as `cli.exit_codes` lists them."""
_STOP_S: Final = 4.0
_TEXT_MAX: Final = 2_000

_LOG = logging.getLogger(__name__)


def main(connection: socket.socket) -> int:
    """Run the node that the launcher at the other end describes, and return the exit code."""
    set_up_logging(sys.stderr)
    return asyncio.run(serve(connection))


def set_up_logging(stream: object) -> None:
    """Log to this stream. Nothing in the package logs a key, a packet or a model."""
    logging.basicConfig(
        stream=stream,  # type: ignore[call-overload]
        level=logging.INFO,
        format="%(asctime)s %(levelname)-7s %(name)s: %(message)s",
        force=True,
    )
    quieten_quic()


def quieten_quic() -> None:
    """The library warns whenever a peer closes a connection, which is how links end."""
    logging.getLogger("quic").setLevel(logging.ERROR)


def stop_on_signals(stop: Callable[[], None]) -> None:
    """Have SIGTERM stop the node in order; and if that takes too long, end it with a traceback that tells where."""

    def told() -> None:
        faulthandler.dump_traceback_later(_STOP_S, exit=True)
        stop()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told)


async def serve(connection: socket.socket, *, link: Callable[[socket.socket], LauncherLink] = LauncherLink) -> int:
    """Run the node to its end, whatever that is; `link` makes its side of the connection."""
    launcher = link(connection)
    stop_on_signals(launcher.stop)
    try:
        await _run(launcher)
    except asyncio.CancelledError:  # stopped before it was told what to do
        return _OK
    except Exception as error:  # noqa: BLE001 - whatever it is, the launcher records it
        code, text = explain(first_of(error))
        launcher.report(say.Failed(error=type(error).__name__, text=text))
        return code
    finally:
        launcher.close()
    return _OK


async def _run(launcher: LauncherLink) -> None:
    configure = await launcher.configured
    config = launcher.settle(FullNodeConfig.from_json(configure.config.encode()))
    place = Place(
        checkpoint=Path(configure.checkpoint) if configure.checkpoint else None,
        resumes=configure.resumes,
        first_round=configure.first_round,
        trace=TraceFolder(path=Path(configure.trace), most=configure.trace_crossings) if configure.trace else None,
    )
    await NodeRuntime(config, surroundings=launcher, place=place).run()


def explain(error: BaseException) -> tuple[int, str]:
    """Log why a node ends; return its exit code and one sentence."""
    if isinstance(error, UnlinkableError):
        _LOG.error("%s", error)
        return (_CONFIG if isinstance(error, ConfigError) else _FAILED), str(error)[:_TEXT_MAX]
    _LOG.error("a bug", exc_info=error)
    return _BUG, f"a bug: {type(error).__name__}: {error}"[:_TEXT_MAX]
