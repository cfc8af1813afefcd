from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from unlinkabledfl.errors import ConfigError, DescriptorError, LocalProtocolError
from unlinkabledfl.mixnet.descriptor import Descriptor, sign
from unlinkabledfl.mixnet.peers import (
    Directory,
    PeerAdded,
    PeerEvent,
    PeerRemoved,
    PeerRestored,
    PeerSettings,
    PeerUpdated,
    PeerView,
    RemovalReason,
    SendDescriptor,
)
from unlinkabledfl.sphinx import NodeId

FAR_S = 100_000


@cache
def describe(
    number: int, *, serial: int = 1, epoch: int = 0, valid_until_s: int = FAR_S, twin: bool = False
) -> Descriptor:
    """A descriptor, or its twin: another key under the same serial."""
    return sign(
        number.to_bytes(32),
        serial=serial,
        epoch=epoch,
        public_key=(1000 * epoch + 100 * serial + 20 * twin + number + 2).to_bytes(32),
        fingerprint=bytes(32),
        valid_until_s=valid_until_s,
        addresses=[f"10.0.0.{number + 1}:4433"],
    )


ME, A, B, C, D, E = (describe(number) for number in range(6))


def make(*, directory: Directory | None = None, **changes: Any) -> PeerView:
    settings_ = PeerSettings(**({"suspicion_bound": 2, "quarantine_s": 10.0, "quarantine_max_s": 40.0} | changes))
    if directory is None:
        return PeerView(own_id=ME.node_id, settings=settings_)
    return PeerView(own_id=ME.node_id, settings=settings_, directory=directory)


def knowing(*known: Descriptor, **changes: Any) -> PeerView:
    view = make(**changes)
    for descriptor in known:
        view.add_trusted(descriptor, now_s=0.0)
    drain(view)
    return view


def drain(view: PeerView) -> list[PeerEvent]:
    return list(iter(view.next_event, None))


def listed(view: PeerView) -> list[NodeId]:
    return [view.at(index) for index in range(len(view))]


def receive(view: PeerView, descriptor: Descriptor, *, by: Descriptor = A, now_s: float = 1.0) -> bool:
    return view.receive_descriptor(descriptor.data, from_peer=by.node_id, now_s=now_s)


def removed(peer: Descriptor, reason: RemovalReason = RemovalReason.SUSPECTED) -> PeerRemoved:
    return PeerRemoved(node_id=peer.node_id, reason=reason)


def fail(view: PeerView, *peers: Descriptor, now_s: float = 1.0, times: int = 2) -> None:
    for _ in range(times):
        view.route_failed([peer.node_id for peer in peers], now_s=now_s)


# Descriptors


def test_a_new_peer_is_added_and_passed_on_to_everybody_but_its_bearer_and_itself() -> None:
    view = knowing(A)
    for peer in (A, B, C):
        view.link_up(peer.node_id, now_s=0.0)
    drain(view)

    assert receive(view, C, by=A)

    assert drain(view) == [PeerAdded(node_id=C.node_id), SendDescriptor(to=B.node_id, data=C.data)]
    assert (listed(view), view.public_key(C.node_id)) == ([A.node_id, C.node_id], C.public_key)
    assert view.descriptor(C.node_id) == C


def test_an_echo_is_no_news() -> None:
    view = knowing(A, B)
    view.link_up(C.node_id, now_s=0.0)
    drain(view)

    assert (receive(view, B), drain(view)) == (False, [])


@pytest.mark.parametrize("newer", [describe(2, serial=2), describe(2, serial=0, epoch=1)], ids=["serial", "epoch"])
def test_a_newer_descriptor_replaces_an_older_one_and_never_the_reverse(newer: Descriptor) -> None:
    view = knowing(A, B)
    view.link_up(C.node_id, now_s=0.0)
    drain(view)

    assert receive(view, newer)
    with pytest.raises(DescriptorError) as caught:
        receive(view, B)

    assert caught.value.cause == "stale_epoch"
    assert drain(view) == [PeerUpdated(node_id=B.node_id), SendDescriptor(to=C.node_id, data=newer.data)]
    assert view.public_key(B.node_id) == newer.public_key


TWIN = describe(2, twin=True)


