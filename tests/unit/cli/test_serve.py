"""`unlinkabledfl serve` from the outside: where it listens, what it prints, how it ends."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from unlinkabledfl.cli import main
from unlinkabledfl.cli.exit_codes import ExitCode


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_is_when_it_is_there_and_ends_in_order(tmp_path: Path, number: signal.Signals) -> None:
    runs = tmp_path / "runs"
    command = [sys.executable, "-m", "unlinkabledfl.cli", "serve", "--json", "--port=0", f"--runs={runs}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        with urllib.request.urlopen(f"{said['address']}/api/health") as answer:
            assert json.load(answer)["status"] == "ok"

        process.send_signal(number)
        _, complaints = process.communicate(timeout=60)

    assert (process.returncode, complaints) == (ExitCode.OK, "")
    assert said["page"] == f"{said['address']}/#token={said['token']}"
    assert said["address"].startswith("http://127.0.0.1:")
    assert len(said["token"]) >= 24


def test_a_token_of_the_environment_counts_and_is_not_handed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UNLINKABLEDFL_TOKEN", "two words")

    code = main(["serve", "--port=0", f"--runs={tmp_path / 'runs'}"])

    assert code == ExitCode.CONFIG
    assert "--token: got '***', takes 1 to 512 visible ASCII characters" in capsys.readouterr().err
    assert "UNLINKABLEDFL_TOKEN" not in os.environ


def test_a_port_that_is_taken_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code = main(["serve", f"--port={port}", f"--runs={tmp_path}"])

    assert code == ExitCode.CONFIG
    assert f"--port: got {port}, takes a free port of 127.0.0.1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--host=0.0.0.0"], "unless a token is given"),
        (["--host=0.0.0.0", "--token=short"], "unless --token has at least 24 characters"),
        (["--token="], "visible ASCII characters"),
        (["--port=70000"], "a whole number from 0 to 65535"),
        (["--max-runs=0"], "a whole number from 1"),
        (["--host=no such host", f"--token={'x' * 24}"], "an address of this machine"),
    ],
)
def test_arguments_that_cannot_work_are_a_sentence(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("UNLINKABLEDFL_TOKEN", raising=False)

    code = main(["serve", "--port=0", f"--runs={tmp_path / 'runs'}", *arguments])

    assert code == ExitCode.CONFIG
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
