"""What a payload says once its onion is off: the byte format between a sender and its destination.

    kind (1) ‖ id (16) ‖ reply block (Geometry.surb_bytes) ‖ length (4) ‖ data ‖ zeros

| kind | id | reply block | data |
|---|---|---|---|
| 1 message | of the message, the same in every attempt | yes | yes |
| 2 drop cover | zeros | yes | none |
| 3 loop cover | of the loop | zeros | none |
| 4 acknowledgement | zeros | zeros | none |

Invariant: every payload is exactly as long as the geometry says, whatever it holds. Only the destination reads it.
"""

from typing import assert_never

from unlinkabledfl.errors import LocalProtocolError, PacketError
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.mixnet.packets import Drop, Envelope, Loop, Message
from unlinkabledfl.sphinx import Geometry, Surb

MESSAGE_ID_BYTES = 16
_LENGTH_BYTES = 4
_MESSAGE, _DROP, _LOOP, _ACKNOWLEDGEMENT = 1, 2, 3, 4
_NO_ID = bytes(MESSAGE_ID_BYTES)


class EnvelopeCodec:
    """Envelopes of one geometry, to payloads and back."""

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self._surb_at = 1 + MESSAGE_ID_BYTES
        self._length_at = self._surb_at + geometry.surb_bytes
        self._data_at = self._length_at + _LENGTH_BYTES
        self.data_bytes = geometry.payload_bytes - self._data_at
        self.acknowledgement = bytes([_ACKNOWLEDGEMENT]).ljust(geometry.payload_bytes, b"\0")

    def encode(self, envelope: Envelope) -> bytes:
        """The payload that says this."""
        start: bytes
        match envelope:
            case Message(message_id, data, surb):
                if len(data) > self.data_bytes:
                    raise LocalProtocolError(f"a message has {len(data)} bytes; a packet holds {self.data_bytes}")
                start = bytes([_MESSAGE]) + message_id + surb.to_bytes() + len(data).to_bytes(_LENGTH_BYTES) + data
            case Drop(surb):
                start = bytes([_DROP]) + _NO_ID + surb.to_bytes()
            case Loop(loop_id):
                start = bytes([_LOOP]) + loop_id
            case _:
                assert_never(envelope)
        return start.ljust(self._geometry.payload_bytes, b"\0")

    def decode(self, payload: bytes) -> Envelope:
        """What an authentic payload says; PacketError if its sender wrote nonsense."""
        match payload[0]:
            case 1:
                length = int.from_bytes(payload[self._length_at : self._data_at])
                if length > self.data_bytes:
                    raise PacketError("bad_envelope", f"claims {length} bytes of data, holds {self.data_bytes} at most")
                data = payload[self._data_at : self._data_at + length]
                return Message(self._id(payload), data, self._surb(payload))
            case 2:
                return Drop(self._surb(payload))
            case 3:
                return Loop(self._id(payload))
            case kind:
                raise PacketError("bad_envelope", f"unknown kind {kind}")

    def check_acknowledgement(self, payload: bytes) -> None:
        """PacketError unless the destination's reply is an acknowledgement."""
        if payload != self.acknowledgement:
            raise PacketError("bad_acknowledgement", "a reply block came back with something else")

    def _id(self, payload: bytes) -> MessageId:
        return MessageId(payload[1 : self._surb_at])

    def _surb(self, payload: bytes) -> Surb:
        return Surb.from_bytes(payload[self._surb_at : self._length_at], self._geometry)
