"""Links between nodes on real sockets: they come up, carry everything, and break and come back as told."""

import random
import threading

import pytest

from tests.unit.transport.virtual import (
    PACKET_BYTES,
    Place,
    Relay,
    node_id,
    packet,
    pair,
    quiet,
    run,
    until,
)
from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.transport.book import Contact


def test_packets_go_both_ways_over_one_link_whole_and_in_order() -> None:
    async def main() -> None:
        one, other = await pair()
        for number in range(30):
            assert one.endpoint.send_packet(other.id, packet(number))
            assert other.endpoint.send_packet(one.id, packet(100 + number))
        await until(lambda: len(one.packets) + len(other.packets) == 60)

        assert other.packets == [(1, packet(number)) for number in range(30)]
        assert one.packets == [(2, packet(100 + number)) for number in range(30)]
        assert (one.heard, other.heard) == ([("up", 2)], [("up", 1)])

    run(main())


def test_a_packet_for_an_unlinked_peer_dials_it_and_waits() -> None:
    async def main() -> None:
        one, other = await pair(linked=False)

        assert all(one.endpoint.send_packet(other.id, packet(number)) for number in range(20))
        await until(lambda: len(other.packets) == 20)

        assert other.packets == [(1, packet(number)) for number in range(20)]

    run(main())


@pytest.mark.parametrize("packets", [0, 1, 40])
def test_nodes_that_dial_each_other_at_once_end_with_one_link_and_lose_nothing(packets: int) -> None:
    async def main() -> None:
        one, other = await pair(linked=False)
        one.endpoint.want(other.id)
        other.endpoint.want(one.id)
        for number in range(packets):
            one.endpoint.send_packet(other.id, packet(number))
            other.endpoint.send_packet(one.id, packet(number))
        await quiet()

        assert (one.heard, other.heard) == ([("up", 2)], [("up", 1)])
        assert [sent for _, sent in one.packets] == [sent for _, sent in other.packets]
        assert len(one.packets) == packets
        assert one.endpoint.counters["lost_in_dial"] == other.endpoint.counters["lost_in_dial"] == 0

    run(main())


def test_control_messages_arrive_in_order_and_share_cells() -> None:
    async def main() -> None:
        one, other = await pair()
        relayed = [number.to_bytes(2) * 100 for number in range(1_000)]
        for message in relayed:
            assert one.endpoint.send_control(other.id, message)
        await until(lambda: len(other.control) == 1_000)

        assert other.control == [(1, message) for message in relayed]

    run(main())


def test_control_messages_need_a_link_that_stands() -> None:
    async def main() -> None:
        one, other = await pair(linked=False)

        assert not one.endpoint.send_control(other.id, b"hello")

        assert one.endpoint.counters["control_unlinked"] == 1
        await quiet()
        assert (one.heard, other.heard) == ([], [])

    run(main())


def test_a_full_control_queue_says_so() -> None:
    async def main() -> None:
        one, other = await pair(control_queue_messages=3)

        assert [one.endpoint.send_control(other.id, b"m") for _ in range(4)] == [True, True, True, False]
        assert one.endpoint.counters["control_queue_full"] == 1

    run(main())


def test_a_full_window_refuses_packets_until_some_have_left_and_what_was_taken_arrives() -> None:
    async def main() -> None:
        one, other = await pair(send_window_packets=10, dial_queue_packets=10)
        taken = [number for number in range(100) if one.endpoint.send_packet(other.id, packet(number))]
        assert taken == list(range(10))

        await until(lambda: len(other.packets) == 10)
        assert one.endpoint.send_packet(other.id, packet(10))
        await until(lambda: len(other.packets) == 11)

        assert other.packets == [(1, packet(number)) for number in range(11)]

    run(main())


def test_so_many_packets_wait_for_a_dial_and_no_more() -> None:
    async def main() -> None:
        one, other = await pair(linked=False, dial_queue_packets=3)

        assert [one.endpoint.send_packet(other.id, packet(0)) for _ in range(4)] == [True, True, True, False]

    run(main())


def test_a_packet_of_the_wrong_length_is_our_own_mistake() -> None:
    async def main() -> None:
        one, other = await pair()
        with pytest.raises(LocalProtocolError):
            one.endpoint.send_packet(other.id, bytes(PACKET_BYTES + 1))

    run(main())


