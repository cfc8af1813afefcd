"""What a participant is told: how its rounds turn, what it sends of a model, how it aggregates, and with whom.

Keys in messages to the operator are those of a scenario (`aggregation.deadline_s`), whoever builds these objects.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from math import inf, isfinite
from typing import Final

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.fragments import DEFAULT_BOUND, Policy, Rule, Staleness, codecs, rule_by_name, selection
from unlinkabledfl.fragments.codecs import FIT_BITS, Codec, codec_by_name
from unlinkabledfl.fragments.framing import MAX_ROUND
from unlinkabledfl.fragments.pool import MAX_PER_RANGE
from unlinkabledfl.sphinx import NodeId

__all__ = [
    "OBFUSCATION_PEERS", "OBFUSCATION_SCALE", "AggregationSettings", "Completion", "Exchange", "ParticipantSettings",
    "PayloadSettings", "RoundSettings", "check_masks_cancel",
]  # fmt: skip


OBFUSCATIONS: Final = ("none", "masks")
OBFUSCATION_SCALE: Final = 3.0
OBFUSCATION_PEERS: Final = 256


class Completion(StrEnum):
    """When the exchange of a round is over."""

    COMPLETENESS = "completeness"
    """Every fragment expected is here and every one of our own has ended; at the deadline otherwise."""
    DEADLINE = "deadline"
    """At the deadline, whatever is here: no round tells how fast its fragments were."""
    CADENCE = "cadence"
    """At the next multiple of the cadence since the first round began."""
    IMMEDIATE = "immediate"
    """At once: aggregate what is here after each local training, and wait for nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundSettings:
    """How many rounds, and how one ends."""

    rounds: int
    """The number of the federation's last round; the first is 1."""
    first_round: int = 1
    """The round in which this node joins, or goes on after a break."""
    last_round: int | None = None
    """The round after which the schedule has this node leave; none: it stays."""
    completion: Completion = Completion.COMPLETENESS
    deadline_s: float = 600.0
    """How long an exchange lasts at most. Time that the node itself did not get does not count."""
    cadence_s: float = 60.0
    trigger_change: float = 0.0
    """Send a model only if it differs by this share, in norm, from the one sent last; 0: send always."""
    evaluate_every: int = 1
    """Evaluate after every so many rounds, and after the last one; 0: after the last one only."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, naming the key."""
        # A scenario, or a file, says it as a plain string.
        object.__setattr__(self, "completion", _completion(self.completion))
        _check_whole("run.rounds", self.rounds, least=1, most=MAX_ROUND)
        _check_whole("topology.join", self.first_round, least=1, most=self.rounds)
        if self.last_round is not None:
            _check_whole("topology.exit", self.last_round, least=self.first_round, most=self.rounds)
        _check_seconds("aggregation.deadline_s", self.deadline_s)
        _check_seconds("aggregation.cadence_s", self.cadence_s)
        _check_whole("monitoring.evaluate_every", self.evaluate_every, least=0)
        if not 0.0 <= self.trigger_change < inf:
            raise ConfigError(key="aggregation.trigger_change", got=self.trigger_change, takes="a share from 0")
        if self.trigger_change and self.completion is Completion.COMPLETENESS:
            raise ConfigError(
                key="aggregation.trigger_change",
                got=self.trigger_change,
                takes="0 with aggregation.completion = completeness",
                hint="peers would wait for a model that is not sent; with `cadence` and `immediate` they do not",
            )

    @property
    def end(self) -> int:
        """The last round of this node."""
        return self.rounds if self.last_round is None else self.last_round

    def evaluates(self, round_number: int) -> bool:
        """Whether the model is evaluated after this round."""
        if round_number == self.end:
            return True
        return self.evaluate_every > 0 and round_number % self.evaluate_every == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadSettings:
    """How a model becomes fragments. All nodes of a federation share these, or their grids differ."""

    codec: str = "fit"
    bits: float = FIT_BITS
    """What the codec `fit` plans for."""
    ratio: float = 1.0
    """The share of all ranges that is sent each round."""
    selection: str = "random"
    error_feedback: bool = False
    bound: float = DEFAULT_BOUND
    """No value sent or accepted is larger."""
    obfuscation: str = "none"
    """What keeps a destination from recognising senders by their values: `masks` (`node.masks`)."""
    obfuscation_scale: float = OBFUSCATION_SCALE
    """How large masks are, in typical deviations of a model of that shape."""
    obfuscation_peers: int = OBFUSCATION_PEERS
    """With how many other senders a mask is shared at most."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, naming the key."""
        if self.codec not in codecs.NAMES:
            raise ConfigError(key="payload.codec", got=self.codec, takes=", ".join(codecs.NAMES))
        if self.selection not in selection.NAMES:
            raise ConfigError(key="payload.selection", got=self.selection, takes=", ".join(selection.NAMES))
        self.make_codec()
        if not 0.0 < self.ratio <= 1.0:
            raise ConfigError(key="payload.ratio", got=self.ratio, takes="a share above 0, up to 1")
        if not 0.0 < self.bound < inf:
            raise ConfigError(key="payload.bound", got=self.bound, takes="a number above 0")
        if self.obfuscation not in OBFUSCATIONS:
            raise ConfigError(key="payload.obfuscation", got=self.obfuscation, takes=", ".join(OBFUSCATIONS))
        if not 0.0 < self.obfuscation_scale < inf:
            raise ConfigError(key="payload.obfuscation_scale", got=self.obfuscation_scale, takes="a number above 0")
        _check_whole("payload.obfuscation_peers", self.obfuscation_peers, least=2)

    def make_codec(self) -> Codec:
        """Return a codec as set."""
        return codec_by_name(self.codec, bits=self.bits)


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregationSettings:
    """How fragments become a model."""

    rule: str = "fragfedavg"
    byzantine: int = 0
    """How many candidates of a range may be malicious (B); for the rules that ask."""
    staleness: Policy = Policy.DROP
    staleness_window: int = 2
    """Fragments of so many rounds before and after ours are taken."""
    staleness_decay: float = 0.5
    max_per_range: int = MAX_PER_RANGE
    """How many fragments of one range and round are held."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, naming the key."""
        names = [policy.value for policy in Policy]
        if self.staleness not in names:
            raise ConfigError(key="aggregation.staleness", got=self.staleness, takes=", ".join(names))
        object.__setattr__(self, "staleness", Policy(self.staleness))
        _check_whole("aggregation.staleness_window", self.staleness_window, least=0)
        _check_whole("aggregation.max_per_range", self.max_per_range, least=1)
        self.make_staleness()
        weighs = self.make_rule().weighs
        if self.staleness is Policy.WEIGHT and not weighs:
            raise ConfigError(
                key="aggregation.staleness",
                got="weight",
                takes="keep or drop with this rule",
                hint=f"{self.rule} chooses or sorts, it does not weigh",
            )

    def make_rule(self) -> Rule:
        """Return the rule as set."""
        return rule_by_name(self.rule, byzantine=self.byzantine)

    def make_staleness(self) -> Staleness:
        """Return the policy as set."""
        window = self.staleness_window
        return Staleness(policy=self.staleness, behind=window, ahead=window, decay=self.staleness_decay)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParticipantSettings:
    """Everything about one participant but its partners."""

    rounds: RoundSettings
    payload: PayloadSettings = field(default_factory=PayloadSettings)
    aggregation: AggregationSettings = field(default_factory=AggregationSettings)
    queue_ahead: int = 256
    """How many own fragments wait in the mixer for their slots at most; the rest is encoded when there is room.

    Below the outbox size an outbox would be filled up with cover while fragments wait.
    """

    def __post_init__(self) -> None:
        """Refuse what cannot work, naming the key."""
        _check_whole("mixnet.queue_ahead", self.queue_ahead, least=1)
        if self.payload.obfuscation != "none":
            check_masks_cancel(
                ratio=self.payload.ratio,
                error_feedback=self.payload.error_feedback,
                rule=self.aggregation.rule,
                staleness=self.aggregation.staleness,
                completion=self.rounds.completion,
                trigger_change=self.rounds.trigger_change,
            )


