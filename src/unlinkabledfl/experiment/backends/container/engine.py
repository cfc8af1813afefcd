"""An engine that runs containers, over the Docker API as Docker and Podman speak it. Nothing else here knows the SDK.

Calls wait for the engine: whoever has an event loop makes them in a thread; they may be made in several at once.

Invariant: whatever the engine, the network or the SDK raises becomes one sentence: a ConfigError where the operator can
help it, otherwise a RunError. What does not exist is no error where it is to be taken away.
"""

import io
import json
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from unlinkabledfl.errors import ConfigError, RunError
from unlinkabledfl.experiment.backends.container.blueprint import Blueprint

if TYPE_CHECKING:
    from docker import DockerClient

__all__ = ["Ending", "Engine", "Found", "last_words"]

_KEY: Final = "container.engine"
_DEFAULT: Final = "unix:///var/run/docker.sock"
_UNIX: Final = "unix://"
_ANSWER_S: Final = 120
_LOG_LINES: Final = 20_000
_SENTENCE_MAX: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A container or a network that is there."""

    identity: str
    name: str
    labels: Mapping[str, str]
    is_over: bool = False
    """Whether it is a container that ran and runs no longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a container's process ended."""

    code: int
    out_of_memory: bool
    error: str


class Engine:
    """One engine."""

    def __init__(self, client: "DockerClient", *, address: str) -> None:
        self._client = client
        self.address = address

    @classmethod
    def connect(cls, address: str = "") -> Self:
        """Find the engine: where told, else where DOCKER_HOST says, else where Docker listens."""
        try:
            import docker  # noqa: PLC0415 - an optional extra: this is where its absence is told
        except ImportError:
            hint = "pip install 'unlinkabledfl[containers]'"
            takes = "container only together with the Docker SDK for Python"
            raise ConfigError(key="run.backend", got="container", takes=takes, hint=hint) from None
        address = address or os.environ.get("DOCKER_HOST", "") or _DEFAULT
        _knock(address)
        try:
            client = docker.DockerClient(base_url=address, version="auto", timeout=_ANSWER_S)
        except (docker.errors.DockerException, ValueError) as error:
            raise _unreachable(address, _one_sentence(str(error))) from error
        return cls(client, address=address)

    def close(self) -> None:
        """Close the connections to it. What it runs goes on."""
        self._client.close()

    # -- images -------------------------------------------------------------------------------------------------

    def image_labels(self, name: str) -> Mapping[str, str] | None:
        """Return the labels of an image; none if it is not there."""
        from docker.errors import ImageNotFound  # noqa: PLC0415 - see connect

        with _said(f"looking for the image {name}"):
            try:
                return dict(self._client.images.get(name).labels or {})
            except ImageNotFound:
                return None

    def import_image(self, archive: bytes, *, name: str, labels: Mapping[str, str]) -> None:
        """Make an image of one layer from a tar archive. No registry is asked for anything."""
        repository, _, tag = name.rpartition(":")
        changes = [f"LABEL {key}={json.dumps(value)}" for key, value in labels.items()]
        with _said(f"importing the image {name}"):
            answer = self._client.api.import_image_from_data(archive, changes=changes)
            # Podman does not take a name here, so both are told it afterwards.
            identity = json.loads(answer.strip().splitlines()[-1])["status"]
            self._client.images.get(identity).tag(repository, tag)

    def build_image(
        self, context: bytes, *, name: str, arguments: Mapping[str, str], labels: Mapping[str, str]
    ) -> Iterator[str]:
        """Build an image from a tar archive with a Containerfile, and say line by line what happens."""
        with _said(f"building the image {name}"):
            for part in self._client.api.build(
                fileobj=io.BytesIO(context),
                custom_context=True,
                dockerfile="Containerfile",
                tag=name,
                buildargs=dict(arguments),
                labels=dict(labels),
                rm=True,
                forcerm=True,
                decode=True,
            ):
                if "error" in part:
                    raise RunError(f"building the image {name} failed: {_one_sentence(part['error'])}")
                if line := part.get("stream", "").rstrip():
                    yield line

    # -- networks -----------------------------------------------------------------------------------------------

    def create_network(self, name: str, *, labels: Mapping[str, str]) -> None:
        """Make a network of its own that leads nowhere else; RunError if there is one of this name."""
        with _said(f"making the network {name}"):
            # Docker makes a second network of the same name if it is asked to; Podman refuses.
            if any(network.name == name for network in self._client.networks.list(names=[name])):
                raise RunError(f"there is a network of the name {name} already; `unlinkabledfl containers clean`")
            self._client.networks.create(name, driver="bridge", internal=True, labels=dict(labels))

    def networks(self, *, label: str) -> list[Found]:
        """Return the networks that carry this label."""
        with _said("listing networks"):
            found = self._client.networks.list(filters={"label": label})
            return [
                Found(identity=network.id, name=network.name, labels=network.attrs.get("Labels") or {})
                for network in found
            ]

    def remove_network(self, identity: str) -> None:
        """Take a network away."""
        from docker.errors import NotFound  # noqa: PLC0415 - see connect

        with _said("taking a network away"), suppress(NotFound):
            self._client.api.remove_network(identity)

    # -- containers ---------------------------------------------------------------------------------------------

    def start(self, blueprint: Blueprint) -> str:
        """Make a container and start it; return its identity."""
        with _said(f"starting the container {blueprint.name}"):
            container = self._client.containers.create(**_arguments(blueprint))
            container.start()
            return str(container.id)

    def containers(self, *, label: str) -> list[Found]:
        """Return the containers that carry this label, whether they run or not."""
        with _said("listing containers"):
            return [
                Found(
                    identity=row["Id"],
                    name=row["Names"][0].removeprefix("/"),
                    labels=row.get("Labels") or {},
                    is_over=row["State"] in {"exited", "dead", "stopped"},
                )
                for row in self._client.api.containers(all=True, filters={"label": label})
            ]

    def ending(self, identity: str) -> Ending:
        """Say how a container ended that is over."""
        with _said("asking how a container ended"):
            state = self._client.api.inspect_container(identity)["State"]
        return Ending(
            code=int(state.get("ExitCode", 0)),
            out_of_memory=bool(state.get("OOMKilled")),
            error=str(state.get("Error") or ""),
        )

    def log(self, identity: str) -> str:
        """Return what a container has printed, the last of it if it is much."""
        with _said("reading a container's log"):
            text: bytes = self._client.api.logs(identity, stdout=True, stderr=True, tail=_LOG_LINES)
        return text.decode("utf-8", "replace")

    def kill(self, identity: str) -> None:
        """End a container by force; nothing happens if it has ended."""
        from docker.errors import APIError  # noqa: PLC0415 - see connect

        # Not found, or not running: what was wanted is the case.
        with _said("ending a container"), suppress(APIError):
            self._client.api.kill(identity)

    def remove(self, identity: str) -> None:
        """Take a container away, by force if it runs."""
        from docker.errors import NotFound  # noqa: PLC0415 - see connect

        with _said("taking a container away"), suppress(NotFound):
            self._client.api.remove_container(identity, force=True, v=True)