def test_packets_that_arrive_together_are_handed_over_together() -> None:
    async def main() -> None:
        one, other = await pair()
        for number in range(8):
            one.endpoint.send_packet(other.id, packet(number))
        await until(lambda: len(other.packets) == 8)

        assert max(other.batches) > 1

    run(main())


def test_a_dead_peer_is_reported_and_what_waited_for_it_is_counted() -> None:
    async def main() -> None:
        one, other = await pair(linked=False)
        await other.endpoint.close()

        one.endpoint.send_packet(other.id, packet(1))
        one.endpoint.send_packet(other.id, packet(2))
        await until(lambda: bool(one.heard))

        assert one.heard == [("failed", 2)]
        assert one.endpoint.counters["lost_in_dial"] == 2
        assert one.endpoint.gauges()["links_dialling"] == 0.0

    run(main())


def test_a_peer_of_which_nobody_knows_an_address_is_reported_but_not_before_dial_returns() -> None:
    async def main() -> None:
        one = await Place(1).open()

        one.endpoint.dial(node_id(2))
        assert one.heard == []
        await until(lambda: bool(one.heard))

        assert one.heard == [("failed", 2)]
        assert one.endpoint.counters["dial_without_address"] == 1

    run(main())


def test_a_wanted_peer_that_is_late_is_linked_when_it_comes() -> None:
    async def main() -> None:
        one, other = await pair(linked=False)
        port = other.address[1]
        await other.endpoint.close()
        one.endpoint.want(other.id)
        await quiet(60.0)
        assert set(one.heard) == {("failed", 2)}
        late = await Place(2).open(port=port)
        late.knows(one)
        await until(lambda: ("up", 2) in one.heard)

        assert late.heard == [("up", 1)]

    run(main())


def test_a_wanted_link_that_is_closed_comes_back() -> None:
    async def main() -> None:
        one, other = await pair()
        one.endpoint.want(other.id)

        other.endpoint.hang_up(one.id)
        await until(lambda: len(one.heard) == 3)
        one.endpoint.send_packet(other.id, packet(7))
        await until(lambda: bool(other.packets))

        assert one.heard == [("up", 2), ("down", 2), ("up", 2)]
        assert other.heard == [("up", 1), ("down", 1), ("up", 1)]

    run(main())


def test_a_link_that_is_not_wanted_stays_closed() -> None:
    async def main() -> None:
        one, other = await pair()

        one.endpoint.hang_up(other.id)
        await quiet(60.0)

        assert (one.heard, other.heard) == ([("up", 2), ("down", 2)], [("up", 1), ("down", 1)])
        assert one.endpoint.gauges() == dict.fromkeys(one.endpoint.gauges(), 0.0)

    run(main())


def test_an_idle_link_is_kept() -> None:
    async def main() -> None:
        one, other = await pair()

        await quiet(500.0)
        one.endpoint.send_packet(other.id, packet(1))
        await until(lambda: bool(other.packets))

        assert (one.heard, other.heard) == ([("up", 2)], [("up", 1)])

    run(main())


def test_both_sides_notice_when_the_network_is_cut_and_packets_that_never_left_are_counted() -> None:
    async def main() -> None:
        one, other = await pair(linked=False)
        relay = Relay(other)
        one.knows(other, relay.address)
        one.endpoint.dial(other.id)
        await until(lambda: bool(one.heard and other.heard))

        relay.passes = lambda _: False
        for number in range(60):
            one.endpoint.send_packet(other.id, packet(number))
        await quiet(100.0)

        assert (one.heard, other.heard) == ([("up", 2), ("down", 2)], [("up", 1), ("down", 1)])
        assert 0 < one.endpoint.counters["lost_on_link"] < 60  # the others had left, as far as it knew

    run(main())


def test_a_peer_that_starts_anew_is_linked_at_once_although_nobody_noticed_its_end() -> None:
    async def main() -> None:
        one, other = await pair(linked=False)
        relay = Relay(other)
        one.knows(other, relay.address)
        one.endpoint.dial(other.id)
        await until(lambda: bool(one.heard and other.heard))
        await quiet()
        relay.passes = lambda _: False  # from here nothing of the old life gets out
        anew = await Place(2).open()
        anew.knows(one)

        anew.endpoint.dial(one.id)
        await until(lambda: len(one.heard) == 3)
        one.endpoint.send_packet(other.id, packet(1))
        await until(lambda: bool(anew.packets))

        assert one.heard == [("up", 2), ("down", 2), ("up", 2)]

    run(main())


