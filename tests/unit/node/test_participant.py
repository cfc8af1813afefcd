from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.node.federation import FAST, OFF, Federation, Plan, rounds_of
from tests.unit.node.learners import blank_model
from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.mixnet.events import MessageReceived, PeerChanged
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.mixnet.mixers import OffSettings, PoissonSettings
from unlinkabledfl.node.events import Finished, ModelReady, NodeEvent, PhaseChanged, RoundFinished, TrainRequested
from unlinkabledfl.node.participant import Participant
from unlinkabledfl.node.settings import PayloadSettings
from unlinkabledfl.simulation import LinkSettings

if TYPE_CHECKING:
    from unlinkabledfl.node.payload import Payload

RANGES = 3
TOLD = (TrainRequested, ModelReady, PhaseChanged, RoundFinished, Finished)


def lone(**plan: Any) -> Participant:
    """The first node of a world that stands still: it has started, and no other ever answers."""
    plan.setdefault("settings", rounds_of(2, deadline_s=50.0))
    participant = Federation(Plan(nodes=4, degree=2, **plan)).participant(0)
    drain(participant)
    return participant


def drain(participant: Participant) -> list[NodeEvent]:
    """What it says to its learner and to whoever watches."""
    return [event for event in iter(participant.next_event, None) if isinstance(event, TOLD)]


def train(participant: Participant, *, value: float = 1.0, now_s: float = 1.0, **metrics: float) -> None:
    participant.training_finished(round_number=participant.round, state=model(value), metrics=metrics, now_s=now_s)


def model(value: float) -> dict[str, Any]:
    return {name: np.full_like(array, value) for name, array in blank_model().items()}


def work(participant: Participant, *, until_s: float) -> list[NodeEvent]:
    """Let time pass; return what it said."""
    said = drain(participant)
    while (due_s := participant.next_timer_s()) is not None and due_s <= until_s:
        participant.handle_timer(now_s=due_s)
        said += drain(participant)
    return said


def fragments_of(value: float, *, round_number: int = 1, seed: int = 0) -> list[bytes]:
    """What a peer with that model sends."""
    other = lone(mixer=OFF)
    payload: Payload = other._sharing._payload  # noqa: SLF001 -- the very encoder of a peer
    vector = np.full(605, value, np.float32)
    payload.begin(vector + np.float32(1e-3 * seed), round_number=round_number, ranges=range(RANGES), takers=1)
    return [payload.fragment(index, other.node_id) for index in range(RANGES)]


def deliver(participant: Participant, *data: bytes, now_s: float = 1.0) -> None:
    """Have its mix hand over messages, as if they had come over the network."""
    for each in data:
        participant.mix._events.append(MessageReceived(message_id=MessageId(bytes(16)), data=each))  # noqa: SLF001
    participant.link_down(participant.node_id, now_s=now_s)


def test_it_asks_for_training_when_its_first_round_begins() -> None:
    participant = lone()
    before = drain(participant)

    participant.begin(now_s=1.0)

    assert before == []
    assert drain(participant) == [PhaseChanged(round_number=1, phase="train"), TrainRequested(round_number=1)]


def test_it_draws_no_entropy_and_starts_nothing_when_it_is_made() -> None:
    federation = Federation(Plan(nodes=4, degree=2))

    def refuse(count: int) -> bytes:
        raise AssertionError(f"{count} bytes were drawn")

    made = federation.make(index=1, serial=0, entropy=refuse)

    assert (made.next_timer_s(), made.next_event()) == (None, None)


def test_ranges_are_encoded_one_at_a_time() -> None:
    participant = lone(mixer=OFF)
    participant.begin(now_s=0.0)
    train(participant)
    sent = [participant.totals.fragments_sent]
    while participant.gauges()["fragments_planned"]:
        due_s = participant.next_timer_s()
        assert due_s is not None
        assert due_s < 1.1
        participant.handle_timer(now_s=due_s)
        sent.append(participant.totals.fragments_sent)

    # Each of three ranges goes to three destinations, and one timer at most meets a range that is not encoded yet.
    assert (sent[0], sent[-1]) == (0, 9)
    assert len(sent) > RANGES


def test_aggregation_goes_a_range_at_a_time_and_leaves_time_between() -> None:
    participant = lone(mixer=OFF, settings=rounds_of(2, completion="immediate"))
    participant.begin(now_s=0.0)
    train(participant)
    instants_s = []
    while not any(isinstance(event, ModelReady) for event in drain(participant)):
        due_s = participant.next_timer_s()
        assert due_s is not None
        participant.handle_timer(now_s=due_s)
        instants_s.append(due_s)

    assert len(instants_s) == RANGES
    assert instants_s == sorted(set(instants_s))


