"""The application: routes, the gate around them, and what lives as long as they do."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
from fastapi import Depends, FastAPI

import unlinkabledfl
from unlinkabledfl.manager.context import Context, no_unknown_query
from unlinkabledfl.manager.expecting import Expectations
from unlinkabledfl.manager.following import Followers
from unlinkabledfl.manager.gate import Gate
from unlinkabledfl.manager.launching import Launcher, ProcessLauncher
from unlinkabledfl.manager.problems import add_handlers
from unlinkabledfl.manager.routes import live, results, runs, scenarios, session
from unlinkabledfl.manager.routes.page import add_page
from unlinkabledfl.manager.settings import Settings
from unlinkabledfl.manager.store import RunStore

__all__ = ["create_app"]

_REAP_EVERY_S: Final = 1.0


def create_app(settings: Settings, *, launcher: Launcher | None = None) -> FastAPI:
    """Return the application of one manager. `launcher` is how runs are begun, by default as processes here."""
    store = RunStore(settings.runs, launcher=launcher or ProcessLauncher(), running_max=settings.running_max)

    @asynccontextmanager
    async def alive(_app: FastAPI) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_reap, store)
            yield
            tasks.cancel_scope.cancel()
        store.close()

    app = FastAPI(
        title="unlinkabledfl manager",
        version=unlinkabledfl.__version__,
        description="Configure, check, launch, watch and compare experiments. Send the token that was printed at the "
        "start as `Authorization: Bearer`.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=alive,
        dependencies=[Depends(no_unknown_query)],
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.context = Context(
        settings=settings, store=store, followers=Followers(), expectations=Expectations(settings)
    )
    add_handlers(app)
    for part in (session, scenarios, runs, live, results):
        app.include_router(part.router)
    add_page(app, settings.page)
    app.add_middleware(Gate, settings=settings)
    _describe(app)
    return app


async def _reap(store: RunStore) -> None:
    while True:
        await anyio.sleep(_REAP_EVERY_S)
        await anyio.to_thread.run_sync(store.reap)


def _describe(app: FastAPI) -> None:
    """Add to the schema what the routes do not know."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = plain()
            _describe_token(schema)
        return plain()

    app.openapi = described  # type: ignore[method-assign]


def _describe_token(schema: dict[str, Any]) -> None:
    """All but the open paths take the token: the gate asks for it, and not the routes."""
    schema.setdefault("components", {})["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for operations in schema["paths"].values():
        for operation in operations.values():
            operation["security"] = [{"token": []}] if "401" in operation["responses"] else []