def test_two_keys_under_one_serial_ban_their_peer_and_go_to_everybody_as_proof() -> None:
    view = knowing(A, B)
    view.link_up(A.node_id, now_s=0.0)
    view.link_up(C.node_id, now_s=0.0)
    drain(view)

    assert receive(view, TWIN, by=A)

    assert drain(view) == [
        removed(B, RemovalReason.EQUIVOCATED),
        SendDescriptor(to=C.node_id, data=TWIN.data),
    ]
    assert (view.is_routable(B.node_id), B.node_id in view.avoided) == (False, True)
    assert view.descriptor(B.node_id) == B


def test_a_banned_peer_stays_out_whatever_it_signs_and_whoever_vouches_for_its_routes() -> None:
    view = knowing(A, B, C)
    receive(view, TWIN)
    drain(view)

    for descriptor in (TWIN, describe(2, serial=2)):
        with pytest.raises(DescriptorError) as caught:
            receive(view, descriptor)
        assert caught.value.cause == "equivocated"
    view.route_succeeded([B.node_id], now_s=2.0)
    view.link_up(B.node_id, now_s=2.0)
    view.handle_timer(now_s=1_000.0)

    assert drain(view) == [SendDescriptor(to=B.node_id, data=descriptor.data) for descriptor in (C, A)]
    assert not view.is_routable(B.node_id)


def test_a_ban_ends_with_the_descriptor_it_is_about() -> None:
    brief, later = describe(2, valid_until_s=50), describe(2, serial=2)
    view = knowing(A, brief)
    receive(view, describe(2, valid_until_s=60, twin=True))

    view.handle_timer(now_s=50.0)

    assert receive(view, later, now_s=51.0)
    assert view.is_routable(B.node_id)


def test_a_forged_twin_bans_nobody() -> None:
    view = knowing(A, B)
    forged = TWIN.data[:-1] + bytes([TWIN.data[-1] ^ 1])

    with pytest.raises(DescriptorError) as caught:
        view.receive_descriptor(forged, from_peer=A.node_id, now_s=1.0)

    assert (caught.value.cause, drain(view), view.is_routable(B.node_id)) == ("bad_signature", [], True)


def test_the_same_key_with_other_particulars_under_one_serial_is_stale() -> None:
    view = knowing(A, B)

    with pytest.raises(DescriptorError) as caught:
        receive(view, describe(2, valid_until_s=FAR_S - 1))

    assert (caught.value.cause, drain(view)) == ("stale_epoch", [])


def test_a_forged_descriptor_changes_nothing() -> None:
    view = knowing(A)
    forged = bytearray(describe(1, serial=9).data)
    forged[-1] ^= 1

    with pytest.raises(DescriptorError) as caught:
        view.receive_descriptor(bytes(forged), from_peer=B.node_id, now_s=1.0)

    assert (caught.value.cause, drain(view), view.descriptor(A.node_id)) == ("bad_signature", [], A)


def test_a_full_table_refuses_strangers_but_neither_updates_nor_trusted_ones() -> None:
    view = knowing(A, B, capacity=2)

    with pytest.raises(DescriptorError) as caught:
        receive(view, C)
    assert receive(view, describe(2, serial=2))
    view.add_trusted(D, now_s=1.0)

    assert caught.value.cause == "peer_table_full"
    assert drain(view) == [PeerUpdated(node_id=B.node_id), PeerAdded(node_id=D.node_id)]


def test_a_trusted_descriptor_that_is_older_is_ignored() -> None:
    view = knowing(describe(1, serial=5))

    view.add_trusted(A, now_s=1.0)
    view.add_trusted(ME, now_s=1.0)

    assert (drain(view), len(view)) == ([], 1)


def test_our_own_descriptor_comes_back_as_no_news_and_makes_us_no_peer() -> None:
    view = knowing(A)

    assert (receive(view, describe(0, serial=9)), drain(view), view.is_routable(ME.node_id)) == (False, [], False)


def test_an_expired_peer_is_forgotten_and_makes_room() -> None:
    view = knowing(A, describe(2, valid_until_s=50), capacity=2)
    assert view.next_timer_s() == 50.0

    view.handle_timer(now_s=50.0)

    assert drain(view) == [removed(B, RemovalReason.EXPIRED)]
    assert (listed(view), view.descriptor(B.node_id), view.differences) == ([A.node_id], None, 1)
    assert receive(view, C, now_s=50.0)


