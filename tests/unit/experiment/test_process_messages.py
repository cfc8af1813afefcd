import asyncio
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.errors import ControlError
from unlinkabledfl.experiment.backends.process.channel import Channel
from unlinkabledfl.experiment.backends.process.messages import (
    FRAME_BYTES_MAX,
    Begin,
    Bound,
    Configure,
    Contacts,
    Failed,
    Finished,
    FrameReader,
    GaugesReport,
    LearnerEnded,
    LearnerStarted,
    Note,
    Ready,
    RoundReport,
    Stop,
    Stopped,
    Trained,
    TurnWanted,
    frame,
    parse_from_node,
    parse_to_node,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

TO_NODE = [
    Configure(config="{}"),
    Contacts(addresses={"ab" * 32: "127.0.0.1:4433"}),
    Begin(),
    LearnerStarted(process_id=7),
    LearnerEnded(process_id=7, code=None),
    Trained(round_number=3),
    Stop(),
]
FROM_NODE = [
    Bound(address="127.0.0.1:4433"),
    Ready(links=3, missing=("cd" * 32,)),
    TurnWanted(),
    RoundReport(at_s=1.5, round_number=2, metrics={"accuracy": 0.5}),
    GaugesReport(at_s=0.0, metrics={}),
    Note(at_s=2.0, kind="link", text="gone"),
    Finished(at_s=3.0, ending="done"),
    Failed(error="ConfigError", text="why"),
    Stopped(at_s=3.0, counters={"relayed": 5}),
]


def test_every_message_survives_the_pipe() -> None:
    for messages, parse in ((TO_NODE, parse_to_node), (FROM_NODE, parse_from_node)):
        data = b"".join(frame(message) for message in messages)

        assert [parse(body) for body in FrameReader().receive(data)] == messages


@given(cuts=st.lists(st.integers(1, 40), max_size=60))
def test_messages_come_out_whole_however_the_bytes_arrive(cuts: list[int]) -> None:
    data = b"".join(frame(message) for message in TO_NODE)
    reader = FrameReader()
    bodies = []
    for cut in [*cuts, len(data)]:
        bodies += reader.receive(data[:cut])
        data = data[cut:]

    assert [parse_to_node(body) for body in bodies] == TO_NODE


@given(body=st.binary(max_size=200))
def test_a_body_that_is_no_message_is_refused(body: bytes) -> None:
    with pytest.raises(ControlError):
        parse_from_node(body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"say":"round","at_s":1.0,"round_number":-1,"metrics":{}}',
        b'{"say":"round","at_s":1.0,"round_number":1,"metrics":{"a":"b"}}',
        b'{"say":"finished","at_s":1.0,"ending":"tired"}',
        b'{"say":"bound","address":"x","more":1}',
        b'{"say":"begin"}',
    ],
)
def test_a_message_with_a_wrong_field_or_from_the_wrong_side_is_refused(body: bytes) -> None:
    with pytest.raises(ControlError, match="bad_message"):
        parse_from_node(body)


def test_a_refusal_does_not_repeat_what_was_sent() -> None:
    with pytest.raises(ControlError) as caught:
        parse_to_node(b'{"say":"configure","config":{"key_pem":"SECRET"}}')

    assert "SECRET" not in str(caught.value)


def test_a_message_that_would_be_too_long_is_refused_before_it_is_read() -> None:
    with pytest.raises(ControlError, match="message_too_long"):
        FrameReader().receive((FRAME_BYTES_MAX + 1).to_bytes(4, "big"))


def test_a_configuration_is_not_shown() -> None:
    assert "SECRET" not in repr(Configure(config='{"key_pem": "SECRET"}'))


class End:
    """A channel and what came through it."""

    def __init__(self, end: socket.socket, *, expects_files: bool = False) -> None:
        self.messages: list[Any] = []
        self.files: list[int] = []
        self.closed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.expects_files = expects_files
        self.arrived = asyncio.Event()
        self.channel = Channel(end, on_message=self.take, on_close=self.closed.set_result)

    def take(self, body: bytes) -> None:
        message: BaseModel = parse_to_node(body)
        self.messages.append(message)
        if isinstance(message, LearnerStarted):
            self.files.append(self.channel.take_file())
        self.arrived.set()

    async def wait_for(self, count: int) -> None:
        while len(self.messages) < count:
            self.arrived.clear()
            await asyncio.wait_for(self.arrived.wait(), 20.0)


def test_a_file_arrives_with_its_message_among_many() -> None:
    async def run() -> tuple[list[Any], bytes]:
        one, other = socket.socketpair()
        ours, theirs = End(one), End(other)
        read, write = os.pipe()
        # More than a socket takes at once, so that the rest has to wait for room.
        long = Configure(config='"' + "x" * 3_000_000 + '"')
        for message in (Begin(), long):
            ours.channel.send(message)
        ours.channel.send(LearnerStarted(process_id=1), file=write)
        ours.channel.send(Stop())
        await theirs.wait_for(4)
        os.write(theirs.files[0], b"through the pipe")
        os.close(theirs.files[0])
        with open(read, "rb") as pipe:  # noqa: ASYNC230 - both ends are here
            text = pipe.read()
        ours.channel.close()
        assert await asyncio.wait_for(theirs.closed, 20.0) == ""
        assert not theirs.channel.is_open
        return [type(message) for message in theirs.messages], text

    assert asyncio.run(run()) == ([Begin, Configure, LearnerStarted, Stop], b"through the pipe")


def test_an_end_that_gets_nonsense_closes_and_says_why() -> None:
    async def run() -> tuple[str, bool]:
        one, other = socket.socketpair()
        with one:
            theirs = End(other)
            one.sendall(b"\x00\x00\x00\x02{}")
            reason = await asyncio.wait_for(theirs.closed, 20.0)
            theirs.channel.send(Begin())
            return reason, theirs.channel.is_open

    reason, is_open = asyncio.run(run())

    assert reason.startswith("bad_message")
    assert not is_open


def test_a_message_without_the_file_that_it_announces_is_refused() -> None:
    async def run() -> str:
        one, other = socket.socketpair()
        ours, theirs = End(one), End(other)
        ours.channel.send(LearnerStarted(process_id=1))
        reason = await asyncio.wait_for(theirs.closed, 20.0)
        ours.channel.close()
        return reason

    assert asyncio.run(run()).startswith("no_file")