def check_masks_cancel(
    *, ratio: float, error_feedback: bool, rule: str, staleness: str, completion: str, trigger_change: float
) -> None:
    """ConfigError where masks would not cancel: not all senders send the same, or what comes in is not averaged."""
    with_masks = 'with payload.obfuscation = "masks"'
    if ratio != 1.0:
        hint = "masks cancel over senders of the same range, and who sends a part only sends other ranges than others"
        raise ConfigError(key="payload.ratio", got=ratio, takes=f"1 {with_masks}", hint=hint)
    if error_feedback:
        hint = "every destination gets other values, so there is not one error that all of them could be owed"
        raise ConfigError(key="payload.error_feedback", got=True, takes=f"false {with_masks}", hint=hint)
    if rule != "fragfedavg":
        hint = "masks cancel in a mean; to a rule that sorts or chooses every candidate is noise"
        raise ConfigError(key="aggregation.rule", got=rule, takes=f"fragfedavg {with_masks}", hint=hint)
    if staleness != Policy.DROP:
        hint = "masks of different rounds have nothing in common"
        raise ConfigError(key="aggregation.staleness", got=str(staleness), takes=f"drop {with_masks}", hint=hint)
    if completion not in (Completion.COMPLETENESS, Completion.DEADLINE):
        hint = "the masks of senders that are late do not cancel"
        takes = f"completeness or deadline {with_masks}"
        raise ConfigError(key="aggregation.completion", got=str(completion), takes=takes, hint=hint)
    if trigger_change:
        hint = "the masks of those who send do not cancel without those who do not"
        raise ConfigError(key="aggregation.trigger_change", got=trigger_change, takes=f"0 {with_masks}", hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """With whom a node exchanges fragments: public knowledge, from the topology."""

    destinations: tuple[NodeId, ...]
    """To whom this node sends each of its fragments."""
    expected_from: tuple[NodeId, ...]
    """Who has this node among its destinations."""
    absent: tuple[NodeId, ...] = ()
    """Those of them who join later: not waited for until they show that they are there."""

    def __post_init__(self) -> None:
        """Refuse a peer that is named twice."""
        for key in ("destinations", "expected_from"):
            peers = getattr(self, key)
            if len(set(peers)) != len(peers):
                raise ConfigError(key=f"exchange.{key}", got=len(peers), takes="every peer once")


def _completion(name: str) -> Completion:
    try:
        return Completion(name)
    except ValueError:
        takes = ", ".join(Completion)
        raise ConfigError(key="aggregation.completion", got=name, takes=takes) from None


def _check_whole(key: str, got: int, *, least: int, most: int | None = None) -> None:
    if got < least or (most is not None and got > most):
        takes = f"a whole number from {least}" if most is None else f"a whole number from {least} to {most}"
        raise ConfigError(key=key, got=got, takes=takes)


def _check_seconds(key: str, got: float) -> None:
    if not (isfinite(got) and got > 0.0):
        raise ConfigError(key=key, got=got, takes="a number of seconds above 0")
