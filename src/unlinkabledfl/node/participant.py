"""One participant: a mix, a pool of fragments, and rounds of local training between which they meet.

    new --start-------------------------------> SendControl, relaying
    relaying --begin--------------------------> TrainRequested, training
    training --training finished or failed----> exchanging
    exchanging --exchange is over-------------> aggregating
    aggregating --last range is combined------> ModelReady, evaluating
    evaluating --evaluated, rounds left-------> RoundFinished, TrainRequested, training
    evaluating --evaluated, none left---------> RoundFinished, Finished, over

It composes machines and decides little itself: `Rounds` when to do what, `Sharing` what goes out next, `Intake` what
came in, `Presence` who is waited for, `Ledger` what is reported; the mix carries it. Whatever state it is in, it
relays: packets of others, acknowledgements and cover go on while it trains, and after its last round.

Encoding and aggregation are done in slices, one range at a time, each at a timer that is due at once. Between two
slices the driver carries packets, so that work never holds up what others see of this node for longer than a slice.

Invariant: every fragment sent is acknowledged, given up or open; every fragment received is aggregated, late, refused
or held; rounds only go up, and a node whose training fails, or gives a model that no peer would accept, goes on with
the model that it had.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import assert_never

from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.fragments import Aggregation, FragmentDecoder, StateLayout, Vector, plan_grid
from unlinkabledfl.mixnet.events import (
    MessageAcknowledged,
    MessageGivenUp,
    MessageReceived,
    MixEvent,
    PeerChanged,
    SendControl,
    SendPacket,
)
from unlinkabledfl.mixnet.mix_node import MixNode
from unlinkabledfl.mixnet.packets import Opaque, PacketFormat
from unlinkabledfl.node.events import Finished, ModelReady, NodeEvent, PhaseChanged, RoundFinished, TrainRequested
from unlinkabledfl.node.intake import Intake
from unlinkabledfl.node.learner import State
from unlinkabledfl.node.ledger import Ledger, Totals, totals_of
from unlinkabledfl.node.masks import Masking, masks_for
from unlinkabledfl.node.presence import Presence
from unlinkabledfl.node.rounds import (
    AggregationDue,
    AllOver,
    ExchangeBegins,
    ModelDue,
    Phase,
    RoundOver,
    Rounds,
    RoundsEvent,
    TrainingDue,
)
from unlinkabledfl.node.settings import Exchange, ParticipantSettings
from unlinkabledfl.node.sharing import Sharing
from unlinkabledfl.sphinx import Entropy, NodeId

_SLICE_PAUSE_S = 1e-6
"""Lets time go on between two slices: a virtual clock would stand still for as long as there is work."""


class Participant:
    """What a driver sees of one node. Starts nothing when it is made, and draws no entropy."""

    __slots__ = (
        "_aggregation", "_bound", "_bytes_sent", "_events", "_exchange", "_intake", "_layout", "_ledger",
        "_packet_bytes", "_packets_sent", "_presence", "_rounds", "_sharing", "_state", "_timer_s", "_work_at_s", "mix",
        "node_id",
    )  # fmt: skip

    def __init__(
        self,
        *,
        mix: MixNode,
        packets: PacketFormat,
        settings: ParticipantSettings,
        exchange: Exchange,
        state: State,
        entropy: Entropy,
        masking: Masking | None = None,
    ) -> None:
        if mix.node_id in exchange.destinations or mix.node_id in exchange.expected_from:
            raise LocalProtocolError("a node does not exchange fragments with itself")
        self.mix = mix
        self.node_id = mix.node_id
        self._exchange = exchange
        self._packet_bytes = packets.packet_bytes
        self._bound = settings.payload.bound
        self._state = state
        self._layout = StateLayout(state)
        capacity_bytes = packets.data_bytes
        grid = plan_grid(self._layout, settings.payload.make_codec(), capacity_bytes=capacity_bytes)
        decoder = FragmentDecoder(grid, capacity_bytes=capacity_bytes, bound=self._bound)
        self._presence = Presence((*exchange.destinations, *exchange.expected_from), absent=exchange.absent)
        self._sharing = Sharing(
            mix=mix,
            settings=settings,
            decoder=decoder,
            capacity_bytes=capacity_bytes,
            destinations=exchange.destinations,
            gone=self._presence.gone,
            entropy=entropy,
            disguise=masks_for(
                settings.payload,
                own_id=mix.node_id,
                layout=self._layout,
                grid=grid,
                masking=masking,
                gone=self._presence.gone,
            ),
        )
        self._intake = Intake(settings=settings, decoder=decoder, partners=len(exchange.expected_from))
        self._rounds = Rounds(settings.rounds)
        self._ledger = Ledger()
        self._aggregation: Aggregation | None = None
        self._work_at_s: float | None = None
        self._timer_s: float | None = None
        self._packets_sent = 0
        self._bytes_sent = 0
        self._events: deque[NodeEvent] = deque()
        self._check_initial_state()

    # -- what can be asked at any time --------------------------------------------------------------------------

    @property
    def counters(self) -> Mapping[str, int]:
        """What the mix counted, by cause."""
        return self.mix.counters

    @property
    def state(self) -> State:
        """The model: as it was trained or aggregated last."""
        return self._state

    @property
    def round(self) -> int:
        """The round under way, or the one to begin with."""
        return self._rounds.round

    @property
    def totals(self) -> Totals:
        """What flowed so far."""
        return totals_of(
            self._sharing.accounts,
            self._intake.tally(),
            self.mix.counters,
            packets_sent=self._packets_sent,
            bytes_sent=self._bytes_sent,
        )

    def gauges(self) -> dict[str, float]:
        """What can be measured at any instant, by the names in docs/metrics.md."""
        totals = self.totals
        return {
            "round": float(self._rounds.round),
            "completeness_now": self._intake.collecting.completeness(),
            "queue_own": float(self.mix.mixer.own_waiting),
            "queue_transit": float(self.mix.mixer.transit_waiting),
            "fragments_planned": float(self._sharing.accounts.planned),
            "fragments_open": float(len(self._sharing.accounts)),
            "fragments_held": float(self._intake.tally().held),
            "peers_routable": float(self.mix.peers.routable_count),
            "peers_gone": float(len(self._presence.gone)),
            "cover_share": totals.cover_share,
            "packets_sent": float(totals.packets_sent),
            "packets_relayed": float(totals.packets_relayed),
            "bytes_sent": float(totals.bytes_sent),
        }

    # -- inputs of the mix --------------------------------------------------------------------------------------

    def start(self, *, now_s: float) -> None:
        """Begin to emit and to relay; no training yet."""
        self.mix.start(now_s=now_s)
        self._settle(now_s)

    def receive_packet(self, packet: Opaque, *, from_peer: NodeId, now_s: float) -> None:
        """A neighbour handed us a packet."""
        self.mix.receive_packet(packet, from_peer=from_peer, now_s=now_s)
        self._settle(now_s)

    def receive_packets(self, packets: Sequence[tuple[NodeId, Opaque]], *, now_s: float) -> None:
        """Several packets, each with the neighbour that handed it over: as one after the other, for less work."""
        self.mix.receive_packets(packets, now_s=now_s)
        self._settle(now_s)

    def receive_control(self, data: bytes, *, from_peer: NodeId, now_s: float) -> None:
        """A neighbour handed us a control message."""
        self.mix.receive_control(data, from_peer=from_peer, now_s=now_s)
        self._settle(now_s)

    def link_up(self, peer: NodeId, *, now_s: float) -> bool:
        """A link to this peer stands; false to have it closed."""
        wanted = self.mix.link_up(peer, now_s=now_s)
        self._see(peer)
        self._settle(now_s)
        return wanted

    def link_down(self, peer: NodeId, *, now_s: float) -> None:
        """The link to this peer is gone."""
        self.mix.link_down(peer, now_s=now_s)
        self._settle(now_s)

    def dial_failed(self, peer: NodeId, *, now_s: float) -> None:
        """This peer does not answer."""
        self.mix.dial_failed(peer, now_s=now_s)
        self._settle(now_s)

    def packet_unsent(self, event: SendPacket, *, now_s: float) -> None:
        """The link could not take this packet."""
        self._packets_sent -= 1
        self._bytes_sent -= self._packet_bytes
        self.mix.packet_unsent(event, now_s=now_s)
        self._settle(now_s)

    def control_unsent(self, event: SendControl, *, now_s: float) -> None:
        """The link could not take this control message."""
        self._bytes_sent -= self._packet_bytes
        self.mix.control_unsent(event, now_s=now_s)
        self._settle(now_s)

    # -- inputs of the rounds -----------------------------------------------------------------------------------

    def expect_absence(self, peer: NodeId) -> None:
        """Before the first round: this partner has not come, so wait for it no more than for a later newcomer."""
        self._presence.foresee(peer)

    def begin(self, *, now_s: float) -> None:
        """Begin the first round."""
        self._rounds.begin(now_s=now_s)
        self._settle(now_s)

    def training_finished(self, *, round_number: int, state: State, metrics: Mapping[str, float], now_s: float) -> None:
        """The training that was asked for is done."""
        self._check_answer(round_number, Phase.TRAIN)
        self._ledger.notes.train_metrics = dict(metrics)
        if self._is_acceptable(self._layout.flatten(state)):
            self._state = state
        else:
            self._ledger.notes.train_failed = True
        self._rounds.trained(now_s=now_s)
        self._settle(now_s)

    def training_failed(self, *, round_number: int, reason: str, now_s: float) -> None:
        """It could not be done: the round goes on with the model as it was. The driver logs the reason."""
        _ = reason
        self._check_answer(round_number, Phase.TRAIN)
        self._ledger.notes.train_failed = True
        self._rounds.trained(now_s=now_s)
        self._settle(now_s)

    def peer_trained(self, *, round_number: int, now_s: float) -> None:
        """Whoever started us and a peer knows that it has trained for this round only now."""
        self._rounds.peer_trained(round_number, now_s=now_s)
        self._settle(now_s)

    def evaluation_finished(self, *, round_number: int, metrics: Mapping[str, float], now_s: float) -> None:
        """The model is loaded, and measured if that was asked for."""
        self._check_answer(round_number, Phase.EVALUATE)
        notes = self._ledger.notes
        notes.evaluation = dict(metrics)
        self._rounds.evaluated(
            completeness=notes.completeness, furthest=self._intake.collecting.furthest(), now_s=now_s
        )
        self._settle(now_s)

    # -- time and events ----------------------------------------------------------------------------------------

    def next_timer_s(self) -> float | None:
        """When `handle_timer` is due."""
        return self._timer_s

    def handle_timer(self, *, now_s: float) -> None:
        """Do all that is due, and no more than one slice of work."""
        due_s = self._timer_s
        if due_s is None or now_s < due_s:
            return
        self._rounds.starved(now_s - due_s, now_s=now_s)
        mix_s = self.mix.next_timer_s()
        if mix_s is not None and mix_s <= now_s:
            self.mix.handle_timer(now_s=now_s)
        self._rounds.handle_timer(now_s=now_s)
        if self._work_at_s is not None and self._work_at_s <= now_s:
            self._work_at_s = None
            self._aggregate_slice(now_s)
            self._sharing.hand_over(now_s=now_s)
            self._settle(now_s, work_at_s=now_s + _SLICE_PAUSE_S)
        else:
            self._settle(now_s)

    def next_event(self) -> NodeEvent | None:
        """The next thing for the driver."""
        return self._events.popleft() if self._events else None

    # -- the machines inside ------------------------------------------------------------------------------------

    def _settle(self, now_s: float, *, work_at_s: float | None = None) -> None:
        """Carry events from machine to machine until all are quiet, see whether there is work, and set the timer."""
        next_mix_event, next_round_event = self.mix.next_event, self._rounds.next_event
        busy = True
        while busy:
            busy = False
            while (event := next_mix_event()) is not None:
                if type(event) is SendPacket:
                    self._packets_sent += 1
                    self._bytes_sent += self._packet_bytes
                    self._events.append(event)
                else:
                    self._follow_mix(event)
                    busy = True
            while (turn := next_round_event()) is not None:
                self._follow_rounds(turn)
                busy = True
            if busy and self._rounds.phase is Phase.EXCHANGE:
                self._check_complete(now_s)
        if self._work_at_s is None and (self._aggregation is not None or self._sharing.has_work()):
            self._work_at_s = now_s if work_at_s is None else work_at_s
        self._set_timer()

    def _set_timer(self) -> None:
        # Asked for several times a packet, so it is worked out once.
        due_s = self.mix.next_timer_s()
        work_at_s, round_s = self._work_at_s, self._rounds.next_timer_s()
        if work_at_s is not None and (due_s is None or work_at_s < due_s):
            due_s = work_at_s
        if round_s is not None and (due_s is None or round_s < due_s):
            due_s = round_s
        self._timer_s = due_s

    def _follow_mix(self, event: MixEvent) -> None:
        match event:
            case MessageReceived(data=data):
                self._intake.receive(data)
            case MessageAcknowledged(message_id=message_id, round_trip_s=round_trip_s):
                peer = self._sharing.receive_acknowledgement(message_id)
                if peer is not None:
                    self._ledger.round_trip(round_trip_s)
                    self._see(peer)
            case MessageGivenUp(message_id=message_id):
                peer = self._sharing.give_up(message_id)
                if peer is not None:
                    self._presence.given_up(peer)
            case PeerChanged(peer=peer, routable=routable, reason=reason):
                if not routable:
                    self._presence.unroutable(peer, reason)
                elif reason in _NEWS:
                    self._see(peer)
                self._events.append(event)
            case SendControl():
                self._bytes_sent += self._packet_bytes
                self._events.append(event)
            case SendPacket():
                raise LocalProtocolError("packets are passed on where events are drained")
            case _:
                assert_never(event)

    def _follow_rounds(self, event: RoundsEvent) -> None:
        match event:
            case TrainingDue(round_number=number):
                self._intake.advance(number)
                self._ledger.begin()
                self._tell_phase(Phase.TRAIN)
                self._events.append(TrainRequested(round_number=number))
            case ExchangeBegins(round_number=number):
                self._presence.exchange_begins()
                self._sharing.share(self._layout.flatten(self._state), round_number=number)
                self._tell_phase(Phase.EXCHANGE)
            case AggregationDue():
                self._aggregation = self._intake.aggregation(self._layout.flatten(self._state))
                self._tell_phase(Phase.AGGREGATE)
            case ModelDue(round_number=number, evaluate=evaluate):
                self._tell_phase(Phase.EVALUATE)
                self._events.append(ModelReady(round_number=number, state=self._state, evaluate=evaluate))
            case RoundOver(round_number=number):
                report = self._ledger.close(event, self.totals, peers_routable=self.mix.peers.routable_count)
                self._events.append(RoundFinished(round_number=number, metrics=report))
            case AllOver(ending=ending):
                self._tell_phase(Phase.IDLE)
                self._events.append(Finished(ending=ending))
            case _:
                assert_never(event)

    def _tell_phase(self, phase: Phase) -> None:
        self._events.append(PhaseChanged(round_number=self._rounds.round, phase=phase.value))

    def _check_answer(self, round_number: int, phase: Phase) -> None:
        if (round_number, phase) != (self._rounds.round, self._rounds.phase):
            raise LocalProtocolError(
                f"an answer for phase {phase} of round {round_number} in phase {self._rounds.phase} of round"
                f" {self._rounds.round}"
            )

    # -- the exchange -----------------------------------------------------------------------------------------

    def _see(self, peer: NodeId) -> None:
        if self._presence.alive(peer):
            self._sharing.accounts.restore(peer)

    def _check_complete(self, now_s: float) -> None:
        if not self._sharing.accounts.is_settled:
            return
        absent = self._presence.not_waited_for(self._exchange.expected_from)
        if self._intake.collecting.is_complete(absent=absent):
            self._rounds.complete(now_s=now_s)

    # -- aggregating --------------------------------------------------------------------------------------------

    def _aggregate_slice(self, now_s: float) -> None:
        if self._aggregation is None or (result := self._aggregation.step()) is None:
            return
        self._aggregation = None
        self._state = self._layout.unflatten(result.vector, self._state)
        notes = self._ledger.notes
        notes.aggregate = result
        notes.expected = self._intake.collecting.expected
        notes.collected = self._intake.collecting.received()
        notes.completeness = self._intake.collecting.completeness()
        self._rounds.aggregated(now_s=now_s)

    def _is_acceptable(self, vector: Vector) -> bool:
        # Written so that NaN fails it.
        return bool(vector.max() <= self._bound and vector.min() >= -self._bound)

    def _check_initial_state(self) -> None:
        if not self._is_acceptable(self._layout.flatten(self._state)):
            raise ConfigError(
                key="payload.bound",
                got=self._bound,
                takes="a bound on every value of the model that a node begins with",
            )


_NEWS = ("added", "updated")