def _arguments(blueprint: Blueprint) -> dict[str, Any]:
    """Return a blueprint as the SDK takes it. What is safe is not up to the blueprint: it stands here, for all."""
    from docker.types import LogConfig, Mount  # noqa: PLC0415 - see connect

    return {
        "image": blueprint.image,
        "name": blueprint.name,
        "hostname": blueprint.hostname,
        "network": blueprint.network,
        "entrypoint": [],
        "command": list(blueprint.command),
        "environment": dict(blueprint.environment),
        "labels": dict(blueprint.labels),
        "working_dir": "/",
        "user": f"{blueprint.user_id}:{blueprint.group_id}",
        "mounts": [
            Mount(target=mount.target, source=str(mount.source), type="bind", read_only=mount.read_only)
            for mount in blueprint.mounts
        ],
        "read_only": True,
        "tmpfs": {"/tmp": f"size={blueprint.tmp_mib}m,mode=1777,nosuid,nodev,noexec"},  # noqa: S108 - its own
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "pids_limit": blueprint.pids,
        "mem_limit": f"{blueprint.memory_mib}m",
        "memswap_limit": f"{blueprint.memory_mib}m",
        "nano_cpus": round(blueprint.cpus * 1e9) or None,
        "cpuset_cpus": ",".join(str(core) for core in blueprint.cores),
        "log_config": LogConfig(type="json-file", config={"max-size": "10m"}),
        "restart_policy": {"Name": "no"},
        "init": False,
    }


def _knock(address: str) -> None:
    """Tell what is wrong with a socket of this host in its own words, which the SDK buries in others."""
    if not address.startswith(_UNIX):
        return
    with socket.socket(socket.AF_UNIX) as end:
        end.settimeout(_ANSWER_S)
        try:
            end.connect(address.removeprefix(_UNIX))
        except PermissionError:
            hint = "join the group that owns the socket, or name one of your own in container.engine"
            takes = "an engine that you may use: this socket is closed to you"
            raise ConfigError(key=_KEY, got=address, takes=takes, hint=hint) from None
        except OSError as error:
            raise _unreachable(address, error.strerror or str(error)) from None


def _unreachable(address: str, reason: str) -> ConfigError:
    hint = f"{reason}; start Docker or `podman system service`, or say where it listens by DOCKER_HOST"
    return ConfigError(key=_KEY, got=address, takes="the address of a Docker-compatible engine", hint=hint)


@contextmanager
def _said(doing: str) -> Iterator[None]:
    """Turn what the SDK raises into one sentence that says what was being done."""
    from docker.errors import APIError, DockerException  # noqa: PLC0415 - see connect
    from requests import RequestException  # noqa: PLC0415 - the SDK's own transport

    try:
        yield
    except APIError as error:
        raise RunError(f"{doing}: the engine says {_one_sentence(error.explanation or str(error))!r}") from error
    except (DockerException, RequestException, OSError) as error:
        raise RunError(f"{doing}: the engine does not answer: {_one_sentence(str(error))}") from error


def _one_sentence(text: str) -> str:
    return " ".join(text.split())[:_SENTENCE_MAX].rstrip(".")


def last_words(log: str) -> str:
    """Return the last line of a log that says something."""
    lines: Sequence[str] = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1][:_SENTENCE_MAX] if lines else ""
