"""All that one node is told: one typed object that travels as JSON, to a process, a container or another machine.

It holds this node's own keys and nobody else's, how to reach its neighbours, what is public about the federation, and
the scenario's settings that concern a node. Where a node runs changes addresses in it, not its shape.

Invariant: `FullNodeConfig.from_json(config.to_json()) == config`. Secrets appear in `to_json` only: `repr`, `str`,
error messages and pydantic's own dumps mask them. A file of it is readable by its owner alone, or it is refused.
"""

import os
import stat
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from nacl.bindings import crypto_sign_seed_keypair
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PrivateAttr,
    SecretStr,
    SerializationInfo,
    ValidationError,
    field_serializer,
    model_validator,
)

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.scenario import Aggregation, Mixnet, Payload
from unlinkabledfl.mixnet.topology import Topology
from unlinkabledfl.sphinx import NodeId
from unlinkabledfl.transport.book import Contact as BookContact
from unlinkabledfl.transport.certificates import LinkIdentity

__all__ = ["Contact", "FullNodeConfig", "Graph", "LearnerConfig", "LinkConfig", "Schedule", "named"]

MAX_BYTES: Final = 32 * 1024 * 1024
"""A graph of ten thousand nodes takes two; nothing that needs more was written by us."""

_REVEAL: Final = {"secrets": True}
_SECRET_NAMES: Final = frozenset({"identity_seed", "private_key"})
_OTHERS: Final = 0o077

Hex32 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Address = Annotated[str, Field(min_length=3, max_length=255)]


