"""A manager to talk to, with a folder of its own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.unit.manager.launchers import NoLauncher
from unlinkabledfl.manager import Settings, create_app
from unlinkabledfl.manager.launching import Launcher

TOKEN = "the-token-of-the-tests"

Manager = Callable[..., TestClient]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def manager(folder: Path) -> Iterator[Manager]:
    """Make a client of a manager: with its token, unless asked without."""
    with ExitStack() as stack:

        def make(
            launcher: Launcher | None = None,
            *,
            token: str | None = TOKEN,
            address: str = "http://localhost:8765",
            **more: object,
        ) -> TestClient:
            settings = Settings(runs=folder, token=TOKEN, **more)  # type: ignore[arg-type]
            app = create_app(settings, launcher=launcher or NoLauncher())
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            return stack.enter_context(TestClient(app, base_url=address, headers=headers))

        yield make


@pytest.fixture
def client(manager: Manager) -> TestClient:
    return manager()
