from hashlib import shake_256
from itertools import count

import numpy as np
import pytest

from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.fragments import FragmentDecoder, FragmentEncoder, Grid, Vector, codec_by_name
from unlinkabledfl.node.payload import Disguise, Payload
from unlinkabledfl.sphinx import NodeId

GRID = Grid(1_000, 300)
CAPACITY_BYTES = 400
PEERS = [NodeId(bytes([number]) * 32) for number in range(3)]
DECODER = FragmentDecoder(GRID, capacity_bytes=CAPACITY_BYTES)
VECTOR = np.random.default_rng(1).normal(0.0, 1.0, 1_000).astype(np.float32)


class CountingEncoder(FragmentEncoder):
    """Counts what it encodes."""

    def __init__(self, codec: str) -> None:
        super().__init__(GRID, codec_by_name(codec), capacity_bytes=CAPACITY_BYTES)
        self.encoded: list[int] = []

    def encode_range(self, vector: Vector, index: int, *, round_number: int, rng: np.random.Generator) -> bytes:
        self.encoded.append(index)
        return super().encode_range(vector, index, round_number=round_number, rng=rng)


def payload(
    codec: str = "fit", *, error_feedback: bool = False, disguise: Disguise | None = None
) -> tuple[Payload, CountingEncoder]:
    encoder = CountingEncoder(codec)
    calls = count()
    made = Payload(
        encoder=encoder,
        decoder=DECODER,
        entropy=lambda n: shake_256(next(calls).to_bytes(8)).digest(n),
        error_feedback=error_feedback,
        disguise=disguise,
    )
    return made, encoder


def begin(machine: Payload, vector: Vector = VECTOR, *, round_number: int = 1) -> None:
    machine.begin(vector, round_number=round_number, ranges=range(len(GRID)), takers=len(PEERS))


def take(machine: Payload, index: int, peer: NodeId) -> bytes:
    data = machine.fragment(index, peer)
    machine.taken(index, peer)
    return data


def noise(values: Vector, *, index: int, round_number: int, destination: NodeId) -> Vector:
    return values + np.float32(destination[0] + 10.0 * index + 100.0 * round_number)


def test_a_range_is_encoded_once_when_it_is_first_asked_for() -> None:
    machine, encoder = payload()
    begin(machine)
    before = list(encoder.encoded)

    taken = [take(machine, 2, peer) for peer in PEERS]

    assert (before, encoder.encoded, len(set(taken))) == ([], [2], 1)


def test_a_fragment_that_was_refused_is_the_same_when_it_is_offered_again() -> None:
    machine, _ = payload()
    begin(machine)

    assert machine.fragment(0, PEERS[0]) == machine.fragment(0, PEERS[0])
    assert [machine.is_ready(index, PEERS[1]) for index in (0, 1)] == [True, False]


def test_nothing_is_kept_after_the_last_destination_took_it() -> None:
    machine, _ = payload()
    begin(machine)
    for index in range(len(GRID)):
        for peer in PEERS:
            take(machine, index, peer)

    assert not any(machine.is_ready(index, PEERS[0]) for index in range(len(GRID)))
    with pytest.raises(LocalProtocolError, match="has been taken"):
        machine.fragment(0, PEERS[0])


def test_fragments_say_their_round_and_come_close_to_the_model() -> None:
    machine, _ = payload("q8")
    begin(machine, round_number=7)

    fragments = [DECODER.decode(take(machine, index, PEERS[0])) for index in range(len(GRID))]

    assert {fragment.round for fragment in fragments} == {7}
    assert np.abs(np.concatenate([fragment.values for fragment in fragments]) - VECTOR).max() < 0.04


def test_the_noise_of_each_fragment_has_a_generator_of_its_own() -> None:
    machine, _ = payload("q4")
    begin(machine, np.tile(VECTOR[:300], 4)[:1_000])

    bodies = {DECODER.decode(machine.fragment(index, PEERS[0])).values.tobytes() for index in range(3)}

    assert len(bodies) == 3
    assert machine.generator().random() != machine.generator().random()


def test_a_disguise_gives_each_destination_values_of_its_own() -> None:
    machine, encoder = payload("f32", disguise=noise)
    short = Grid(1_000, 90)
    machine = Payload(
        encoder=FragmentEncoder(short, codec_by_name("f32"), capacity_bytes=CAPACITY_BYTES),
        decoder=FragmentDecoder(short, capacity_bytes=CAPACITY_BYTES),
        entropy=bytes,
        disguise=noise,
    )
    machine.begin(VECTOR, round_number=2, ranges=[0, 3], takers=3)
    before = VECTOR.copy()

    values = [FragmentDecoder(short, capacity_bytes=400).decode(take(machine, 3, peer)).values for peer in PEERS]

    place = short.ranges[3].slice
    assert [value.tolist() for value in values] == [
        (VECTOR[place] + np.float32(peer[0] + 230.0)).tolist() for peer in PEERS
    ]
    assert encoder.encoded == []
    assert (VECTOR == before).all()


def test_what_quantization_took_is_owed_to_the_next_fragment_of_a_range() -> None:
    plain, _ = payload("q4")
    owing, _ = payload("q4", error_feedback=True)
    sums = {}
    for name, machine in (("plain", plain), ("owing", owing)):
        total = np.zeros(300)
        for number in range(1, 21):
            begin(machine, round_number=number)
            total += DECODER.decode(machine.fragment(0, PEERS[0])).values
        sums[name] = float(np.abs(total - 20 * VECTOR[:300]).mean())

    # Errors of independent rounds add up like a walk; owed ones never exceed one step.
    assert sums["owing"] < 0.5 * sums["plain"]


def test_errors_cannot_be_owed_where_every_destination_got_another_one() -> None:
    with pytest.raises(ConfigError, match=r"payload\.error_feedback"):
        payload(error_feedback=True, disguise=noise)
