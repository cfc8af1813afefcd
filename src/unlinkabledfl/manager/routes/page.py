"""The dashboard: the files that Vite built, or a sentence that says how to build them."""

from typing import TYPE_CHECKING, Final

from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.routing import Match, Mount
from starlette.staticfiles import StaticFiles

if TYPE_CHECKING:
    from pathlib import Path

    from fastapi import FastAPI
    from starlette.types import Scope

__all__ = ["add_page"]

_MISSING: Final = """<!doctype html><html lang="en"><meta charset="utf-8"><title>unlinkabledfl</title>
<h1>The dashboard is not built</h1>
<p>The manager runs, and its API is at <a href="/api/openapi.json">/api/openapi.json</a>. This installation is a source
checkout whose page was not built: run <code>make dashboard</code> in it and load this page again.</p></html>
"""


class _Page(Mount):
    """Files at the root, which leave the API's paths alone: a wrong method there is no file that is missing."""

    def matches(self, scope: "Scope") -> "tuple[Match, Scope]":
        path = scope.get("path", "")
        return (Match.NONE, {}) if path == "/api" or path.startswith("/api/") else super().matches(scope)


def add_page(app: "FastAPI", folder: "Path") -> None:
    """Serve what lies in the folder."""
    if (folder / "index.html").is_file():
        app.router.routes.append(_Page("/", StaticFiles(directory=folder, html=True), name="page"))
        return

    @app.get("/", include_in_schema=False)
    def say_that_there_is_none() -> HTMLResponse:
        return HTMLResponse(_MISSING)

    @app.get("/index.html", include_in_schema=False)
    def lead_there() -> RedirectResponse:
        return RedirectResponse("/")
