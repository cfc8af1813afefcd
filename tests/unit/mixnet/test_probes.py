from hypothesis import given
from hypothesis import strategies as st

from tests.unit.mixnet.networks import name
from unlinkabledfl.mixnet.items import CoverKind
from unlinkabledfl.mixnet.probes import ProbeEvent, ProbeLost, ProbeReturned, Probes

RELAYS = (name(1), name(2))


def drain(probes: Probes) -> list[ProbeEvent]:
    return list(iter(probes.next_event, None))


def under_way() -> Probes:
    probes = Probes()
    probes.sent(b"p", CoverKind.LOOP, RELAYS, timeout_s=2.0, now_s=1.0)
    return probes


def test_a_probe_that_returns_clears_its_relays_once() -> None:
    probes = under_way()

    assert [probes.returned(b"p"), probes.returned(b"p")] == [True, False]
    probes.handle_timer(now_s=9.0)

    assert drain(probes) == [ProbeReturned(kind=CoverKind.LOOP, relays=RELAYS, sent_at_s=1.0)]
    assert (len(probes), probes.next_timer_s(), probes.loss_share) == (0, None, 0.0)


def test_a_probe_that_is_overdue_is_lost_and_its_late_return_unknown() -> None:
    probes = under_way()
    probes.handle_timer(now_s=2.9)
    assert (drain(probes), probes.next_timer_s()) == ([], 3.0)

    probes.handle_timer(now_s=3.0)

    assert drain(probes) == [ProbeLost(kind=CoverKind.LOOP, relays=RELAYS, sent_at_s=1.0)]
    assert not probes.returned(b"p")
    assert probes.loss_share > 0.0


def test_a_return_that_nobody_sent_is_unknown_and_changes_nothing() -> None:
    probes = under_way()

    assert not probes.returned(b"q")

    assert (len(probes), drain(probes)) == (1, [])


def test_the_loss_share_follows_what_is_lost() -> None:
    probes = Probes()
    for number in range(400):
        probes.sent(number.to_bytes(2), CoverKind.DROP, RELAYS, timeout_s=1.0, now_s=number)
        if number % 4:
            probes.returned(number.to_bytes(2))
        probes.handle_timer(now_s=number + 1)

    assert 0.2 < probes.loss_share < 0.3


@given(st.lists(st.tuples(st.sampled_from(["sent", "returned", "time"]), st.integers(0, 9)), max_size=60))
def test_each_probe_ends_exactly_once_and_only_live_ones_are_remembered(steps: list[tuple[str, int]]) -> None:
    probes, now_s, sent, ended = Probes(), 0, 0, 0
    for action, number in steps:
        if action == "sent":
            probes.sent(sent.to_bytes(2), CoverKind.DROP, RELAYS, timeout_s=1 + number, now_s=now_s)
            sent += 1
        elif action == "returned":
            probes.returned(number.to_bytes(2))
        else:
            now_s += number
            probes.handle_timer(now_s=now_s)
        ended += len(drain(probes))
        assert len(probes) == sent - ended
    probes.handle_timer(now_s=now_s + 100)
    assert ended + len(drain(probes)) == sent
    assert len(probes) == 0


def test_a_reply_that_was_changed_on_its_way_is_a_lost_probe() -> None:
    probes = under_way()

    probes.spoilt(b"p")
    probes.handle_timer(now_s=9.0)

    assert drain(probes) == [ProbeLost(kind=CoverKind.LOOP, relays=RELAYS, sent_at_s=1.0)]
    assert not probes.returned(b"p")
