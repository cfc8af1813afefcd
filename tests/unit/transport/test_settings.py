"""Settings of an endpoint: what cannot work is refused where it is written."""

import math
from typing import Any

import pytest

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.transport.settings import EndpointSettings


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"datagram_bytes": 1_199}, "process.datagram_bytes"),
        ({"datagram_bytes": 16_385}, "process.datagram_bytes"),
        ({"packet_bytes": 0}, "links.packet_bytes"),
        ({"links_max": 0}, "process.links_max"),
        ({"handshakes_max": -1}, "process.handshakes_max"),
        ({"keep_alive_s": 30.0}, "process.keep_alive_s"),
        ({"handshake_timeout_s": 0.0}, "process.handshake_timeout_s"),
        ({"idle_timeout_s": math.inf}, "process.idle_timeout_s"),
        ({"backoff_max_s": math.nan}, "process.backoff_max_s"),
        ({"dial_queue_packets": 65}, "process.dial_queue_packets"),
    ],
)
def test_what_cannot_work_names_its_key(settings: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        EndpointSettings(**({"packet_bytes": 10_553} | settings))

    assert refused.value.key == key


def test_the_defaults_work() -> None:
    assert EndpointSettings(packet_bytes=10_553).datagram_bytes == 1_280
