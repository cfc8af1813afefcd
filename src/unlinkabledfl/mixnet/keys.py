"""Give this node a fresh Sphinx key every epoch, and destroy the old one together with its replay window.

    off --start----------------------> KeyRotated, single
    single --renew-------------------> KeyRotated, single
    overlap --renew------------------> KeyRotated, overlap
    single --timer, new epoch--------> KeyRotated, overlap
    single --timer, overlap over too-> KeyRotated, KeyRetired, single
    overlap --timer, overlap over----> KeyRetired, single
    overlap --timer, new epoch too---> KeyRetired, KeyRotated, overlap
    overlap --timer, that over too---> KeyRetired, KeyRotated, KeyRetired, single

Epoch `e` covers the instants from `e * epoch_length_s` to the next multiple. The key of an epoch is published when it
begins, and goes on opening packets for `overlap_s` after it ends: senders who have not heard of the new key yet, and
packets and reply blocks that are under way, still arrive. So `overlap_s` is to be more than a descriptor takes to
spread plus the longest life of a packet or reply block.

Invariant: a key and its replay window are born and destroyed together, and no two keys share a window. A packet seen
under a key is refused while the key lives, and cannot be opened afterwards: it is processed at most once, ever. This
must survive a restart, which loses the windows, so a key is never stored and a restart begins with a new one. To be
believed over the descriptor of the former life, it carries a higher `serial`.

Destroyed means that no reference is left here: Python cannot wipe the bytes, so they may stay in freed memory until
something overwrites it.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import floor
from typing import Generic, Protocol, TypeAlias, TypeVar

from unlinkabledfl.errors import ConfigError, LocalProtocolError
from unlinkabledfl.mixnet.draw import Entropy
from unlinkabledfl.mixnet.replay import ReplayWindow

_EPOCHS = 1 << 32  # what a descriptor has room for


class KeyPair(Protocol):
    """A private key in whatever form the packet format likes; only its public half concerns us."""

    @property
    def public_bytes(self) -> bytes:
        """What senders encrypt to."""


PairT = TypeVar("PairT", bound=KeyPair)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochKey(Generic[PairT]):
    """A key that opens packets now, and the window that has seen every packet it opened."""

    epoch: int
    serial: int
    pair: PairT
    replays: ReplayWindow


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRotated:
    """This key is in force, new or under a new serial: publish it in a descriptor of this epoch and serial."""

    epoch: int
    serial: int
    public_key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRetired:
    """The key of this epoch, and its replay window, are gone."""

    epoch: int


KeyEvent: TypeAlias = KeyRotated | KeyRetired


class KeyRing(Generic[PairT]):
    """The keys of one node: the current one and, during the overlap, the one before.

    `first_serial` is higher than any serial of a former life; whole seconds of the wall clock at the start are, as
    long as a node restarts and rotates at most once a second. `epoch_length_s=None` never rotates, for simulations.
    """

    __slots__ = (
        "_entropy", "_epoch_length_s", "_events", "_generate", "_keys", "_overlap_s", "_replay_capacity", "_serial",
    )  # fmt: skip

    def __init__(
        self,
        *,
        generate: Callable[[Entropy], PairT],
        entropy: Entropy,
        epoch_length_s: float | None,
        overlap_s: float,
        replay_capacity: int,
        first_serial: int = 0,
    ) -> None:
        if epoch_length_s is not None:
            if not epoch_length_s > 0.0:
                raise ConfigError(key="mixnet.epoch_length_s", got=epoch_length_s, takes="a time above 0, or none")
            if not 0.0 <= overlap_s <= epoch_length_s:
                takes = f"a time from 0 to mixnet.epoch_length_s ({epoch_length_s})"
                raise ConfigError(key="mixnet.key_overlap_s", got=overlap_s, takes=takes)
        self._generate = generate
        self._entropy = entropy
        self._epoch_length_s = epoch_length_s
        self._overlap_s = overlap_s
        self._replay_capacity = replay_capacity
        self._serial = first_serial
        self._keys: tuple[EpochKey[PairT], ...] = ()
        self._events: deque[KeyEvent] = deque()

    @property
    def keys(self) -> tuple[EpochKey[PairT], ...]:
        """The keys to try on a packet: the current one, then the previous one while it lives."""
        return self._keys

    @property
    def current(self) -> EpochKey[PairT]:
        """The key to publish."""
        if not self._keys:
            raise LocalProtocolError("a key ring has no key before it is started")
        return self._keys[0]

    def start(self, *, now_s: float) -> None:
        """Make the first key."""
        if self._keys:
            raise LocalProtocolError("this key ring has been started already")
        self._keys = (self._make(self._epoch_at(now_s)),)

    def renew(self) -> None:
        """Have the current key published again, under a higher serial: its descriptor is about to expire."""
        current = self.current
        self._serial += 1
        self._keys = (replace(current, serial=self._serial), *self._keys[1:])
        public_key = current.pair.public_bytes
        self._events.append(KeyRotated(epoch=current.epoch, serial=self._serial, public_key=public_key))

    def next_timer_s(self) -> float | None:
        """When the next key is due, or the previous one has to go."""
        if self._epoch_length_s is None or not self._keys:
            return None
        if len(self._keys) > 1:
            return self._retires_at_s(self._keys[1].epoch)
        return self._ends_at_s(self._keys[0].epoch)

    def handle_timer(self, *, now_s: float) -> None:
        """Make the key of this epoch if it has begun, and destroy the one whose overlap is over."""
        if self._epoch_length_s is None or not self._keys:
            return
        # A timer that comes very late (a machine that was suspended) still finds at most two keys, and one step
        # to the epoch of now: the epochs in between had no key and need none.
        current = self._keys[0]
        if now_s >= self._ends_at_s(current.epoch):
            self._retire_previous()
            # max: the quotient may round down to the epoch that has just ended.
            epoch = max(self._epoch_at(now_s), current.epoch + 1)
            self._serial += 1
            self._keys = (self._make(epoch), current)
        if len(self._keys) > 1 and now_s >= self._retires_at_s(self._keys[1].epoch):
            self._retire_previous()

    def next_event(self) -> KeyEvent | None:
        """The next thing to act on."""
        return self._events.popleft() if self._events else None

    def _make(self, epoch: int) -> EpochKey[PairT]:
        pair = self._generate(self._entropy)
        replays = ReplayWindow(capacity=self._replay_capacity)
        self._events.append(KeyRotated(epoch=epoch, serial=self._serial, public_key=pair.public_bytes))
        return EpochKey(epoch=epoch, serial=self._serial, pair=pair, replays=replays)

    def _retire_previous(self) -> None:
        for key in self._keys[1:]:
            self._events.append(KeyRetired(epoch=key.epoch))
        self._keys = self._keys[:1]

    def _epoch_at(self, now_s: float) -> int:
        if now_s < 0.0:
            raise LocalProtocolError(f"an instant is 0 s or later, not {now_s}")
        if self._epoch_length_s is None:
            return 0
        epoch = floor(now_s / self._epoch_length_s)
        if epoch >= _EPOCHS:
            raise LocalProtocolError(f"epoch {epoch} does not fit a descriptor")
        return epoch

    def _ends_at_s(self, epoch: int) -> float:
        return (epoch + 1) * (self._epoch_length_s or 0.0)

    def _retires_at_s(self, epoch: int) -> float:
        return self._ends_at_s(epoch) + self._overlap_s