class Part(BaseModel):
    """What every part of it has in common."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True)


class Contact(Part):
    """Another node, as this one may dial it."""

    node_id: Hex32
    addresses: tuple[Address, ...] = Field(max_length=4)
    fingerprint: Hex32


class LinkConfig(Part):
    """Where this node listens, as whom, and what it tells others of that."""

    host: str = Field(max_length=255)
    port: int = Field(ge=0, le=65_535)
    addresses: tuple[Address, ...] = Field(max_length=4)
    certificate: str = Field(max_length=4_096, description="DER, in base64.")
    private_key: SecretStr = Field(max_length=4_096, description="PKCS #8, DER, in base64.")
    datagram_bytes: int = Field(ge=1_200, le=16_384)
    allow_loopback: bool = False

    @model_validator(mode="after")
    def check(self) -> Self:
        """Refuse what is no base64."""
        try:
            b64decode(self.certificate, validate=True)
            b64decode(self.private_key.get_secret_value(), validate=True)
        except Base64Error:
            raise ValueError("certificate and key are DER in base64") from None
        return self

    @field_serializer("private_key", when_used="json")
    def _reveal(self, value: SecretStr, info: SerializationInfo) -> str:
        return _revealed(value, info)

    @classmethod
    def of(cls, identity: LinkIdentity, **where: Any) -> Self:  # noqa: ANN401 -- the other fields
        """Return the configuration with this certificate and key."""
        return cls(
            certificate=b64encode(identity.certificate).decode(),
            private_key=SecretStr(b64encode(identity.private_key).decode()),
            **where,
        )

    def identity(self) -> LinkIdentity:
        """Return the certificate and its key."""
        return LinkIdentity(
            certificate=b64decode(self.certificate), private_key=b64decode(self.private_key.get_secret_value())
        )


class Graph(Part):
    """The transport graph by name: what `walk` and `valiant` routes are drawn from."""

    node_ids: tuple[Hex32, ...] = Field(min_length=2, max_length=10_000)
    neighbours: tuple[tuple[int, ...], ...]
    circulant: bool
    _is_good: bool = PrivateAttr(default=False)

    @model_validator(mode="after")
    def check(self) -> Self:
        """Refuse what is no simple undirected graph over these nodes."""
        if self._is_good:
            return self  # pydantic asks again for each configuration that one graph is put into
        nodes = len(self.node_ids)
        sets = [set(near) for near in self.neighbours]
        good = len(sets) == nodes == len(set(self.node_ids)) and all(
            len(near) == len(listed)
            and node not in near
            and all(0 <= far < nodes and node in sets[far] for far in near)
            for node, (near, listed) in enumerate(zip(sets, self.neighbours, strict=True))
        )
        if not good:
            raise ValueError(
                "not a simple graph: one list of neighbours a node, each link in the lists of both its ends"
            )
        self._is_good = True
        return self

    def topology(self) -> Topology:
        """Return the graph itself."""
        return Topology(self.neighbours, is_circulant=self.circulant)


class Schedule(Part):
    """Its rounds: which ones, and how each ends."""

    rounds: int = Field(ge=1, le=100_000)
    first_round: int = Field(default=1, ge=1, le=100_000)
    last_round: int | None = Field(default=None, ge=1, le=100_000)
    deadline_s: float = Field(gt=0, le=86_400)
    evaluate_every: int = Field(default=1, ge=0, le=100_000)


class LearnerConfig(Part):
    """Who makes its learner, and what that is told."""

    factory: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*$", max_length=256)
    settings: dict[str, JsonValue]


class FullNodeConfig(Part):
    """One node's configuration."""

    version: Literal[1] = 1
    run_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=128)
    index: int = Field(ge=0, le=9_999)
    nodes: int = Field(ge=2, le=10_000)
    node_id: Hex32
    identity_seed: SecretStr = Field(
        min_length=64, max_length=64, description="Seed of its Ed25519 key, in hexadecimal: who it is."
    )
    link: LinkConfig | None = Field(default=None, description="None in the virtual world, whose links need no keys.")
    contacts: tuple[Contact, ...] = Field(default=(), description="Its neighbours in the topology.")
    neighbours: tuple[Hex32, ...] = Field(description="Whom it has a link with from the start.")
    destinations: tuple[Hex32, ...] = Field(description="To whom it sends its fragments.")
    expected_from: tuple[Hex32, ...] = Field(description="Who sends theirs to it.")
    absent: tuple[Hex32, ...] = Field(default=(), description="Those among them that join later, or have left before.")
    graph: Graph | None = Field(
        default=None, description="For routes that follow the topology, and for masks: who else sends to whom."
    )
    mixnet: Mixnet
    payload: Payload
    aggregation: Aggregation
    schedule: Schedule
    learner: LearnerConfig
    attack: Literal["none", "label_flip", "sign_flip", "gaussian"] = "none"
    gauges_interval_s: float = Field(default=1.0, ge=0, le=86_400)
    trace: bool = False

    @field_serializer("identity_seed", when_used="json")
    def _reveal(self, value: SecretStr, info: SerializationInfo) -> str:
        return _revealed(value, info)

    @model_validator(mode="after")
    def check(self) -> Self:
        """Refuse a seed of somebody else, and a graph that is not this federation's."""
        try:
            public, _ = crypto_sign_seed_keypair(bytes.fromhex(self.identity_seed.get_secret_value()))
        except ValueError:
            raise ValueError("the identity seed is 32 bytes in hexadecimal") from None
        if public.hex() != self.node_id:
            raise ValueError("the identity seed is another node's: it does not make node_id")
        if self.index >= self.nodes or (self.graph is not None and self.graph.node_ids[self.index] != self.node_id):
            raise ValueError("index does not say where this node stands")
        if self.mixnet.route != "overlay" and self.graph is None:
            raise ValueError(f"{self.mixnet.route} routes need the graph")
        if self.payload.obfuscation != "none" and self.graph is None:
            raise ValueError("masks need the graph")
        return self

    @property
    def own_id(self) -> NodeId:
        """Who this is."""
        return NodeId(bytes.fromhex(self.node_id))

    @property
    def signing_seed(self) -> bytes:
        """What it signs its descriptors with. Keep it out of everything that is written down."""
        return bytes.fromhex(self.identity_seed.get_secret_value())

    def contact_book(self) -> Mapping[NodeId, BookContact]:
        """Return how to reach the neighbours, and by which certificates they are known: for the endpoint."""
        return {
            NodeId(bytes.fromhex(contact.node_id)): BookContact(
                fingerprint=bytes.fromhex(contact.fingerprint), addresses=contact.addresses
            )
            for contact in self.contacts
        }

    def neighbour_ids(self) -> tuple[NodeId, ...]:
        """Return whom it has a link with from the start."""
        return named(self.neighbours)

    def to_json(self) -> bytes:
        """Return the whole, secrets included: for `from_json` at the node, and for nothing else."""
        return self.model_dump_json(context=_REVEAL).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Read it; ConfigError names the first thing that is wrong, never a secret."""
        if len(data) > MAX_BYTES:
            raise ConfigError(key="node", got=f"{len(data):,} bytes", takes=f"at most {MAX_BYTES:,} bytes")
        try:
            return cls.model_validate_json(data)
        except ValidationError as error:
            raise _explained(error) from None

    def write(self, path: Path) -> None:
        """Write it to a file that only its owner can read, whole or not at all."""
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(self.to_json())
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file; ConfigError where it cannot be read, or where others than its owner can."""
        try:
            with path.open("rb") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                data = file.read(MAX_BYTES + 1)
        except OSError as error:
            takes = "the path of a node's configuration"
            raise ConfigError(key="node", got=str(path), takes=takes, hint=error.strerror) from None
        if mode & _OTHERS:
            raise ConfigError(
                key="node",
                got=f"{path} with mode {mode:o}",
                takes="a file that only its owner can read, for it holds private keys",
                hint=f"chmod 600 {path}",
            )
        return cls.from_json(data)


def named(names: Iterable[str]) -> tuple[NodeId, ...]:
    """Return the ids behind these hexadecimal names."""
    return tuple([NodeId(bytes.fromhex(name)) for name in names])


def _revealed(value: SecretStr, info: SerializationInfo) -> str:
    context = info.context
    return value.get_secret_value() if isinstance(context, dict) and context.get("secrets") else str(value)


def _explained(error: ValidationError) -> ConfigError:
    mistake = error.errors(include_url=False, include_context=False)[0]
    path = [str(part) for part in mistake["loc"]]
    name = ".".join(["node", *path])
    got: Any = mistake["input"]
    if mistake["type"] == "json_invalid":
        return ConfigError(key="node", got="text that does not parse", takes="a node's configuration as JSON")
    if mistake["type"] == "extra_forbidden":
        # An unknown key may hold a secret under another name.
        return ConfigError(key=name, got="a key that does not exist", takes="the keys of a node's configuration only")
    if _SECRET_NAMES.intersection(path) or not isinstance(got, bool | int | float | str | None):
        got = f"a value of type {type(got).__name__}"
    elif isinstance(got, str):
        got = got[:80]
    return ConfigError(key=name, got=got, takes=f"something else: {mistake['msg']}")
