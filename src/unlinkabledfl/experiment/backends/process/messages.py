"""What a launcher and a node say to each other over the control pipe.

A node is told, in this order: `Configure`, `Contacts`, `Begin`, `Stop`. It answers the first with `Bound` and the
second with `Ready`; after `Begin` it reports, and after its last round says `Finished`; after `Stop` it says `Stopped`
and ends. In between it may ask for a learner and for turns to compute, which are answered whenever there is one.

On the pipe a message is its length in four bytes, and JSON. Everything is bounded and checked on both sides; instants
are seconds since the node was told to begin. Nothing here is a model, a packet or a key, but for `Configure`, which
holds the keys of the very node it is sent to.
"""

import struct
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from unlinkabledfl.errors import ControlError

__all__ = [
    "FRAME_BYTES_MAX", "Begin", "Bound", "Configure", "Contacts", "Failed", "Finished", "FrameReader", "FromNode",
    "GaugesReport", "LearnerEnded", "LearnerRefused", "LearnerStarted", "LearnerWanted", "Lost", "Note", "PhaseReport",
    "Ready", "RoundReport", "Stop", "Stopped", "ToNode", "Trained", "TurnGranted", "TurnReturned", "TurnWanted",
    "frame", "parse_from_node", "parse_to_node",
]  # fmt: skip

FRAME_BYTES_MAX: Final = 16 * 1024 * 1024
_LENGTH: Final = struct.Struct(">I")

_Name: TypeAlias = Annotated[str, Field(max_length=128)]
_Text: TypeAlias = Annotated[str, Field(max_length=4_096)]
_Metrics: TypeAlias = Annotated[dict[_Name, float], Field(max_length=1_024)]
_Round: TypeAlias = Annotated[int, Field(ge=0)]
_AtS: TypeAlias = Annotated[float, Field(ge=0)]


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


# ------------------------------------------------------------------------------------------------ from the launcher


class Configure(_Message):
    """Everything the node needs, its own keys included: a `FullNodeConfig` as JSON."""

    say: Literal["configure"] = "configure"
    config: str = Field(repr=False)
    checkpoint: str = ""
    """Where the node keeps its last model; empty: nowhere."""
    resumes: bool = False
    """Whether it goes on with the model that lies there."""
    first_round: int = 1
    """Where the run begins, or goes on."""
    trace: str = ""
    """The folder where it takes down what crosses its links; empty: nowhere."""
    trace_crossings: int = 0
    """How many packets all nodes together take down at most."""


class Contacts(_Message):
    """Where those listen that take part now, by id; this node is one of them."""

    say: Literal["contacts"] = "contacts"
    addresses: dict[_Name, _Name] = Field(max_length=100_000)


class Lost(_Message):
    """This node has ended before the first round: do not wait for it."""

    say: Literal["lost"] = "lost"
    node_id: _Name


class Begin(_Message):
    """Everybody is linked: begin the first round."""

    say: Literal["begin"] = "begin"


class LearnerStarted(_Message):
    """The process for the learner runs; its socket comes with this message."""

    say: Literal["learner_started"] = "learner_started"
    process_id: int


class LearnerRefused(_Message):
    """There can be no process for the learner."""

    say: Literal["learner_refused"] = "learner_refused"
    reason: _Text


class LearnerEnded(_Message):
    """The learner's process has ended; no code: nobody knows how."""

    say: Literal["learner_ended"] = "learner_ended"
    process_id: int
    code: int | None


class TurnGranted(_Message):
    """The learner may compute now."""

    say: Literal["turn_granted"] = "turn_granted"


class Trained(_Message):
    """Some node has trained for this round only now: do not give it up before its fragments had time to come."""

    say: Literal["trained"] = "trained"
    round_number: _Round


class Stop(_Message):
    """Close the links, tell what is still to tell, and end."""

    say: Literal["stop"] = "stop"


ToNode: TypeAlias = Annotated[
    Configure | Contacts | Lost | Begin | LearnerStarted | LearnerRefused | LearnerEnded | TurnGranted | Trained | Stop,
    Field(discriminator="say"),
]

