"""What the routes of one manager share."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, cast

from fastapi import Depends, Path, Request
from starlette.exceptions import HTTPException

from unlinkabledfl.manager.store import RUN_ID, RunStore, StoredRun

if TYPE_CHECKING:
    from unlinkabledfl.manager.expecting import Expectations
    from unlinkabledfl.manager.following import Followers
    from unlinkabledfl.manager.settings import Settings

__all__ = ["Context", "Here", "RunId", "Stored", "no_unknown_query"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One manager."""

    settings: "Settings"
    store: RunStore
    followers: "Followers"
    expectations: "Expectations"


def _context(request: Request) -> Context:
    return cast("Context", request.app.state.context)


def no_unknown_query(request: Request) -> None:
    """Refuse a parameter that no route reads: a misspelt filter must not look like one that found nothing."""
    route = request.scope.get("route")
    known = {each.alias for each in route.dependant.query_params} if route is not None else set()
    unknown = sorted(set(request.query_params) - known)
    if unknown:
        takes = ", ".join(sorted(known)) or "no parameters"
        raise HTTPException(422, f"{unknown[0][:64]}: no such parameter; it takes {takes}")


Here = Annotated[Context, Depends(_context)]
RunId = Annotated[str, Path(pattern=RUN_ID, max_length=100, description="A run's id: the name of its directory.")]


def _stored(run: RunId, context: Here) -> StoredRun:
    return context.store.get(run)


Stored = Annotated[StoredRun, Depends(_stored)]
