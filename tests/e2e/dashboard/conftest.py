"""A manager of its own and a Chromium for the tests of the dashboard.

Where there is no Chromium they are skipped, unless CI is set: then that is an error, so that a continuous check cannot
pass by not looking.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, sync_playwright

from unlinkabledfl.manager.settings import Settings

TOKEN = "a-token-of-the-tests"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manager:
    """A manager that listens."""

    address: str
    runs: Path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        if os.environ.get("CI"):
            raise RuntimeError("no Chromium is installed, and a continuous check has to have one")
        pytest.skip("no Chromium is installed")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    page = Settings(runs=tmp_path, token=TOKEN).page / "index.html"
    assert page.is_file(), "the dashboard is not built: `make dashboard` does it"
    command = [sys.executable, "-m", "unlinkabledfl.cli", "serve", "--json", "--port", "0", "--token", TOKEN]
    runs = tmp_path / "runs"
    with subprocess.Popen([*command, "--runs", str(runs)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            made = Manager(address=json.loads(process.stdout.readline())["address"], runs=runs)
            yield made
            end_runs(made)
        finally:
            process.terminate()
            process.wait()


def end_runs(manager: Manager) -> None:
    """Runs outlive their manager, so those of a test that failed are ended first."""
    headers = {"authorization": f"Bearer {TOKEN}"}
    with httpx2.Client(base_url=f"{manager.address}/api", headers=headers, trust_env=False) as client:
        for run in client.get("/runs", params={"status": "running"}).json()["runs"]:
            client.post(f"/runs/{run['id']}/stop", json={"force": True})
