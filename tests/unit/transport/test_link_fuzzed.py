"""The fuzz target of links, for a few inputs on every run of the tests; `make fuzz` tries many more."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.fuzz_link import WAYS, Conversation, fuzz_one


def test_an_undisturbed_conversation_ends_with_a_link_on_both_sides() -> None:
    talk = Conversation(b"")
    talk.hold()

    assert (talk.dialler.is_open, talk.listener.is_open) == (True, True)


def test_a_repeated_datagram_changes_nothing() -> None:
    talk = Conversation(b"\x02\x00\x00\x00" * 40)
    talk.hold()

    assert (talk.dialler.is_open, talk.listener.is_open) == (True, True)


@settings(max_examples=120, deadline=None)
@given(st.integers(0, len(WAYS) - 1), st.binary(max_size=400))
def test_no_input_does_more_than_end_a_link(way: int, data: bytes) -> None:
    fuzz_one(bytes([way]) + data)