def test_datagrams_that_are_lost_are_sent_again() -> None:
    async def main() -> None:
        one, other = await pair(linked=False)
        chances = random.Random(5)
        relay = Relay(other, passes=lambda _: chances.random() > 0.05)
        one.knows(other, relay.address)
        sent = 0
        while sent < 200:
            while sent < 200 and one.endpoint.send_packet(other.id, packet(sent)):
                sent += 1
            await quiet(0.01)
        await until(lambda: len(other.packets) == 200)

        assert other.packets == [(1, packet(number)) for number in range(200)]

    run(main())


def test_a_link_renews_its_keys_again_and_again_and_loses_nothing() -> None:
    async def main() -> None:
        one, other = await pair(linked=False, key_datagrams=64)
        chances = random.Random(6)
        relay = Relay(other, passes=lambda _: chances.random() > 0.02)
        one.knows(other, relay.address)
        one.endpoint.dial(other.id)
        await until(lambda: bool(one.heard and other.heard))
        for number in range(300):
            for place, peer in ((one, other), (other, one)):
                assert place.endpoint.send_packet(peer.id, packet(number))
            await quiet(0.1)
        await quiet()

        assert [number for _, number in one.packets] == [packet(number) for number in range(300)]
        assert [number for _, number in other.packets] == [packet(number) for number in range(300)]
        assert (one.heard, other.heard) == ([("up", 2)], [("up", 1)])
        assert one.endpoint.gauges()["links_renewals"] + other.endpoint.gauges()["links_renewals"] > 10.0

    run(main())


@pytest.mark.parametrize(("path_bytes", "largest"), [(70_000, 9_000), (1_500, 1_300), (1_250, 1_200)])
def test_datagrams_are_as_large_as_the_path_carries(path_bytes: int, largest: int) -> None:
    async def main() -> None:
        one, other = await pair(linked=False, datagram_bytes=9_000)
        relay = Relay(other, passes=lambda data: len(data) <= path_bytes)
        one.knows(other, relay.address)
        for number in range(20):
            one.endpoint.send_packet(other.id, packet(number))
        await until(lambda: len(other.packets) == 20)

        assert one.heard == [("up", 2)]
        assert largest * 0.4 < max(relay.carried) <= largest

    run(main())


def test_a_link_that_the_sink_does_not_want_is_refused() -> None:
    async def main() -> None:
        one, other = await pair(linked=False)
        other.welcome = False

        one.endpoint.send_packet(other.id, packet(1))
        await until(lambda: bool(one.heard))

        assert one.heard == [("failed", 2)]
        assert other.heard == [("up", 1), ("down", 1)]
        assert (other.packets, one.endpoint.counters["lost_in_dial"]) == ([], 1)

    run(main())


def test_no_more_links_than_the_bound() -> None:
    async def main() -> None:
        hub = await Place(1, links_max=2).open()
        others = [await Place(number).open() for number in (2, 3, 4)]
        for other in others:
            hub.knows(other)
            other.knows(hub)
            other.endpoint.dial(hub.id)
            await quiet()

        assert hub.heard == [("up", 2), ("up", 3)]
        assert others[2].heard == [("failed", 1)]
        assert hub.endpoint.counters["link_too_many"] == 1

    run(main())


def test_the_link_unused_for_longest_makes_room_for_a_new_one() -> None:
    async def main() -> None:
        hub = await Place(1, dialled_max=2).open()
        others = [await Place(number).open() for number in (2, 3, 4)]
        for other in others:
            hub.knows(other)
            other.knows(hub)
        for number in (0, 1, 0, 2):
            hub.endpoint.send_packet(others[number].id, packet(number))
            await quiet()

        assert hub.heard == [("up", 2), ("up", 3), ("down", 3), ("up", 4)]
        assert hub.endpoint.counters["link_made_room"] == 1

    run(main())


def test_an_orderly_close_lets_what_was_sent_arrive() -> None:
    async def main() -> None:
        one, other = await pair()
        for number in range(60):
            assert one.endpoint.send_packet(other.id, packet(number))

        await one.endpoint.close()
        await until(lambda: ("down", 1) in other.heard)

        assert other.packets == [(1, packet(number)) for number in range(60)]
        assert one.heard == [("up", 2), ("down", 2)]

    run(main())


