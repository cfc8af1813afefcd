"""Every deliberate exception of the package, as one tree that says who is at fault.

    UnlinkableError                 catch this to catch everything raised on purpose
    ├── ConfigError                 the operator: names the key, what it got and what it takes
    ├── DatasetError                nobody: a dataset's file is missing or damaged, or no source has it
    ├── LocalProtocolError          we broke our own contract: a bug, so let it crash
    ├── RemoteProtocolError         a peer sent something wrong: drop it, count it by cause, go on
    │   ├── PacketError             an onion packet that no honest peer makes, or one seen before
    │   ├── DescriptorError         a peer descriptor with a bad signature, epoch or address
    │   ├── ControlError            a control message that does not parse or does not belong here
    │   └── FragmentError           a model fragment that lies about itself, or that no training makes
    ├── QueueFullError              nobody: a bounded queue is full, try again later
    ├── NoRouteError                nobody: the peers known at this moment cannot carry a route
    ├── LearnerError                the learner: training or its process failed; the model is what it was before
    └── RunError                    nobody: a run cannot go on, or its directory can be neither written nor read

Invariant: anything else that escapes the package is a bug. A caller never has to parse a message: what it may
act on is an attribute. Every exception here survives copying and pickling with its attributes, because
a worker process hands its exceptions to its parent that way.
"""

from functools import partial

__all__ = [
    "ConfigError",
    "ControlError",
    "DatasetError",
    "DescriptorError",
    "FragmentError",
    "LearnerError",
    "LocalProtocolError",
    "NoRouteError",
    "PacketError",
    "QueueFullError",
    "RemoteProtocolError",
    "RunError",
    "UnlinkableError",
]


class UnlinkableError(Exception):
    """Root of everything this package raises on purpose."""


class ConfigError(UnlinkableError):
    """A setting cannot work. The message names the key, the value and what would work.

    `key` is the dotted name under which the operator wrote the value, such as `mixnet.path_length`. `takes`
    reads after the word "takes": "a whole number from 1 to 10". `hint` is a way out, where there is one.
    """

    def __init__(self, *, key: str, got: object, takes: str, hint: str | None = None) -> None:
        message = f"{key}: got {got!r}, takes {takes}"
        super().__init__(message if hint is None else f"{message} ({hint})")
        self.key = key
        self.got = got
        self.takes = takes
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), key=self.key, got=self.got, takes=self.takes, hint=self.hint), ()


class DatasetError(UnlinkableError):
    """A dataset cannot be used. The message names the file, says what is wrong with it and what to do.

    `file` is a path, or the name of a dataset that has no file here yet.
    """

    def __init__(self, *, file: str, problem: str, hint: str) -> None:
        super().__init__(f"{file}: {problem} ({hint})")
        self.file = file
        self.problem = problem
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), file=self.file, problem=self.problem, hint=self.hint), ()


class LocalProtocolError(UnlinkableError):
    """Our own code used a machine in a way its contract forbids. Never caught in order to go on."""


class RemoteProtocolError(UnlinkableError):
    """A peer sent something that the protocol does not allow.

    `cause` is a short snake_case identifier from a fixed set: drops are counted under it, so it never holds
    anything that the peer chose. `detail` is for people. Raise one of the subclasses.
    """

    def __init__(self, cause: str, detail: str = "") -> None:
        super().__init__(f"{cause}: {detail}" if detail else cause)
        self.cause = cause
        self.detail = detail

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.cause, self.detail)


class PacketError(RemoteProtocolError):
    """An onion packet was refused: wrong length, not authentic, replayed, or addressed to nobody here."""


class DescriptorError(RemoteProtocolError):
    """A peer descriptor was refused: bad signature, stale epoch, or an address that cannot be one."""


class ControlError(RemoteProtocolError):
    """A control message was refused: it does not parse, exceeds its bound, or comes at the wrong time."""


class FragmentError(RemoteProtocolError):
    """A model fragment was refused: off the grid, of another round, malformed, or with values out of bounds."""


class QueueFullError(UnlinkableError):
    """A bounded queue is full. Nothing was lost: the caller keeps the item and tries again later."""

    def __init__(self, queue: str, *, bound: int) -> None:
        super().__init__(f"{queue} is full: it holds its bound of {bound}; try again later")
        self.queue = queue
        self.bound = bound

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), self.queue, bound=self.bound), ()


class NoRouteError(UnlinkableError):
    """The peers known now cannot carry the route asked for. It may work once the peer view has changed."""


class LearnerError(UnlinkableError):
    """Local training failed, or the process that does it. The model is as it was before; a node goes on without it."""


class RunError(UnlinkableError):
    """A run cannot go on, or its directory cannot be used. The message says what and what to do; records stay whole."""
