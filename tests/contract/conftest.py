"""Tests run side by side, so each computes on one core, as learners do. And the engine for the world of containers."""

import os
from collections.abc import Iterator

import pytest
import torch

from tests.engines import an_engine, why_there_is_none
from unlinkabledfl.experiment.backends.container.blueprint import default_image
from unlinkabledfl.experiment.backends.container.engine import Engine
from unlinkabledfl.experiment.backends.container.images import import_host_root

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """An engine that has the root of this host; DOCKER_HOST says where it listens."""
    if (reason := why_there_is_none()) is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"containers are to be tested here: {reason}")
        pytest.skip(reason)
    with an_engine() as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", address)
        found = Engine.connect()
        import_host_root(found, default_image("host"))
        yield found
        found.close()