def test_a_renewed_peer_does_not_expire_at_its_former_time() -> None:
    view = knowing(A, describe(2, valid_until_s=50))
    receive(view, describe(2, serial=2, valid_until_s=90))
    drain(view)

    view.handle_timer(now_s=50.0)

    assert (drain(view), view.is_routable(B.node_id)) == ([], True)


def test_the_key_of_an_unknown_peer_is_a_bug() -> None:
    with pytest.raises(LocalProtocolError):
        make().public_key(A.node_id)


# Links


def test_a_new_link_is_offered_everything_in_batches_and_ourselves_first() -> None:
    view = knowing(A, B, C, D, offer_batch=2, offer_interval_s=5.0)
    view.announce(ME)

    view.link_up(A.node_id, now_s=10.0)
    first = drain(view)
    assert view.next_timer_s() == 15.0
    view.handle_timer(now_s=15.0)
    second = drain(view)

    sends = [SendDescriptor(to=A.node_id, data=descriptor.data) for descriptor in (ME, D, C, B)]
    assert (first, second) == (sends[:3], sends[3:])
    assert view.next_timer_s() == FAR_S


def test_what_a_link_could_not_take_is_offered_again_as_it_is_by_then() -> None:
    view = knowing(A, B, offer_interval_s=5.0)
    view.announce(ME)
    view.link_up(C.node_id, now_s=0.0)
    lost = [event.data for event in drain(view) if isinstance(event, SendDescriptor)]
    newer = describe(2, serial=2)

    for data in [*lost, B.data]:
        view.descriptor_unsent(C.node_id, data, now_s=1.0)
    view.descriptor_unsent(D.node_id, A.data, now_s=1.0)
    view.add_trusted(newer, now_s=2.0)
    drain(view)
    assert view.next_timer_s() == 6.0
    view.handle_timer(now_s=6.0)

    offered = [event for event in drain(view) if isinstance(event, SendDescriptor)]
    assert {event.to for event in offered} == {C.node_id}
    assert sorted(event.data for event in offered) == sorted([ME.data, A.data, newer.data])
    assert view.next_timer_s() == FAR_S


def test_a_link_that_goes_down_is_offered_nothing_more() -> None:
    view = knowing(A, B, C, D, offer_batch=1)
    view.link_up(A.node_id, now_s=0.0)
    drain(view)

    view.link_down(A.node_id, now_s=0.5)
    view.handle_timer(now_s=10.0)
    view.announce(ME)

    assert (drain(view), view.is_routable(A.node_id)) == ([], True)


def test_a_link_reported_twice_is_offered_once() -> None:
    view = knowing(A, B)
    view.link_up(A.node_id, now_s=0.0)
    view.link_up(A.node_id, now_s=0.0)

    assert drain(view) == [SendDescriptor(to=A.node_id, data=B.data)]


def test_an_announcement_goes_to_every_link() -> None:
    view = make()
    view.link_up(A.node_id, now_s=0.0)
    view.link_up(B.node_id, now_s=0.0)

    view.announce(ME)

    assert drain(view) == [SendDescriptor(to=peer.node_id, data=ME.data) for peer in (A, B)]


def test_announcing_somebody_else_is_a_bug() -> None:
    with pytest.raises(LocalProtocolError):
        make().announce(A)


# Failures


def test_missing_acks_take_a_peer_out_and_time_brings_it_back_on_probation() -> None:
    view = knowing(A, B, C, D)

    fail(view, A, times=1)
    assert (drain(view), view.is_routable(A.node_id)) == ([], True)
    fail(view, A, times=1)
    assert (drain(view), view.is_routable(A.node_id)) == ([removed(A)], False)
    assert A.node_id not in listed(view)
    assert view.next_timer_s() == 11.0

    view.handle_timer(now_s=11.0)

    assert drain(view) == [PeerRestored(node_id=A.node_id)]
    assert A.node_id in listed(view)


def test_an_ack_clears_suspicion() -> None:
    view = knowing(A, B, C, D)

    for _ in range(10):
        fail(view, A, times=1)
        view.route_succeeded([A.node_id, B.node_id], now_s=1.0)

    assert (drain(view), view.is_routable(A.node_id)) == ([], True)


def test_a_route_that_visits_a_peer_twice_casts_suspicion_once() -> None:
    view = knowing(A, B, C, D)

    fail(view, A, A, A, times=1)

    assert view.is_routable(A.node_id)


