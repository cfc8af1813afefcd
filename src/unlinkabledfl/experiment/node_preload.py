"""What the forkserver of mix processes does once, so that all of them share it. Importing this module has effects.

Much is set up only when it is first used: tables of the cryptographic libraries, their bindings, the parsers of
messages. A process that does so after the fork has its own copy. So one packet is wrapped and peeled here, one link is
made in memory, and one fragment is written, before anything is forked. No key that is made here is used afterwards.
"""

import secrets

import numpy as np

import unlinkabledfl.experiment.node_main  # noqa: F401 - to have it imported is the purpose
from unlinkabledfl.fragments import FragmentEncoder, StateLayout, plan_grid
from unlinkabledfl.fragments.codecs import codec_by_name
from unlinkabledfl.mixnet.descriptor import FINGERPRINT_BYTES, parse, sign
from unlinkabledfl.mixnet.replay import ReplayWindow
from unlinkabledfl.sphinx import Geometry, Hop, NodeId, Sphinx
from unlinkabledfl.transport.certificates import LinkIdentity
from unlinkabledfl.transport.quic import Connections
from unlinkabledfl.transport.settings import EndpointSettings

__all__ = ["rehearse"]

_FLIGHTS = 8  # of a handshake and a little more


def rehearse() -> None:
    """Do each thing once that a node does all the time."""
    geometry = Geometry()
    _rehearse_packet(geometry)
    _rehearse_link(geometry.packet_bytes)
    _rehearse_fragment(geometry.payload_bytes)


def _rehearse_packet(geometry: Geometry) -> None:
    sphinx = Sphinx(geometry)
    keys = [sphinx.generate_key(secrets.token_bytes) for _ in range(2)]
    path = [Hop(NodeId(secrets.token_bytes(32)), key.public_bytes) for key in keys]
    sphinx.make_surb(path, entropy=secrets.token_bytes)
    packet = sphinx.wrap(path, bytes(geometry.payload_bytes), entropy=secrets.token_bytes)
    sphinx.unwrap(packet, key=keys[0], replays=ReplayWindow(capacity=1))
    sphinx.unwrap_batch([packet] * 8, key=keys[0], replays=ReplayWindow(capacity=8))
    descriptor = sign(
        secrets.token_bytes(32),
        serial=1,
        epoch=0,
        public_key=keys[0].public_bytes,
        fingerprint=bytes(FINGERPRINT_BYTES),
        valid_until_s=60,
        addresses=("192.0.2.1:4433",),
    )
    parse(descriptor.data, now_s=0.0, allow_loopback=False)


def _rehearse_link(packet_bytes: int) -> None:
    identity = LinkIdentity.generate()
    connections = Connections(identity, EndpointSettings(packet_bytes=packet_bytes))
    address = ("192.0.2.1", 4433)
    dialler = connections.dial(address, fingerprint=identity.fingerprint, datagram_bytes=1_280, now_s=0.0)
    listener = connections.accept(
        original_connection_id=dialler.original_destination_connection_id,
        retry_connection_id=None,
        first_datagram_bytes=1_280,
    )
    for flight in range(_FLIGHTS):
        now_s = flight / 10
        for sender, receiver in ((dialler, listener), (listener, dialler)):
            for datagram, _ in sender.datagrams_to_send(now=now_s):
                receiver.receive_datagram(datagram, address, now=now_s)
            while receiver.next_event() is not None:
                pass
    stream = dialler.get_next_available_stream_id()
    dialler.send_stream_data(stream, bytes(packet_bytes))
    for datagram, _ in dialler.datagrams_to_send(now=1.0):
        listener.receive_datagram(datagram, address, now=1.0)
    while listener.next_event() is not None:
        pass


def _rehearse_fragment(capacity_bytes: int) -> None:
    layout = StateLayout({"weight": np.ones(1_000, np.float32)})
    codec = codec_by_name("fit")
    grid = plan_grid(layout, codec, capacity_bytes=capacity_bytes)
    FragmentEncoder(grid, codec, capacity_bytes=capacity_bytes)


rehearse()
