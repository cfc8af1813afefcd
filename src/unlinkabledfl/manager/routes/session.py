"""`/api/health`, and how a browser comes in."""

from fastapi import APIRouter, Response
from starlette.exceptions import HTTPException

import unlinkabledfl
from unlinkabledfl.manager.context import Here
from unlinkabledfl.manager.documents import Health, Login
from unlinkabledfl.manager.gate import cookie_value, is_token
from unlinkabledfl.manager.problems import problems

__all__ = ["router"]

router = APIRouter(prefix="/api", tags=["session"])


@router.get("/health")
def get_health() -> Health:
    """Say that the manager is there. Needs no token."""
    return Health(version=unlinkabledfl.__version__)


@router.post("/session", status_code=204, responses=problems(400, 401, 413, 422))
def log_in(login: Login, context: Here, response: Response) -> None:
    """Exchange the token for a cookie, which a browser then sends by itself. Needs no token but this."""
    settings = context.settings
    if not is_token(settings, login.token):
        raise HTTPException(401, "this is not the token that was printed when the manager started")
    response.set_cookie(
        settings.cookie_name,
        cookie_value(settings.token),
        path="/api",
        httponly=True,
        samesite="strict",
    )


@router.delete("/session", status_code=204)
def log_out(context: Here, response: Response) -> None:
    """Take the cookie back."""
    response.delete_cookie(context.settings.cookie_name, path="/api", httponly=True, samesite="strict")
