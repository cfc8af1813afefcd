"""How the QUIC library is set up for links: the one place that knows its options.

The dialler's TLS checks two things of the listener: that it holds the key of the certificate that it shows, and that
this certificate has the expected fingerprint. It asks no authority and reads no name or date, because links know
certificates by fingerprint alone. Key exchange is X25519 with ML-KEM-768, the library's default.
"""

import ssl
from dataclasses import replace
from typing import Final

from qh3.quic.configuration import QuicConfiguration
from qh3.quic.connection import QuicConnection

from unlinkabledfl.transport.certificates import LinkIdentity
from unlinkabledfl.transport.settings import EndpointSettings
from unlinkabledfl.transport.udp import Address

__all__ = ["CONNECTION_ID_BYTES", "Connections"]

CONNECTION_ID_BYTES: Final = 8

_ALPN: Final = "unlinkabledfl-link/1"
_ED25519: Final = 0x0807
_INITIAL_RTT_S: Final = 0.1
"""Before it is measured; decides when a lost first datagram is sent again (after three times as long)."""
_ACCEPTED_DATAGRAM_MAX_BYTES: Final = 1_472
"""The library's diallers announce that they receive no more, and its listeners keep to that."""


class Connections:
    """Makes the connections of one endpoint, dialled and accepted."""

    __slots__ = ("_accepting", "_dialling", "_settings")

    def __init__(self, identity: LinkIdentity, settings: EndpointSettings) -> None:
        self._settings = settings
        common = QuicConfiguration(
            alpn_protocols=[_ALPN],
            connection_id_length=CONNECTION_ID_BYTES,
            idle_timeout=settings.idle_timeout_s,
            max_data=settings.receive_window_bytes,
            max_stream_data=settings.receive_window_bytes,
            max_datagram_size=settings.datagram_bytes,
            probe_datagram_size=False,
            initial_rtt=_INITIAL_RTT_S,
        )
        self._accepting = replace(common, is_client=False)
        self._accepting.load_cert_chain(identity.certificate_pem, identity.private_key_pem)
        self._dialling = replace(common, verify_mode=ssl.CERT_NONE, signature_algorithms=[_ED25519])

    def dial(self, address: Address, *, fingerprint: bytes, datagram_bytes: int, now_s: float) -> QuicConnection:
        """Return a connection that is about to send its first datagram to this address."""
        configuration = replace(self._dialling, assert_fingerprint=fingerprint.hex(), max_datagram_size=datagram_bytes)
        connection = QuicConnection(configuration=configuration)
        connection.connect(address, now=now_s)
        return connection

    def accept(
        self, *, original_connection_id: bytes, retry_connection_id: bytes | None, first_datagram_bytes: int
    ) -> QuicConnection:
        """Return a connection for a first datagram; its size is what the path was seen to carry."""
        datagram_bytes = min(self._settings.datagram_bytes, first_datagram_bytes, _ACCEPTED_DATAGRAM_MAX_BYTES)
        return QuicConnection(
            configuration=replace(self._accepting, max_datagram_size=datagram_bytes),
            original_destination_connection_id=original_connection_id,
            retry_source_connection_id=retry_connection_id,
        )


def alpn_fits(protocol: str | None) -> bool:
    """Say whether the other side speaks this protocol."""
    return protocol == _ALPN