def test_the_aggregate_is_the_mean_of_its_own_model_and_what_came() -> None:
    participant = lone(mixer=OFF)
    participant.begin(now_s=0.0)
    train(participant, value=1.0)
    deliver(participant, *fragments_of(2.0), *fragments_of(6.0))

    said = work(participant, until_s=60.0)

    (ready,) = (event for event in said if isinstance(event, ModelReady))
    assert (ready.round_number, ready.evaluate) == (1, True)
    assert {name: set(array.ravel().tolist()) for name, array in ready.state.items()} == {
        "weight": {3.0},
        "bias": {3.0},
    }


def test_fragments_of_the_next_round_wait_for_it() -> None:
    participant = lone(mixer=OFF, settings=rounds_of(2, completion="immediate"))
    participant.begin(now_s=0.0)
    deliver(participant, *fragments_of(5.0, round_number=2))
    train(participant, value=1.0)
    work(participant, until_s=2.0)
    held = participant.gauges()["fragments_held"]
    participant.evaluation_finished(round_number=1, metrics={}, now_s=2.0)
    train(participant, value=1.0, now_s=3.0)
    work(participant, until_s=4.0)

    assert held == RANGES
    assert set(participant.state["bias"].tolist()) == {3.0}
    assert participant.totals.fragments_aggregated == RANGES


def test_a_failed_training_leaves_the_model_as_it_was_and_the_round_goes_on() -> None:
    participant = lone(mixer=OFF, settings=rounds_of(1, completion="immediate"))
    participant.begin(now_s=0.0)
    participant.training_failed(round_number=1, reason="out of memory", now_s=1.0)
    work(participant, until_s=2.0)
    participant.evaluation_finished(round_number=1, metrics={"accuracy": 0.2}, now_s=2.0)

    (report,) = (event.metrics for event in drain(participant) if isinstance(event, RoundFinished))
    assert (report["train_failed"], report["accuracy"], report["fragments_sent"]) == (1.0, 0.2, 9.0)
    assert set(participant.state["bias"].tolist()) == {0.0}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e5], ids=str)
def test_a_model_that_no_peer_would_accept_is_not_sent(value: float) -> None:
    participant = lone(mixer=OFF, settings=rounds_of(1, completion="immediate"))
    participant.begin(now_s=0.0)
    train(participant, value=value)
    work(participant, until_s=2.0)
    participant.evaluation_finished(round_number=1, metrics={}, now_s=2.0)

    (report,) = (event.metrics for event in drain(participant) if isinstance(event, RoundFinished))
    assert report["train_failed"] == 1.0
    assert set(participant.state["weight"].ravel().tolist()) == {0.0}


def test_a_model_beyond_the_bound_is_refused_before_anything_begins() -> None:
    with pytest.raises(ConfigError, match=r"payload\.bound"):
        lone(states={0: model(2e4)})


def test_a_full_mix_is_offered_more_when_something_has_ended() -> None:
    federation = Federation(Plan(nodes=4, degree=2, mixer=OffSettings(own_capacity=2), settings=rounds_of(2)))
    federation.run_until_finished()

    assert set(federation.metric("fragments_sent").values()) == {9.0}
    assert set(federation.metric("completeness").values()) == {1.0}


def test_no_more_fragments_wait_in_the_mixer_than_are_allowed() -> None:
    slow = PoissonSettings(delay_mean_s=0.1, emission_rate_per_s=0.1, loop_rate_per_s=0.0)
    participant = lone(mixer=slow, settings=replace(rounds_of(1), queue_ahead=4))
    participant.begin(now_s=0.0)
    train(participant)
    work(participant, until_s=1.5)

    assert participant.gauges()["queue_own"] <= 4.0
    assert participant.gauges()["fragments_planned"] >= 4.0


def test_a_model_that_has_hardly_changed_is_not_sent_where_a_trigger_asks_for_more() -> None:
    settings = rounds_of(3, completion="cadence", cadence_s=10.0, trigger_change=0.5)
    participant = lone(mixer=OFF, settings=settings)
    participant.begin(now_s=0.0)
    sent = []
    for number, value in ((1, 1.0), (2, 1.2), (3, 2.0)):
        train(participant, value=value, now_s=10.0 * number - 9.0)
        work(participant, until_s=10.0 * number + 0.1)
        participant.evaluation_finished(round_number=number, metrics={}, now_s=10.0 * number + 0.5)
        sent.append(participant.totals.fragments_sent)

    assert sent == [9, 9, 18]


def test_peers_with_equal_models_both_count_as_having_sent_them() -> None:
    participant = lone(mixer=OFF)
    participant.begin(now_s=0.0)
    train(participant)
    deliver(participant, *fragments_of(2.0), *fragments_of(2.0), *fragments_of(2.0, seed=1))

    assert participant.gauges()["completeness_now"] == 1.0
    assert participant.totals.fragments_refused == RANGES


