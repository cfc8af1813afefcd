import copy
import pickle  # noqa: TID251 - our own objects, as a process pool would carry them

import pytest

from unlinkabledfl import errors
from unlinkabledfl.errors import (
    ConfigError,
    ControlError,
    DatasetError,
    DescriptorError,
    FragmentError,
    LearnerError,
    LocalProtocolError,
    NoRouteError,
    PacketError,
    QueueFullError,
    RemoteProtocolError,
    RunError,
    UnlinkableError,
)

EXAMPLES: list[UnlinkableError] = [
    ConfigError(key="mixnet.path_length", got=11, takes="a whole number from 1 to 10", hint="shorten the path"),
    DatasetError(file="mnist/test_labels.npy", problem="it is empty", hint="fetch it again"),
    LearnerError("the learner worker was killed by SIGKILL while training round 2"),
    LocalProtocolError("timer handled before it was due"),
    RemoteProtocolError("unexpected"),
    PacketError("bad_mac"),
    DescriptorError("stale_epoch", "epoch 3, current is 7"),
    ControlError("oversized"),
    FragmentError("off_grid", "range 3 to 9"),
    QueueFullError("outbox", bound=64),
    NoRouteError("2 peers known, 3 relays wanted"),
    RunError("runs/demo/metrics.csv cannot be written: no space left"),
]


def test_a_config_error_says_which_key_what_it_got_and_what_it_takes() -> None:
    error = ConfigError(key="mixnet.outbox_size", got=0, takes="a whole number of at least 1")

    assert str(error) == "mixnet.outbox_size: got 0, takes a whole number of at least 1"


def test_a_config_error_ends_in_its_hint_when_there_is_one() -> None:
    error = ConfigError(
        key="mixnet.path_length", got=7, takes="at most 4 here", hint="a ring of 8 peers reaches no further"
    )

    assert str(error) == ("mixnet.path_length: got 7, takes at most 4 here (a ring of 8 peers reaches no further)")


def test_a_config_error_shows_a_text_value_in_quotes_so_that_blanks_are_seen() -> None:
    assert "got ' walk'" in str(ConfigError(key="mixnet.routes", got=" walk", takes="walk or overlay"))


def test_a_refusal_without_detail_reads_as_its_cause() -> None:
    assert str(PacketError("bad_mac")) == "bad_mac"


def test_a_refusal_with_detail_keeps_the_cause_apart_for_the_counter() -> None:
    error = DescriptorError("stale_epoch", "epoch 3, current is 7")

    assert (str(error), error.cause) == ("stale_epoch: epoch 3, current is 7", "stale_epoch")


def test_a_full_queue_names_itself_and_its_bound() -> None:
    error = QueueFullError("outbox", bound=64)

    assert (str(error), error.queue, error.bound) == (
        "outbox is full: it holds its bound of 64; try again later",
        "outbox",
        64,
    )


@pytest.mark.parametrize("kind", [PacketError, DescriptorError, ControlError, FragmentError])
def test_whatever_a_peer_does_wrong_is_caught_as_one_kind(kind: type[RemoteProtocolError]) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        raise kind("some_cause")

    assert caught.value.cause == "some_cause"


@pytest.mark.parametrize("kind", [ConfigError, LocalProtocolError, QueueFullError, NoRouteError])
def test_what_no_peer_is_to_blame_for_is_never_caught_as_a_peers_fault(kind: type[UnlinkableError]) -> None:
    assert not issubclass(kind, RemoteProtocolError)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_copying_and_pickling_whole(error: UnlinkableError) -> None:
    for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(twin) is type(error)
        assert (str(twin), vars(twin)) == (str(error), vars(error))


def test_the_examples_above_cover_every_error() -> None:
    defined = {kind for kind in vars(errors).values() if isinstance(kind, type) and kind.__module__ == errors.__name__}

    assert {type(error) for error in EXAMPLES} == defined - {UnlinkableError}


def test_the_tree_in_the_module_docstring_is_the_tree_of_the_classes() -> None:
    assert errors.__doc__ is not None
    drawn = [line.strip("│├└─ ").split()[0] for line in errors.__doc__.splitlines() if "Error " in line]

    assert sorted(drawn) == sorted(errors.__all__)
