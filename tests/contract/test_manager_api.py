"""The manager does what its OpenAPI schema says, whatever is sent to it: schemathesis makes the requests."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from tests.unit.experiment.synthetic_run import write_run
from tests.unit.manager.launchers import NoLauncher
from unlinkabledfl.manager import Settings, create_app

TOKEN = "a-token-for-tests-only"

FOLDER = tempfile.TemporaryDirectory()
RUNS = Path(FOLDER.name)
write_run(RUNS / "there", nodes=8, rounds=2)
schema = schemathesis.openapi.from_asgi(
    "/api/openapi.json",
    create_app(Settings(runs=RUNS, token=TOKEN, names=("testserver",), running_max=1), launcher=NoLauncher()),
)
FEW = settings(max_examples=1, suppress_health_check=list(HealthCheck), deadline=None)
MANY = settings(max_examples=30, suppress_health_check=list(HealthCheck), deadline=None)


def check(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate(headers={"Authorization": f"Bearer {TOKEN}"})


@pytest.mark.slow
@schema.parametrize()
@MANY
def test_the_manager_keeps_its_contract_whatever_is_asked(case: schemathesis.Case[Any]) -> None:
    check(case)


@schema.include(method="GET").parametrize()
@FEW
def test_the_manager_keeps_its_contract(case: schemathesis.Case[Any]) -> None:
    check(case)