def test_on_probation_one_failure_is_enough_and_quarantine_grows_to_its_bound() -> None:
    view = knowing(A, B, C, D)
    fail(view, A, now_s=0.0)
    now_s = 0.0
    lengths_s = []
    for _ in range(4):
        timer_s = view.next_timer_s()
        assert timer_s is not None
        lengths_s.append(timer_s - now_s)
        now_s = timer_s
        view.handle_timer(now_s=now_s)
        fail(view, A, now_s=now_s, times=1)

    assert lengths_s == [10.0, 20.0, 40.0, 40.0]


def test_an_ack_on_probation_ends_the_series() -> None:
    view = knowing(A, B, C, D)
    fail(view, A, now_s=0.0)
    view.handle_timer(now_s=10.0)
    view.route_succeeded([A.node_id], now_s=11.0)
    fail(view, A, now_s=20.0, times=1)
    assert view.is_routable(A.node_id)

    fail(view, A, now_s=20.0, times=1)

    assert view.next_timer_s() == 30.0


def test_an_ack_through_a_quarantined_peer_restores_it() -> None:
    view = knowing(A, B, C, D)
    fail(view, A)
    drain(view)

    view.route_succeeded([A.node_id], now_s=2.0)

    assert drain(view) == [PeerRestored(node_id=A.node_id)]
    assert view.next_timer_s() == FAR_S


def test_a_quarantined_peer_that_publishes_a_newer_descriptor_is_back_on_probation() -> None:
    view = knowing(A, B, C, D)
    fail(view, A)
    drain(view)

    receive(view, describe(1, serial=2), by=B, now_s=2.0)
    assert drain(view) == [PeerUpdated(node_id=A.node_id), PeerRestored(node_id=A.node_id)]
    fail(view, A, now_s=3.0, times=1)

    assert drain(view) == [removed(A)]
    assert view.next_timer_s() == 23.0


def test_a_failed_dial_takes_a_peer_out_at_once_and_its_link_brings_it_back() -> None:
    view = knowing(A, B, C, D)

    view.dial_failed(A.node_id, now_s=1.0)
    view.dial_failed(A.node_id, now_s=1.5)
    assert drain(view) == [removed(A, RemovalReason.UNREACHABLE)]
    view.link_up(A.node_id, now_s=2.0)

    assert drain(view)[-1] == PeerRestored(node_id=A.node_id)


def test_a_link_does_not_clear_a_peer_that_swallows_packets() -> None:
    view = knowing(A, B, C, D)
    fail(view, A)

    view.link_up(A.node_id, now_s=2.0)

    assert not view.is_routable(A.node_id)


def test_at_most_half_of_the_peers_are_taken_out() -> None:
    view = knowing(A, B, C, D, E)

    fail(view, A, B, C, D, E, times=5)
    view.dial_failed(E.node_id, now_s=1.0)

    assert drain(view) == [removed(A), removed(B)]
    assert sorted(listed(view)) == sorted(peer.node_id for peer in (C, D, E))


def test_failures_of_unknown_peers_and_of_ourselves_mean_nothing() -> None:
    view = knowing(A, B)

    fail(view, C, ME)
    view.dial_failed(C.node_id, now_s=1.0)
    view.route_succeeded([C.node_id, ME.node_id], now_s=1.0)

    assert (drain(view), view.differences) == ([], 2)


def test_a_quarantined_peer_is_known_and_avoided_and_a_forgotten_one_neither() -> None:
    view = knowing(A, B, describe(3, valid_until_s=50), D)
    fail(view, A, C)

    assert [view.knows(peer.node_id) for peer in (A, B, C, E, ME)] == [True, True, True, False, False]
    assert view.avoided == {A.node_id, C.node_id}
    view.handle_timer(now_s=50.0)

    assert [view.knows(peer.node_id) for peer in (A, B, C)] == [True, True, False]
    assert view.avoided == set()


# With a directory

SHARED = Directory((peer.node_id, peer.public_key) for peer in (ME, A, B, C, D))


def test_a_directory_gives_peers_that_cost_a_view_nothing() -> None:
    view = make(directory=SHARED)

    assert [node_id for node_id in listed(view) if view.is_routable(node_id)] == [peer.node_id for peer in (A, B, C, D)]
    assert (view.public_key(C.node_id), view.differences, drain(view)) == (C.public_key, 0, [])


