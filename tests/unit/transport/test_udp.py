"""A socket that moves many datagrams a call, or one where the kernel cannot do better, and never another order."""

import errno
import socket
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.mixnet.limits import Counters
from unlinkabledfl.transport.udp import Address, UdpSocket, runs

LOOPBACK = "127.0.0.1"


class Ends:
    """Two sockets; what one sends the other reads at once."""

    def __init__(self, *, offload: bool = True) -> None:
        self.counters = Counters()
        self.one = UdpSocket(host=LOOPBACK, port=0, counters=self.counters, offload=offload)
        self.other = UdpSocket(host=LOOPBACK, port=0, counters=self.counters, offload=offload)

    def read(self) -> list[bytes]:
        return [
            arrival.data[start : start + arrival.segment_bytes]
            for arrival in self.other.receive(1_000)
            for start in range(0, len(arrival.data), arrival.segment_bytes)
        ]


@pytest.fixture(params=[True, False], ids=["offload", "one by one"])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    found = Ends(offload=request.param)
    yield found
    found.one.close()
    found.other.close()


DATAGRAMS = [
    *(bytes([number]) * 1_280 for number in range(80)),
    b"short",
    b"x" * 1_200,
    b"y" * 1_201,
    *(bytes([number]) * 16_000 for number in range(9)),
    b"z",
]


def test_datagrams_arrive_whole_and_in_order_however_many_there_are(ends: Ends) -> None:
    ends.one.send(DATAGRAMS, ends.other.address)

    assert ends.read() == DATAGRAMS
    assert ends.counters.as_dict() == {}


def test_a_read_is_bounded(ends: Ends) -> None:
    ends.one.send([bytes(1_280)] * 200, ends.other.address)

    assert len(list(ends.other.receive(2))) == 2


def test_with_offload_a_few_reads_take_many_datagrams() -> None:
    ends = Ends()
    if not ends.one.segments:
        pytest.skip("this kernel has no UDP_SEGMENT")
    ends.one.send([bytes(1_280)] * 50, ends.other.address)

    assert len(list(ends.other.receive(50))) == 1
    ends.one.close()
    ends.other.close()


def test_a_datagram_that_the_network_refuses_is_counted_and_the_others_go(ends: Ends) -> None:
    ends.one.send([b"before", bytes(65_530), b"after"], ends.other.address)

    assert ends.read() == [b"before", b"after"]
    assert ends.counters.as_dict() == {"udp_too_long": 1}


class Balky(UdpSocket):
    """A socket whose system calls fail as the test says."""

    def __init__(self, counters: Counters) -> None:
        super().__init__(host=LOOPBACK, port=0, counters=counters)
        self.failures: list[int] = []
        self.calls: list[int] = []

    def _call(self, datagrams: Sequence[bytes], segment_bytes: int, address: Address) -> None:
        self.calls.append(len(datagrams))
        if self.failures and (failure := self.failures.pop(0)):
            raise OSError(failure, "as told")
        super()._call(datagrams, segment_bytes, address)


@pytest.fixture
def balky() -> Iterator[tuple[Balky, Ends]]:
    found = Ends()
    one = Balky(found.counters)
    yield one, found
    for each in (one, found.one, found.other):
        each.close()


def test_a_full_socket_keeps_the_rest_in_order_until_it_can_send(balky: tuple[Balky, Ends]) -> None:
    one, ends = balky
    one.failures = [0, errno.EAGAIN]
    one.send([b"a" * 10, b"b" * 20], ends.other.address)
    one.send([b"c" * 30], ends.other.address)
    assert (ends.read(), one.has_backlog) == ([b"a" * 10], True)

    one.flush()

    assert (ends.read(), one.has_backlog) == ([b"b" * 20, b"c" * 30], False)


def test_what_is_kept_is_bounded_and_the_excess_counted(balky: tuple[Balky, Ends]) -> None:
    one, ends = balky
    one.failures = [errno.EAGAIN]
    one.send([b"x"] * 5_000, ends.other.address)

    assert ends.counters.as_dict() == {"udp_backlog_full": 904}


def test_a_network_card_that_cannot_segment_gets_one_datagram_a_call_from_then_on(balky: tuple[Balky, Ends]) -> None:
    one, ends = balky
    if not one.segments:
        pytest.skip("this kernel has no UDP_SEGMENT")
    one.failures = [errno.EIO]

    one.send([b"same"] * 3, ends.other.address)
    one.send([b"size"] * 2, ends.other.address)

    assert ends.read() == [b"same"] * 3 + [b"size"] * 2
    assert one.calls == [3, 1, 1, 1, 1, 1]


def test_an_error_of_one_destination_does_not_end_segmentation(balky: tuple[Balky, Ends]) -> None:
    one, ends = balky
    if not one.segments:
        pytest.skip("this kernel has no UDP_SEGMENT")
    one.failures = [errno.EHOSTUNREACH] * 4

    one.send([b"lost"] * 3, ends.other.address)
    one.send([b"good"] * 3, ends.other.address)

    assert (ends.read(), one.calls) == ([b"good"] * 3, [3, 1, 1, 1, 3])
    assert ends.counters.as_dict() == {"udp_write_error": 3}


def test_fragments_are_forbidden() -> None:
    ends = Ends()

    assert ends.one.socket.getsockopt(socket.IPPROTO_IP, 10) == 3  # IP_MTU_DISCOVER, IP_PMTUDISC_PROBE
    ends.one.close()
    ends.other.close()


@pytest.mark.parametrize(
    ("host", "key"), [("127.0.0.1", "process.base_port"), ("192.0.2.77", "process.base_port"), ("here", "node.listen")]
)
def test_an_address_that_cannot_be_bound_is_the_operators_to_change(host: str, key: str) -> None:
    taken = UdpSocket(host=LOOPBACK, port=0, counters=Counters())

    with pytest.raises(ConfigError) as refused:
        UdpSocket(host=host, port=taken.address[1], counters=Counters())

    assert refused.value.key == key
    taken.close()


@given(st.lists(st.integers(1, 3).map(lambda length: b"d" * (1_000 * length)), max_size=200))
def test_a_run_is_equal_datagrams_and_at_most_one_shorter_at_its_end(datagrams: list[bytes]) -> None:
    found = list(runs(datagrams))

    assert [datagram for run in found for datagram in run] == datagrams
    for run in found:
        *equal, last = run
        assert {len(datagram) for datagram in equal} <= {len(run[0])}
        assert len(last) <= len(run[0])
        assert len(run) <= 64
        assert len(run) == 1 or sum(map(len, run)) <= 65_000
