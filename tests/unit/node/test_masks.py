"""Masks: they cancel over the senders of a destination, hide a single one, and partners are agreed without a word."""

from collections.abc import Callable, Sequence
from hashlib import shake_256

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.fragments import Grid, StateLayout, Vector, pair_noise
from unlinkabledfl.node.masks import Masking, PairwiseMasks, masks_for
from unlinkabledfl.node.settings import PayloadSettings
from unlinkabledfl.sphinx import NodeId

GRID = Grid(1_000, 300)
SIZES = np.linspace(0.1, 2.0, 1_000).astype(np.float32)
TARGET = NodeId(b"t" * 32)
ZEROS = np.zeros(300, dtype=np.float32)


def names(count: int) -> list[NodeId]:
    return [NodeId(shake_256(number.to_bytes(4)).digest(32)) for number in range(count)]


def secret_of(own_id: NodeId) -> Callable[[NodeId], bytes]:
    return lambda peer: shake_256(b"".join(sorted((own_id, peer)))).digest(32)


def masks(
    own_id: NodeId, senders: Sequence[NodeId], *, peers: int = 16, gone: frozenset[NodeId] = frozenset()
) -> PairwiseMasks:
    return PairwiseMasks(
        own_id=own_id,
        grid=GRID,
        sizes=SIZES,
        peers=peers,
        masking=Masking(senders_to=lambda _destination: senders, pair_secret=secret_of(own_id)),
        gone=gone,
    )


def sent(senders: Sequence[NodeId], *, peers: int = 16, round_number: int = 3, index: int = 1) -> Vector:
    """What each of them adds to zeros, a row each."""
    return np.stack([
        masks(sender, senders, peers=peers)(ZEROS, index=index, round_number=round_number, destination=TARGET)
        for sender in senders
    ])  # fmt: skip


@given(count=st.integers(2, 40), peers=st.integers(2, 12), round_number=st.integers(0, 2**32 - 1))
def test_the_masks_of_all_senders_sum_to_zero(count: int, peers: int, round_number: int) -> None:
    rows = sent(names(count), peers=peers, round_number=round_number)

    assert float(np.abs(rows.sum(axis=0, dtype=np.float64)).max()) < 1e-5
    assert float(np.abs(rows).min(axis=1).max()) > 0.0


@pytest.mark.parametrize(("count", "peers"), [(2, 16), (9, 16), (40, 16), (41, 5)])
def test_a_mask_is_as_large_as_was_asked_for(count: int, peers: int) -> None:
    rows = sent(names(count), peers=peers) / SIZES[300:600]

    # The mean square of at least 300 uniform values strays by 0.05 at most.
    assert abs(float((rows**2).mean()) - 1.0) < 0.25


def test_every_round_range_and_destination_has_masks_of_its_own() -> None:
    machine = masks(names(8)[0], names(8))
    values = [
        machine(ZEROS, index=index, round_number=round_number, destination=destination)
        for index, round_number, destination in [(0, 1, TARGET), (1, 1, TARGET), (0, 2, TARGET), (0, 1, names(9)[8])]
    ]

    overlaps = np.asarray(np.corrcoef(values))[np.triu_indices(4, k=1)]

    # Of 300 values: strays by 0.06.
    assert np.abs(overlaps).max() < 0.3


@pytest.mark.parametrize("count", [3, 8, 17])
def test_a_partner_that_colludes_names_senders_by_what_it_shares_with_them(count: int) -> None:
    # A limit that docs/content-boundary.md tells of, not a wish.
    senders = names(count)
    rows = sent(senders, round_number=3, index=1)[1:] / SIZES[300:600]
    label = (3).to_bytes(4) + (1).to_bytes(4) + TARGET
    shared = np.stack([
        pair_noise(secret_of(senders[0])(peer), label, 300) * (1 if peer < senders[0] else -1) for peer in senders[1:]
    ])  # fmt: skip

    assert np.argmax(rows @ shared.T, axis=1).tolist() == list(range(count - 1))


def test_partners_change_and_are_as_many_as_was_asked_for() -> None:
    senders = names(40)
    asked: list[set[NodeId]] = []
    for round_number in (1, 2):
        seen: set[NodeId] = set()

        def secret(peer: NodeId, seen: set[NodeId] = seen) -> bytes:
            seen.add(peer)
            return bytes(32)

        machine = PairwiseMasks(
            own_id=senders[0],
            grid=GRID,
            sizes=SIZES,
            peers=8,
            masking=Masking(senders_to=lambda _destination: senders, pair_secret=secret),
            gone=frozenset(),
        )
        machine(ZEROS, index=0, round_number=round_number, destination=TARGET)
        asked.append(seen)

    assert [len(seen) for seen in asked] == [8, 8]
    assert asked[0] != asked[1]


def test_the_noise_of_a_partner_that_is_gone_is_left_out_by_all_who_know() -> None:
    senders = names(6)
    gone = frozenset(senders[:2])

    rows = [
        masks(sender, senders, gone=gone)(ZEROS, index=0, round_number=1, destination=TARGET) for sender in senders[2:]
    ]

    assert float(np.abs(np.sum(rows, axis=0, dtype=np.float64)).max()) < 1e-5


def test_a_node_that_seems_to_be_alone_keeps_its_masks() -> None:
    senders = names(6)
    most = frozenset(senders[1:4])

    cut_off = masks(senders[0], senders, gone=most)(ZEROS, index=0, round_number=1, destination=TARGET)

    assert cut_off.tolist() == masks(senders[0], senders)(ZEROS, index=0, round_number=1, destination=TARGET).tolist()


def test_the_only_sender_sends_what_it_has() -> None:
    values = np.arange(300, dtype=np.float32)

    assert masks(TARGET, [TARGET])(values, index=0, round_number=1, destination=TARGET).tolist() == values.tolist()


def layout(*statistics: str) -> StateLayout:
    state = {"weight": np.zeros((10, 100), dtype=np.float32)}
    return StateLayout(state | {name: np.ones(10, dtype=np.float32) for name in statistics})


def made(settings: PayloadSettings, of: StateLayout, masking: Masking | None) -> PairwiseMasks | None:
    return masks_for(settings, own_id=TARGET, layout=of, grid=GRID, masking=masking, gone=frozenset())


def test_masks_are_made_where_they_are_asked_for() -> None:
    masking = Masking(senders_to=lambda _destination: [TARGET], pair_secret=secret_of(TARGET))

    assert made(PayloadSettings(), layout(), None) is None
    assert made(PayloadSettings(obfuscation="masks"), layout(), masking) is not None


def test_masks_are_refused_for_a_model_with_statistics() -> None:
    masking = Masking(senders_to=lambda _destination: [TARGET], pair_secret=secret_of(TARGET))

    with pytest.raises(ConfigError, match=r"payload\.obfuscation: got 'masks', takes none with a model"):
        made(PayloadSettings(obfuscation="masks"), layout("norm.running_var"), masking)


def test_masks_without_knowledge_of_others_are_our_mistake() -> None:
    with pytest.raises(LocalProtocolError, match="who else sends"):
        made(PayloadSettings(obfuscation="masks"), layout(), None)