def test_a_view_over_a_directory_holds_differences_only_as_long_as_they_last() -> None:
    view = make(directory=SHARED)

    fail(view, A, B, times=1)
    assert view.differences == 2
    fail(view, A, times=1)
    assert (drain(view), view.is_routable(A.node_id), len(view)) == ([removed(A)], False, 5)
    view.handle_timer(now_s=11.0)
    view.route_succeeded([A.node_id, B.node_id], now_s=12.0)

    assert (view.is_routable(A.node_id), view.differences, view.next_timer_s()) == (True, 0, None)


def test_the_half_that_stays_counts_the_directory_without_us() -> None:
    view = make(directory=SHARED)

    for peer in (A, B, C, D):
        view.dial_failed(peer.node_id, now_s=0.0)

    assert [view.is_routable(peer.node_id) for peer in (A, B, C, D)] == [False, False, True, True]
    assert view.differences == 2


def test_a_descriptor_overrides_the_directory_and_its_expiry_does_not_bring_the_old_key_back() -> None:
    view = make(directory=SHARED)
    newer = describe(1, epoch=1, valid_until_s=50)

    receive(view, newer, by=B)
    assert (drain(view), view.public_key(A.node_id)) == ([PeerUpdated(node_id=A.node_id)], newer.public_key)
    view.handle_timer(now_s=50.0)
    view.route_succeeded([A.node_id], now_s=51.0)

    assert drain(view) == [removed(A, RemovalReason.EXPIRED)]
    assert not view.is_routable(A.node_id)
    assert receive(view, describe(1, epoch=2), by=B, now_s=60.0)
    assert view.is_routable(A.node_id)


def test_strangers_come_after_the_directory() -> None:
    view = make(directory=SHARED)

    receive(view, E)

    assert listed(view) == [*SHARED.ids, E.node_id]