def test_closing_does_not_wait_for_a_peer_that_takes_nothing() -> None:
    async def main() -> None:
        one, other = await pair(linked=False)
        relay = Relay(other)
        one.knows(other, relay.address)
        one.endpoint.dial(other.id)
        await until(lambda: bool(one.heard and other.heard))
        relay.passes = lambda _: False
        for number in range(60):
            one.endpoint.send_packet(other.id, packet(number))

        begun_at_s = one.endpoint.now_s()
        await one.endpoint.close()

        assert one.endpoint.now_s() - begun_at_s < 1.5
        assert one.heard == [("up", 2), ("down", 2)]

    run(main())


def test_the_sink_may_act_on_what_it_hears() -> None:
    async def main() -> None:
        one, other = await pair(linked=False)
        one.reactions.append(lambda: one.endpoint.hang_up(other.id))
        other.reactions.append(lambda: other.endpoint.send_packet(one.id, packet(1)))
        other.reactions.append(lambda: other.endpoint.dial(one.id))

        one.endpoint.dial(other.id)
        await quiet()

        assert one.heard == [("up", 2), ("down", 2), ("up", 2)]
        assert other.heard == [("up", 1), ("down", 1), ("up", 1)]

    run(main())


def test_a_name_is_resolved_and_held_to_the_same_rule_as_an_address() -> None:
    async def main() -> None:
        one, other = await pair(linked=False)
        strict = await Place(3, allow_loopback=False).open()
        other.knows(strict)
        for place in (one, strict):
            place.knows(other, f"nowhere.example:{other.address[1]}", f"here.example:{other.address[1]}")

        one.endpoint.dial(other.id)
        strict.endpoint.dial(other.id)
        await until(lambda: bool(one.heard and strict.heard))

        assert (one.heard, strict.heard) == ([("up", 2)], [("failed", 2)])

    run(main())


def test_a_name_server_that_does_not_answer_holds_nothing_up() -> None:
    answer = threading.Event()
    answered: list[str] = []

    def silent(name: str) -> list[str]:
        answer.wait(10.0)
        answered.append(name)
        return []

    async def main() -> None:
        place = Place(1, resolve=silent)
        await place.open()
        place.book.contacts[node_id(2)] = Contact(fingerprint=bytes(32), addresses=("slow.example:4433",))
        place.endpoint.send_packet(node_id(2), packet(1))
        await quiet(1.0)

        assert place.endpoint.gauges()["links_dialling"] == 1.0

    run(main())
    assert answered == []
    answer.set()


def test_the_second_address_is_tried_when_the_first_is_silent() -> None:
    async def main() -> None:
        one, other = await pair(linked=False)
        dead = await Place(3).open()
        await dead.endpoint.close()
        host, port = other.address
        one.knows(other, f"{dead.address[0]}:{dead.address[1]}", "nowhere.example:4433", f"{host}:{port}")

        one.endpoint.dial(other.id)
        await until(lambda: bool(one.heard))

        assert one.heard == [("up", 2)]

    run(main())


def test_ipv6_links_and_ipv4_links_meet_on_one_socket() -> None:
    async def main() -> None:
        one, other = await Place(1).open(host="::"), await Place(2).open()
        one.knows(other)
        other.knows(one, f"127.0.0.1:{one.address[1]}")

        one.endpoint.send_packet(other.id, packet(1))
        await until(lambda: bool(other.packets))
        one.endpoint.hang_up(other.id)
        await quiet()
        other.endpoint.send_packet(one.id, packet(2))
        await until(lambda: bool(one.packets))

        assert (one.packets, other.packets) == ([(2, packet(2))], [(1, packet(1))])

    run(main())


@pytest.mark.parametrize(("host", "key"), [("127.0.0.1", "process.base_port"), ("nohost", "node.listen")])
def test_an_address_that_cannot_be_had_is_a_mistake_of_the_operator(host: str, key: str) -> None:
    async def main() -> None:
        taken = await Place(1).open()

        with pytest.raises(ConfigError) as refused:
            await Place(2).open(host=host, port=taken.address[1])

        assert refused.value.key == key

    run(main())