# ------------------------------------------------------------------------------------------------------ from a node


class Bound(_Message):
    """The node has its port, and listens at this address."""

    say: Literal["bound"] = "bound"
    address: _Name


class Ready(_Message):
    """The node is linked and knows its peers; `missing` are those that do not answer, by id."""

    say: Literal["ready"] = "ready"
    links: int
    missing: tuple[_Name, ...] = Field(strict=False, max_length=100_000)


class LearnerWanted(_Message):
    """The node needs a process for its learner: the first, or one after a death."""

    say: Literal["learner_wanted"] = "learner_wanted"


class TurnWanted(_Message):
    """The learner would compute, as soon as it is its turn."""

    say: Literal["turn_wanted"] = "turn_wanted"


class TurnReturned(_Message):
    """The learner computes no longer."""

    say: Literal["turn_returned"] = "turn_returned"


class PhaseReport(_Message):
    """The node turns to something else."""

    say: Literal["phase"] = "phase"
    at_s: _AtS
    round_number: _Round
    phase: _Name


class RoundReport(_Message):
    """A round is over."""

    say: Literal["round"] = "round"
    at_s: _AtS
    round_number: _Round
    metrics: _Metrics


class GaugesReport(_Message):
    """What can be measured at any instant."""

    say: Literal["gauges"] = "gauges"
    at_s: _AtS
    metrics: _Metrics


class Note(_Message):
    """Something that happened once: `kind` is one of `records.EventKind`."""

    say: Literal["note"] = "note"
    at_s: _AtS
    kind: Literal["join", "exit", "attack", "link", "note"]
    text: _Text


class Finished(_Message):
    """The last round of this node is over: `done`, it goes on relaying; `exit`, it leaves."""

    say: Literal["finished"] = "finished"
    at_s: _AtS
    ending: Literal["done", "exit"]


class Failed(_Message):
    """The node cannot go on, for this reason; it ends without being told to."""

    say: Literal["failed"] = "failed"
    error: _Name
    text: _Text


class Stopped(_Message):
    """The node has closed its links; what it counted in all its life."""

    say: Literal["stopped"] = "stopped"
    at_s: _AtS
    counters: dict[_Name, int] = Field(max_length=1_024)


FromNode: TypeAlias = Annotated[
    Bound
    | Ready
    | LearnerWanted
    | TurnWanted
    | TurnReturned
    | PhaseReport
    | RoundReport
    | GaugesReport
    | Note
    | Finished
    | Failed
    | Stopped,
    Field(discriminator="say"),
]

_TO_NODE: Final[TypeAdapter[ToNode]] = TypeAdapter(ToNode)
_FROM_NODE: Final[TypeAdapter[FromNode]] = TypeAdapter(FromNode)


def parse_to_node(data: bytes) -> ToNode:
    """Return the message of a launcher; ControlError if it is none."""
    try:
        return _TO_NODE.validate_json(data)
    except ValidationError as error:
        raise _refusal(error) from None


def parse_from_node(data: bytes) -> FromNode:
    """Return the message of a node; ControlError if it is none."""
    try:
        return _FROM_NODE.validate_json(data)
    except ValidationError as error:
        raise _refusal(error) from None


def _refusal(error: ValidationError) -> ControlError:
    # Where and why, never what: the message may hold keys.
    first = error.errors(include_input=False, include_url=False)[0]
    return ControlError("bad_message", f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}")


def frame(message: BaseModel) -> bytes:
    """Return the bytes of a message on the pipe."""
    body = message.model_dump_json().encode()
    if len(body) > FRAME_BYTES_MAX:
        raise ControlError("message_too_long", f"{len(body):,} bytes")
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """Cuts what comes out of a pipe into the bodies of messages."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def receive(self, data: bytes) -> list[bytes]:
        """Return the bodies that are complete now; ControlError if one would be too long."""
        self._buffer += data
        bodies = []
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > FRAME_BYTES_MAX:
                raise ControlError("message_too_long", f"{length:,} bytes")
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                break
            bodies.append(bytes(self._buffer[_LENGTH.size : end]))
            del self._buffer[:end]
        return bodies
