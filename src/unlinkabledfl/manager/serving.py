"""Listen, say where, and serve until told to stop. Runs that were begun go on."""

import json
import signal
import socket
from contextlib import suppress
from dataclasses import replace
from typing import IO
from urllib.parse import quote

import uvicorn

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.manager.app import create_app
from unlinkabledfl.manager.settings import Settings, is_loopback

__all__ = ["serve"]

_CLOSE_WITHIN_S = 1
_BACKLOG = 128


def serve(settings: Settings, *, stdout: IO[str], as_json: bool = False) -> None:
    """Serve one manager. It listens before it says where, so that whoever reads that may come at once."""
    with _listen(settings) as listener:
        settings = replace(settings, port=listener.getsockname()[1])
        app = create_app(settings)
        _announce(settings, stdout, as_json=as_json)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_CLOSE_WITHIN_S,
            ws="none",
            lifespan="on",
        )
        # Once all is closed, uvicorn raises the signal again that ended it.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            with suppress(KeyboardInterrupt):
                uvicorn.Server(config).run(sockets=[listener])
        finally:
            signal.signal(signal.SIGTERM, before)


def _listen(settings: Settings) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise ConfigError(
            key="--host", got=settings.host, takes="an address of this machine", hint=str(error)
        ) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        hint = "another manager may be there already; --port 0 takes one that is free"
        raise ConfigError(
            key="--port", got=settings.port, takes=f"a free port of {settings.host}: {error.strerror}", hint=hint
        ) from error
    listener.set_inheritable(False)
    return listener


def _announce(settings: Settings, stdout: IO[str], *, as_json: bool) -> None:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    shown = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)  # noqa: S104 - what to type in a browser
    address = f"http://{shown}:{settings.port}"
    # What follows the number sign stays in the browser: it is sent to nobody, and so stands in no log.
    page = f"{address}/#token={quote(settings.token)}"
    if as_json:
        stdout.write(json.dumps({"address": address, "token": settings.token, "page": page}) + "\n")
    else:
        stdout.write(f"dashboard: {page}\ntoken: {settings.token}\nruns: {settings.runs.absolute()}\n")
        if not (settings.page / "index.html").is_file():
            stdout.write("The dashboard of this checkout is not built, only the API is there: run `make dashboard`.\n")
        stdout.write("Ctrl-C ends it; runs go on.\n")
        if not is_loopback(settings.host):
            stdout.write("Others can reach this address, and what is said is not encrypted: put TLS in front of it.\n")
    stdout.flush()
