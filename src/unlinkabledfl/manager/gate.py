"""Who may come in: what every request passes before any route sees it.

    asked --under a host name that is not ours--------> refused
    asked --with a body that is too large-------------> refused
    asked --without token and cookie, where due-------> refused
    asked --for a change, by cookie from elsewhere----> refused
    asked --in any other way--------------------------> admitted

A script sends the token as `Authorization: Bearer`. A browser hands it in once and gets a cookie that its scripts
cannot read and that other sites cannot send. Sites on other ports of this host count as the same site for cookies, so
that a request which changes anything must also name this origin.

Invariant: a token is compared in constant time, and stands in no address and so in no log. Every answer carries the
headers that keep a page from running, framing or leaking anything of others.
"""

import hmac
import json
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers, MutableHeaders

from unlinkabledfl.manager.settings import Settings

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Gate", "cookie_value", "is_token"]

OPEN_PATHS: Final = frozenset({"/api/health", "/api/session", "/api/openapi.json"})
"""Reached without a token: they tell nothing, or are where the token is handed in."""

_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
_HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": _PAGE_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "SAMEORIGIN",
}


def cookie_value(token: str) -> str:
    """Return what a browser gets instead of the token: it opens the same manager, and does not tell the token."""
    return hmac.new(token.encode(), b"unlinkabledfl manager cookie", sha256).hexdigest()


def is_token(settings: Settings, given: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given.encode(), settings.token.encode())


class Gate:
    """The middleware around the routes."""

    def __init__(self, app: "ASGIApp", *, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._cookie = cookie_value(settings.token)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Let one request in, or answer why not."""
        if scope["type"] != "http":
            # Life cycle only: there are no web sockets, and a server offers none without a route.
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        body = _BoundedBody(receive, most_bytes=self._settings.body_max_bytes)
        answered = False

        async def answer(status: int, problem: str) -> None:
            nonlocal answered
            answered = True
            for message in _answer(status, problem):
                await send(_with_headers(message, scope["path"]))

        async def sent(message: "Message") -> None:
            if body.is_too_large and not answered:
                # Whatever the routes made of a body that was cut off.
                await answer(413, self._too_large())
            if not answered:
                await send(_with_headers(message, scope["path"]))

        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await answer(*refusal)
            return
        await self._app(scope, body.receive, sent)

    def _refusal(self, scope: "Scope", headers: Headers) -> tuple[int, str] | None:
        if _host_name(headers.get("host", "")) not in self._settings.allowed_names:
            return 421, "this manager is not asked for under that host name; --name allows one"
        length = headers.get("content-length", "0")
        if not length.isdigit() or len(length) > 15 or int(length) > self._settings.body_max_bytes:  # noqa: PLR2004
            return 413, self._too_large()
        if not _is_guarded(scope["path"]):
            return None
        if self._has_token(headers):
            return None
        if not self._has_cookie(headers):
            return 401, "the token is missing or wrong; it was printed when the manager started"
        if scope["method"] not in _SAFE_METHODS and not _is_same_origin(headers):
            return 403, "only the manager's own page may change anything with its cookie"
        return None

    def _has_token(self, headers: Headers) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and is_token(self._settings, given.strip())

    def _has_cookie(self, headers: Headers) -> bool:
        for part in headers.get("cookie", "").split(";"):
            name, _, value = part.strip().partition("=")
            if name == self._settings.cookie_name and hmac.compare_digest(value.encode(), self._cookie.encode()):
                return True
        return False

    def _too_large(self) -> str:
        return f"a request may have at most {self._settings.body_max_bytes:,} bytes"


def _is_guarded(path: str) -> bool:
    return path.startswith("/api") and path not in OPEN_PATHS


def _is_same_origin(headers: Headers) -> bool:
    origin = headers.get("origin", "")
    return origin.partition("://")[2].lower() == headers.get("host", "").lower() and bool(origin)


def _host_name(host: str) -> str:
    """Return the name without the port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if ":" in host else host.lower()


class _BoundedBody:
    """The body of a request, of which no more is read than may be."""

    def __init__(self, receive: "Receive", *, most_bytes: int) -> None:
        self._receive = receive
        self._left_bytes = most_bytes
        self.is_too_large = False

    async def receive(self) -> "Message":
        message = await self._receive()
        self._left_bytes -= len(message.get("body", b""))
        if self._left_bytes < 0:
            self.is_too_large = True
            return {"type": "http.disconnect"}
        return message


def _with_headers(message: "Message", path: str) -> "Message":
    if message["type"] == "http.response.start":
        headers = MutableHeaders(scope=message)
        for name, value in _HEADERS.items():
            headers.setdefault(name, value)
        if path.startswith("/api/"):
            headers.setdefault("cache-control", "no-store")
    return message


def _answer(status: int, problem: str) -> "list[Message]":
    body = json.dumps({"problem": problem, "mistakes": []}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:  # noqa: PLR2004
        headers.append((b"www-authenticate", b"Bearer"))
    return [
        {"type": "http.response.start", "status": status, "headers": headers},
        {"type": "http.response.body", "body": body},
    ]
