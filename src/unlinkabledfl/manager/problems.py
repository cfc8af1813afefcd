"""What goes wrong, as answers in words: the only place where an error becomes a status code."""

import json
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from unlinkabledfl.errors import ConfigError, DatasetError, RunError
from unlinkabledfl.experiment.scenario import Scenario
from unlinkabledfl.experiment.scenario.mistakes import explain_all
from unlinkabledfl.manager.documents import Mistake, Problem
from unlinkabledfl.manager.store import ConflictError, DiskError, NoSuchRunError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fastapi import FastAPI, Request

__all__ = ["RefusedError", "add_handlers", "mistake_of", "problems", "problems_beside_a_file", "scenario_of"]

_SHOWN = 200
_WRONG_METHOD = 405


class RefusedError(Exception):
    """Keys of a scenario that do not exist, or values that do not fit: all of them."""

    def __init__(self, mistakes: "Sequence[ConfigError]") -> None:
        super().__init__("; ".join(str(mistake) for mistake in mistakes))
        self.mistakes = tuple(mistakes)


def scenario_of(tables: "Mapping[str, Any]") -> Scenario:
    """Return the scenario; RefusedError where keys do not fit, ConfigError where they do not go together."""
    try:
        return Scenario.model_validate(dict(tables))
    except ValidationError as error:
        raise RefusedError(explain_all(error)) from None


def mistake_of(error: ConfigError) -> Mistake:
    """Return it as a form shows it."""
    return Mistake(key=error.key, got=_shown(error.got), takes=error.takes, hint=error.hint, text=str(error))


def problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Describe refusals to the API's schema."""
    return {code: {"model": Problem, "description": _MEANINGS[code]} for code in codes}


def problems_beside_a_file(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Describe them where what is not refused is no JSON: FastAPI would take them for files too."""
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {code: {"content": content, "description": _MEANINGS[code]} for code in codes}


_MEANINGS = {
    400: "The body cannot be read.",
    401: "The token is missing or wrong.",
    403: "The cookie of the page was sent from elsewhere.",
    404: "There is no such run, or it has no such thing.",
    409: "The state of things does not allow it, or the scenario cannot work.",
    413: "The request is too large.",
    422: "The request does not fit the schema.",
    507: "It could not be written: the disk is full, or not ours.",
}


def add_handlers(app: "FastAPI") -> None:
    """Answer errors in words."""
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(NoSuchRunError, _no_such_run)
    app.add_exception_handler(ConflictError, _conflict)
    app.add_exception_handler(RefusedError, _refused)
    app.add_exception_handler(ConfigError, _config)
    app.add_exception_handler(DatasetError, _conflict)
    app.add_exception_handler(RunError, _conflict)
    app.add_exception_handler(DiskError, _disk)


def _answer(status: int, problem: str, mistakes: "Sequence[Mistake]" = ()) -> JSONResponse:
    return JSONResponse(Problem(problem=problem, mistakes=tuple(mistakes)).model_dump(), status_code=status)


async def _invalid(_request: "Request", error: Exception) -> JSONResponse:
    if not isinstance(error, RequestValidationError):
        raise error
    mistakes = []
    for found in error.errors():
        place = ".".join(str(part) for part in found["loc"] if part not in {"body", "query", "path"})
        shown = _shown(found.get("input"))
        said = str(found["msg"])
        mistakes.append(
            Mistake(key=place or "body", got=shown, takes=said, hint=None, text=f"{place or 'the body'}: {said}")
        )
    return _answer(422, "; ".join(mistake.text for mistake in mistakes)[:2_000], mistakes)


async def _http(request: "Request", error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    answer = _answer(error.status_code, str(error.detail))
    answer.headers.update(error.headers or {})
    if error.status_code == _WRONG_METHOD:
        answer.headers["allow"] = ", ".join(_methods(request))
    return answer


def _methods(request: "Request") -> list[str]:
    """Return all methods of this path: each route knows its own only."""
    allowed: set[str] = set()
    for route in request.app.routes:
        if route.matches(request.scope)[0] is not Match.NONE:
            allowed |= getattr(route, "methods", None) or set()
    return sorted(allowed)


async def _no_such_run(_request: "Request", error: Exception) -> JSONResponse:
    return _answer(404, f"there is no run {str(error)[:_SHOWN]}")


async def _conflict(_request: "Request", error: Exception) -> JSONResponse:
    return _answer(409, str(error))


async def _refused(_request: "Request", error: Exception) -> JSONResponse:
    if not isinstance(error, RefusedError):
        raise error
    return _answer(422, str(error)[:2_000], [mistake_of(mistake) for mistake in error.mistakes])


async def _config(_request: "Request", error: Exception) -> JSONResponse:
    if not isinstance(error, ConfigError):
        raise error
    return _answer(409, str(error), [mistake_of(error)])


async def _disk(_request: "Request", error: Exception) -> JSONResponse:
    return _answer(507, str(error))


def _shown(value: object) -> str:
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
