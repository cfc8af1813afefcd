"""Containers as a backend: the launcher of real nodes, over an engine of this host."""

import secrets
from dataclasses import replace
from typing import Final

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.backends.container.blueprint import MODEL, NODE, Outfit, default_image
from unlinkabledfl.experiment.backends.container.engine import Engine
from unlinkabledfl.experiment.backends.container.images import CODE_LABEL, code_digest
from unlinkabledfl.experiment.backends.container.keeper import Keeper
from unlinkabledfl.experiment.backends.container.leftovers import labels_of, remove_leftovers
from unlinkabledfl.experiment.backends.process.backend import launcher_of, lead, node_launches
from unlinkabledfl.experiment.backends.process.hosts import NodeLaunch
from unlinkabledfl.experiment.backends.protocol import Job
from unlinkabledfl.experiment.planning import Hosting, plan_experiment
from unlinkabledfl.experiment.records import EventKind
from unlinkabledfl.experiment.scenario import Scenario
from unlinkabledfl.transport.certificates import LinkIdentity

__all__ = ["ContainerBackend"]

_PORT: Final = 4_433
_ANY: Final = "0.0.0.0"  # noqa: S104 - a node binds the address that it then finds to be its own
_RUN_BYTES: Final = 4


class ContainerBackend:
    """Real nodes, each in a container of its own. `run_tag` tells this run's containers from others."""

    def __init__(self, *, run_tag: str | None = None) -> None:
        self._run_tag = run_tag or secrets.token_hex(_RUN_BYTES)

    def run(self, job: Job) -> None:
        """Run all rounds, and return when the last container has been taken away."""
        scenario = job.scenario
        labels = labels_of(self._run_tag, job.directory.path)
        outfit = Outfit(scenario, run=self._run_tag, labels=labels)
        engine = Engine.connect(scenario.container.engine)
        try:
            _check_image(engine, outfit, job)
            for name in remove_leftovers(engine, own=labels):
                text = f"took away {name}, which a launcher that was killed had left"
                job.recorder.event(time_s=0.0, node=None, kind=EventKind.NOTE, text=text)
            plan = plan_experiment(scenario, hosting=_hosting(scenario))
            launches = node_launches(plan, job)
            keeper = Keeper(launches, engine=engine, outfit=outfit, places=job.directory.path / "containers")
            launcher = launcher_of(plan, job, launches=[_inside(launch) for launch in launches], hosts=keeper)
            lead(launcher, job)
        finally:
            engine.close()


def _check_image(engine: Engine, outfit: Outfit, job: Job) -> None:
    root = job.scenario.container.root
    labels = engine.image_labels(outfit.image)
    if labels is None:
        hint = f"`unlinkabledfl containers build --root {root}` makes {default_image(root)}"
        takes = "an image that the engine has"
        raise ConfigError(key="container.image", got=outfit.image, takes=takes, hint=hint)
    if root == "image" and labels.get(CODE_LABEL) != code_digest():
        text = f"the image {outfit.image} holds another unlinkabledfl than the one that launches it"
        job.recorder.event(time_s=0.0, node=None, kind=EventKind.NOTE, text=text)


def _hosting(scenario: Scenario) -> Hosting:
    """Every node has a network address of its own, so all may have the same port."""
    nodes = range(scenario.topology.nodes)
    return Hosting(
        identities=[LinkIdentity.generate() for _ in nodes],
        listen=[(_ANY, _PORT) for _ in nodes],
        addresses=[() for _ in nodes],
    )


def _inside(launch: NodeLaunch) -> NodeLaunch:
    """The same, as it looks from inside the container."""
    here = {"checkpoint": f"{NODE}/{MODEL}", "trace": NODE if launch.configure.trace else ""}
    return replace(launch, configure=launch.configure.model_copy(update=here))
