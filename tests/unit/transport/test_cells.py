"""Cells: one size for all, and a reader that holds less than one, whatever comes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.errors import ControlError, LocalProtocolError
from unlinkabledfl.transport.cells import (
    CONTROL_MAX_BYTES,
    Cell,
    CellFormat,
    CellReader,
    ControlCell,
    PacketCell,
)

FORMAT = CellFormat(4_000)
PACKET = bytes(range(250)) * 16


def read(data: bytes, *, pieces: int | None = None) -> list[Cell]:
    reader = CellReader(FORMAT)
    step = pieces or len(data)
    return [cell for start in range(0, len(data), step) for cell in reader.feed(data[start : start + step])]


def test_a_packet_cell_is_pinned_to_the_byte() -> None:
    small = CellFormat(3)

    cell = small.packet(b"abc")

    assert cell[:8] == bytes.fromhex("01 00000003 616263")
    assert set(cell[8:]) == {0}
    assert len(cell) == small.cell_bytes == 5 + 2 + CONTROL_MAX_BYTES


def test_a_control_cell_is_pinned_to_the_byte() -> None:
    cell, count = FORMAT.control([b"ab", b"", b"c"])

    assert (cell[:14], count) == (bytes.fromhex("02 00000009 0002 6162 0000 0001 63"), 3)
    assert set(cell[14:]) == {0}


def test_packets_and_control_messages_take_the_same_room() -> None:
    assert len(FORMAT.packet(PACKET)) == len(FORMAT.control([b"x"])[0]) == FORMAT.cell_bytes


def test_a_control_cell_takes_as_many_messages_as_fit_and_leaves_the_rest() -> None:
    messages = [bytes([number]) * 1_000 for number in range(9)]

    cell, count = FORMAT.control(messages)

    assert count == 3
    assert read(cell) == [ControlCell(tuple(messages[:3]))]


def test_the_longest_control_message_fits_even_where_packets_are_small() -> None:
    small = CellFormat(100)

    cell, count = small.control([bytes(CONTROL_MAX_BYTES)])

    assert (count, len(cell)) == (1, small.cell_bytes)


def test_what_we_must_not_send_is_our_own_mistake() -> None:
    with pytest.raises(LocalProtocolError):
        FORMAT.packet(PACKET + b"x")
    with pytest.raises(LocalProtocolError):
        FORMAT.control([bytes(CONTROL_MAX_BYTES + 1)])
    with pytest.raises(LocalProtocolError):
        CellFormat(0)


@pytest.mark.parametrize(
    ("head", "cause"),
    [
        ("00 00000fa0", "cell_bad_type"),
        ("03 00000fa0", "cell_bad_type"),
        ("ff ffffffff", "cell_bad_type"),
        ("01 00000f9f", "cell_bad_length"),
        ("01 00000fa1", "cell_bad_length"),
        ("01 00000000", "cell_bad_length"),
        ("02 00000fa1", "cell_bad_length"),
        ("02 ffffffff", "cell_bad_length"),
    ],
)
def test_a_cell_that_cannot_be_is_refused_at_its_head(head: str, cause: str) -> None:
    with pytest.raises(ControlError) as refused:
        read(bytes.fromhex(head))

    assert refused.value.cause == cause


@pytest.mark.parametrize("content", ["00", "0005 6162", "ffff", "0001 61 00"])
def test_messages_that_lie_about_their_length_are_refused(content: str) -> None:
    body = bytes.fromhex(content)
    cell = b"\x02" + len(body).to_bytes(4) + body.ljust(FORMAT.content_bytes, b"\0")

    with pytest.raises(ControlError) as refused:
        read(cell)

    assert refused.value.cause == "cell_truncated"


cells = st.lists(
    st.one_of(
        st.binary(min_size=1, max_size=8).map(lambda seed: PacketCell((seed * 4_000)[:4_000])),
        st.lists(st.binary(max_size=300), max_size=6).map(lambda messages: ControlCell(tuple(messages))),
    ),
    max_size=5,
)


@given(sent=cells, cuts=st.lists(st.integers(1, 5_000), min_size=1, max_size=60))
def test_any_cells_in_any_pieces_come_out_as_they_went_in_and_less_than_one_is_held(
    sent: list[Cell], cuts: list[int]
) -> None:
    stream = b"".join(
        FORMAT.packet(cell.packet) if isinstance(cell, PacketCell) else FORMAT.control(cell.messages)[0]
        for cell in sent
    )
    reader = CellReader(FORMAT)
    heard: list[Cell] = []
    start = 0
    for number in range(len(stream) + 1):
        cut = cuts[number % len(cuts)]
        heard += reader.feed(stream[start : start + cut])
        start += cut
        assert reader.pending_bytes < FORMAT.cell_bytes
        if start >= len(stream):
            break

    assert heard == sent


@given(st.binary(max_size=9_000))
def test_garbage_is_refused_or_waited_for_and_nothing_else(data: bytes) -> None:
    reader = CellReader(FORMAT)
    try:
        reader.feed(data)
    except ControlError as refusal:
        assert refusal.cause in {"cell_bad_type", "cell_bad_length", "cell_truncated"}  # noqa: PT017
    else:
        assert reader.pending_bytes < FORMAT.cell_bytes
