from typing import get_args

import pytest

from tests.unit.mixnet.mixing import own, transit
from unlinkabledfl.mixnet.items import Cover, CoverKind, Item, OwnMessage, Transit


def test_items_are_the_three_things_a_mixer_holds() -> None:
    assert get_args(Item) == (Transit, OwnMessage, Cover)


def test_cover_kinds_read_as_they_are_written_in_records() -> None:
    assert [str(kind) for kind in CoverKind] == ["drop", "loop"]


def test_two_attempts_at_one_message_are_two_items() -> None:
    assert own(1, attempt=1) != own(1, attempt=2)
    assert own(1, attempt=2) == own(1, attempt=2)


def test_two_cover_items_of_one_mixer_are_told_apart() -> None:
    assert Cover(CoverKind.DROP, 0) != Cover(CoverKind.DROP, 1)


def test_a_transit_carries_packets_that_cannot_be_hashed() -> None:
    packet = bytearray(b"packet")

    item = Transit(transit(0).next_hop, packet)

    assert item.packet is packet


def test_an_item_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        own(1).attempt = 2  # type: ignore[misc]