@pytest.mark.parametrize(
    "changes",
    [
        {"capacity": 0},
        {"suspicion_bound": 0},
        {"offer_batch": 0},
        {"quarantine_s": 0.0},
        {"offer_interval_s": float("nan")},
        {"quarantine_max_s": 9.0},
    ],
    ids=str,
)
def test_settings_that_cannot_work_name_their_key(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        make(**changes)

    assert caught.value.key == f"mixnet.peers.{next(iter(changes))}"


NUMBERS = st.integers(1, 9)
ROUTES = st.lists(st.integers(0, 10), max_size=5)
IN_DIRECTORY = (0, 1, 2, 3)


def test_what_was_lost_before_a_peer_came_back_does_not_count_against_it() -> None:
    view = knowing(A, B, C)
    fail(view, A, now_s=1.0)
    view.handle_timer(now_s=11.0)
    drain(view)

    view.route_failed([A.node_id], sent_at_s=10.9, now_s=12.0)
    assert drain(view) == []
    view.route_failed([A.node_id], sent_at_s=11.0, now_s=13.0)

    assert drain(view) == [removed(A)]


class World(RuleBasedStateMachine):
    """Any order of descriptors, failures and time: the events alone must tell who is routable."""

    def __init__(self, directory: Directory | None) -> None:
        super().__init__()
        self.directory = Directory() if directory is None else directory
        self.view = make(directory=self.directory, capacity=6, offer_batch=1)
        self.now_s = 0
        self.known = set(self.directory.ids) - {ME.node_id}
        self.out: dict[NodeId, RemovalReason] = {}
        self.linked: set[NodeId] = set()

    @rule(
        number=st.integers(0, 10),
        serial=st.integers(1, 4),
        life_s=st.integers(1, 40),
        twin=st.sampled_from([False, False, False, True]),
        by=NUMBERS,
    )
    def descriptor_arrives(self, number: int, serial: int, life_s: int, twin: bool, by: int) -> None:
        descriptor = describe(number, serial=serial, valid_until_s=self.now_s + life_s, twin=twin)
        known = self.view.descriptor(descriptor.node_id)
        banned = self.out.get(descriptor.node_id) is RemovalReason.EQUIVOCATED
        cause = None
        try:
            news = receive(self.view, descriptor, by=describe(by), now_s=self.now_s)
        except DescriptorError as error:
            news, cause = False, error.cause
        assert cause in (None, "stale_epoch" if known else "peer_table_full", "equivocated" if banned else None)
        if news and known is not None and known.serial == serial:
            assert known.public_key != descriptor.public_key
            assert not self.view.is_routable(descriptor.node_id)
        elif news:
            assert not banned
            assert known is None or known.serial < serial
            assert self.view.descriptor(descriptor.node_id) == descriptor

    @rule(route=ROUTES)
    def ack_is_missing(self, route: Sequence[int]) -> None:
        self.view.route_failed([describe(number).node_id for number in route], now_s=self.now_s)

    @rule(route=ROUTES)
    def ack_comes(self, route: Sequence[int]) -> None:
        self.view.route_succeeded([describe(number).node_id for number in route], now_s=self.now_s)

    @rule(number=NUMBERS)
    def dial_fails(self, number: int) -> None:
        self.view.dial_failed(describe(number).node_id, now_s=self.now_s)

    @rule(number=NUMBERS, up=st.booleans())
    def link_changes(self, number: int, up: bool) -> None:
        node_id = describe(number).node_id
        if up:
            self.view.link_up(node_id, now_s=self.now_s)
            self.linked.add(node_id)
        else:
            self.view.link_down(node_id, now_s=self.now_s)
            self.linked.discard(node_id)

    @rule(step_s=st.integers(0, 15))
    def time_passes(self, step_s: int) -> None:
        self.now_s += step_s
        self.view.handle_timer(now_s=self.now_s)

    def follow(self, event: PeerEvent) -> None:
        match event:
            case PeerAdded(node_id=node_id):
                assert node_id not in self.known
                self.known.add(node_id)
            case PeerUpdated(node_id=node_id):
                assert node_id in self.known
            case PeerRestored(node_id=node_id):
                assert self.out.pop(node_id) is not RemovalReason.EQUIVOCATED
            case PeerRemoved(node_id=node_id, reason=RemovalReason.EXPIRED):
                if node_id in self.directory.keys:
                    self.out[node_id] = RemovalReason.EXPIRED
                else:
                    self.out.pop(node_id, None)
                    self.known.remove(node_id)
            case PeerRemoved(node_id=node_id, reason=RemovalReason.EQUIVOCATED):
                assert node_id in self.known
                self.out[node_id] = RemovalReason.EQUIVOCATED
            case PeerRemoved(node_id=node_id, reason=reason):
                assert node_id not in self.out
                assert node_id in self.known
                self.out[node_id] = reason
                assert 2 * len(self.out) <= len(self.known)
            case SendDescriptor(to=to):
                assert to in self.linked

    @invariant()
    def the_events_tell_who_is_routable(self) -> None:
        for event in drain(self.view):
            self.follow(event)
        routable = self.known - set(self.out)
        everybody = [describe(number).node_id for number in range(11)]
        assert {node_id for node_id in everybody if self.view.is_routable(node_id)} == routable
        assert self.view.avoided == set(self.out)
        expired = {node_id for node_id, reason in self.out.items() if reason is RemovalReason.EXPIRED}
        assert {node_id for node_id in everybody if self.view.knows(node_id)} == self.known - expired
        strangers = listed(self.view)[len(self.directory.ids) :]
        assert listed(self.view)[: len(self.directory.ids)] == list(self.directory.ids)
        assert len(set(strangers)) == len(strangers)
        assert set(strangers) == routable - set(self.directory.ids)
        assert all(self.view.public_key(node_id) for node_id in routable)
        assert self.view.differences <= 6 + len(self.directory.ids)
        timer_s = self.view.next_timer_s()
        assert timer_s is None or timer_s > self.now_s

    def teardown(self) -> None:
        """Without news every descriptor and every quarantine ends."""
        for _ in range(3):
            self.now_s += 60
            self.view.handle_timer(now_s=self.now_s)
        for event in drain(self.view):
            self.follow(event)
        assert self.known == set(self.directory.ids) - {ME.node_id}
        assert set(self.out.values()) <= {RemovalReason.EXPIRED}


class WorldOfStrangers(World):
    def __init__(self) -> None:
        super().__init__(None)


class WorldWithDirectory(World):
    def __init__(self) -> None:
        super().__init__(Directory((d.node_id, d.public_key) for d in map(describe, IN_DIRECTORY)))


TestWorldOfStrangers = WorldOfStrangers.TestCase
TestWorldWithDirectory = WorldWithDirectory.TestCase
TestWorldOfStrangers.settings = TestWorldWithDirectory.settings = settings(max_examples=40, stateful_step_count=40)