def test_rubbish_is_refused_and_counted() -> None:
    participant = lone(mixer=OFF)
    participant.begin(now_s=0.0)
    good = fragments_of(2.0)[0]

    deliver(participant, b"", b"rubbish", good[:20], good + b"x", bytes(len(good)))

    totals = participant.totals
    assert (totals.fragments_received, totals.fragments_refused) == (5, 5)
    assert participant.gauges()["completeness_now"] == 0.0


def test_a_deadline_that_fires_late_is_put_off_by_that_much() -> None:
    participant = lone(mixer=OFF)
    participant.begin(now_s=0.0)
    train(participant)
    work(participant, until_s=40.0)
    due_s = participant.next_timer_s() or 0.0

    participant.handle_timer(now_s=58.0)
    in_between = work(participant, until_s=57.9 + 58.0 - due_s)
    after = work(participant, until_s=58.1 + 58.0 - due_s)

    # It was due at 51 s, and the node had slept since before that: what it slept counts, and what it is late.
    assert 40.0 < due_s < 51.0
    assert (in_between, after[0]) == ([], PhaseChanged(round_number=1, phase="aggregate"))


def test_changes_of_the_peer_view_are_passed_on() -> None:
    participant = lone()
    (peer, *_) = participant.mix.peers._directory.ids[1:]  # noqa: SLF001
    participant.dial_failed(peer, now_s=1.0)

    changes = [event for event in iter(participant.next_event, None) if isinstance(event, PeerChanged)]
    assert [(event.peer, event.routable) for event in changes] == [(peer, False)]
    assert participant.gauges()["peers_gone"] == 1.0


def test_a_packet_that_its_link_refused_was_not_sent() -> None:
    full = LinkSettings(latency_s=0.02, bandwidth_bytes_per_s=2_000.0, queue_packets=1)
    federation = Federation(Plan(nodes=4, degree=2, mixer=FAST, links=full, settings=rounds_of(1)))
    federation.world.run_for(4.0)

    result = federation.world.result()
    sent = sum(federation.participant(index).totals.packets_sent for index in range(4))
    assert sent <= result.virtual_s * 12 * 2_000.0 / federation.packet_bytes + 24
    assert sent >= result.packet_hops


@pytest.mark.parametrize(
    "answer",
    [
        lambda each: each.training_finished(round_number=2, state=blank_model(), metrics={}, now_s=1.0),
        lambda each: each.training_failed(round_number=2, reason="", now_s=1.0),
        lambda each: each.evaluation_finished(round_number=1, metrics={}, now_s=1.0),
    ],
)
def test_an_answer_to_what_was_not_asked_is_our_own_mistake(answer: Any) -> None:
    participant = lone()
    participant.begin(now_s=0.0)

    with pytest.raises(LocalProtocolError, match="an answer for phase"):
        answer(participant)


@settings(max_examples=25)
@given(
    st.integers(0, 10_000),
    st.sampled_from([0.0, 0.05]),
    st.sampled_from(["completeness", "deadline", "cadence", "immediate"]),
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3)), max_size=4),
)
def test_whatever_happens_rounds_go_up_and_no_fragment_ends_twice(
    seed: int, loss: float, completion: str, failures: list[tuple[int, int]]
) -> None:
    plan = Plan(
        nodes=5,
        degree=2,
        mixer=OFF,
        links=LinkSettings(latency_s=0.02, jitter_s=0.1, loss=loss, duplication=0.05, reordering=0.1),
        settings=rounds_of(
            3, completion=completion, deadline_s=6.0, cadence_s=5.0, payload=PayloadSettings(codec="f32", ratio=0.7)
        ),
        unlike={2: rounds_of(3, completion=completion, deadline_s=6.0, cadence_s=5.0, last_round=2)},
        train_s=lambda node, number: 0.5 + (seed * (node + 1) * number) % 97 / 50.0,
        failing=lambda node, number: (node, number) in failures,
    )
    federation = Federation(plan, seed=seed)
    federation.run_until_finished(limit_s=300.0)

    for index in range(5):
        numbers = [number for number, phase in federation.phases[index] if phase == "train"]
        assert numbers == sorted(set(numbers))
        assert list(federation.reports[index]) == numbers
        totals = federation.totals[index]
        ended = totals.fragments_acknowledged + totals.fragments_given_up
        assert ended <= totals.fragments_sent
        assert (
            totals.fragments_aggregated + totals.fragments_late + totals.fragments_refused <= totals.fragments_received
        )
        for report in federation.reports[index].values():
            assert 0.0 <= report["completeness"] <= 1.0
