"""A participant's own model on its way out: which ranges, in which order, how fast.

It composes `Selection`, `Payload` and `Sending`. Fragments are handed to the mix in slices: some of what is encoded
already, and at most one that is not. The mix's queue is kept as long as it needs to never lack one, and no longer:
what waits here instead of there is not encoded yet, and can be withdrawn when there is a newer model.

Invariant: what the mix refuses for want of room is offered again, the same bytes, once something of ours has ended.
"""

from collections.abc import Set as AbstractSet

import numpy as np

from unlinkabledfl.errors import QueueFullError
from unlinkabledfl.fragments import FragmentDecoder, FragmentEncoder, Vector, selection_by_name
from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.items import MessageId
from unlinkabledfl.mixnet.mix_node import MixNode
from unlinkabledfl.node.payload import Disguise, Payload
from unlinkabledfl.node.sending import Sending
from unlinkabledfl.node.settings import ParticipantSettings
from unlinkabledfl.sphinx import Entropy, NodeId

_HANDED_IN_A_SLICE = 8


class Sharing:
    """What one participant sends. `gone` is a live view of the partners that are gone."""

    __slots__ = ("_destinations", "_mix", "_mix_is_full", "_payload", "_queue_ahead", "_selection", "_shared",
                 "_trigger_change", "accounts")  # fmt: skip

    def __init__(
        self,
        *,
        mix: MixNode,
        settings: ParticipantSettings,
        decoder: FragmentDecoder,
        capacity_bytes: int,
        destinations: tuple[NodeId, ...],
        gone: AbstractSet[NodeId],
        entropy: Entropy,
        disguise: Disguise | None,
    ) -> None:
        payload, grid = settings.payload, decoder.grid
        self._mix = mix
        self._selection = selection_by_name(payload.selection, grid, ratio=payload.ratio)
        self._payload = Payload(
            encoder=FragmentEncoder(grid, payload.make_codec(), capacity_bytes=capacity_bytes, bound=payload.bound),
            decoder=decoder,
            entropy=entropy,
            error_feedback=payload.error_feedback,
            disguise=disguise,
        )
        self.accounts = Sending(draw=Draw(entropy), gone=gone)
        self._destinations = destinations
        self._queue_ahead = settings.queue_ahead
        self._trigger_change = settings.rounds.trigger_change
        self._shared: Vector | None = None  # what was sent last, kept only where a trigger compares with it
        self._mix_is_full = False

    def share(self, vector: Vector, *, round_number: int) -> None:
        """Begin to send this model, if it has changed enough. It must not change any more."""
        if self._trigger_change:
            if self._shared is not None and _change(vector, self._shared) < self._trigger_change:
                return
            self._shared = vector
        payload = self._payload
        ranges = self._selection.choose(vector, rng=payload.generator())
        payload.begin(vector, round_number=round_number, ranges=ranges, takers=len(self._destinations))
        self.accounts.share(ranges, self._destinations)

    def has_work(self) -> bool:
        """Whether there is a fragment to hand over, and room for it."""
        return self.accounts.planned > 0 and not self._mix_is_full and self._mix.mixer.own_waiting < self._queue_ahead

    def hand_over(self, *, now_s: float) -> None:
        """Hand some fragments to the mix, and encode at most one range for that."""
        payload, sending = self._payload, self.accounts
        may_encode = True
        for _ in range(_HANDED_IN_A_SLICE):
            if not self.has_work() or (place := sending.next_place()) is None:
                return
            if not payload.is_ready(place.index, place.destination):
                if not may_encode:
                    return
                may_encode = False
            data = payload.fragment(place.index, place.destination)
            try:
                message_id = self._mix.send_message(place.destination, data, now_s=now_s)
            except QueueFullError:
                self._mix_is_full = True
                return
            sending.taken(message_id)
            payload.taken(place.index, place.destination)

    def receive_acknowledgement(self, message_id: MessageId) -> NodeId | None:
        """Return whose fragment ended well; None if the message was none of ours."""
        self._mix_is_full = False
        return self.accounts.receive_acknowledgement(message_id)

    def give_up(self, message_id: MessageId) -> NodeId | None:
        """Return whose fragment ended without acknowledgement; None if the message was none of ours."""
        self._mix_is_full = False
        return self.accounts.give_up(message_id)


def _change(vector: Vector, before: Vector) -> float:
    """Return how far the vector has gone, as a share of where it was."""
    length = float(np.linalg.norm(before))
    return float(np.linalg.norm(vector - before)) / length if length else float("inf")
