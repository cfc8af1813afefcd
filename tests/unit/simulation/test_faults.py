import pytest

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.simulation.entropy import chances
from unlinkabledfl.simulation.faults import Crash, Fault, Partition, Restart, check_faults, draw_churn


@pytest.mark.parametrize(
    ("faults", "takes"),
    [
        ([Crash(node=4, at_s=1.0)], "nodes from 0 to 3"),
        ([Crash(node=-1, at_s=1.0)], "nodes from 0 to 3"),
        ([Crash(node=0, at_s=-1.0)], "an instant"),
        ([Crash(node=0, at_s=float("inf"))], "an instant"),
        ([Restart(node=0, at_s=1.0)], "runs already"),
        ([Crash(node=0, at_s=1.0), Crash(node=0, at_s=2.0)], "has crashed already"),
        ([Crash(node=0, at_s=2.0), Restart(node=0, at_s=1.0)], "runs already"),
        ([Partition(groups=((0, 1), (1, 2)), at_s=1.0, until_s=2.0)], "share no node"),
        ([Partition(groups=((0, 9),), at_s=1.0, until_s=2.0)], "nodes from 0 to 3"),
        ([Partition(groups=((0,),), at_s=1.0, until_s=1.0)], "an end after its start"),
        (
            [
                Partition(groups=((0,),), at_s=1.0, until_s=3.0),
                Partition(groups=((1,),), at_s=2.0, until_s=4.0),
            ],
            "one partition at a time",
        ),
    ],
)
def test_a_schedule_that_cannot_happen_is_refused(faults: list[Fault], takes: str) -> None:
    with pytest.raises(ConfigError, match=takes) as caught:
        check_faults(faults, nodes=4)

    assert caught.value.key == "faults"


def test_a_node_may_crash_again_after_its_restart() -> None:
    check_faults(
        [
            Restart(node=0, at_s=2.0),
            Crash(node=0, at_s=1.0),
            Crash(node=0, at_s=3.0),
            Partition(groups=((0, 1), (2,)), at_s=0.0, until_s=1.0),
            Partition(groups=((3,),), at_s=1.0, until_s=2.0),
        ],
        nodes=4,
    )


def test_churn_crashes_as_many_nodes_as_asked_and_brings_each_back() -> None:
    faults = draw_churn(chances(1, "churn"), nodes=20, crashes=5, from_s=10.0, until_s=20.0, down_s=3.0)

    crashes = [fault for fault in faults if isinstance(fault, Crash)]
    restarts = [fault for fault in faults if isinstance(fault, Restart)]
    assert len({crash.node for crash in crashes}) == 5
    assert all(10.0 <= crash.at_s <= 20.0 for crash in crashes)
    assert [(crash.node, crash.at_s + 3.0) for crash in crashes] == [(back.node, back.at_s) for back in restarts]
    check_faults(faults, nodes=20)


def test_more_crashes_than_nodes_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"faults\.crashes: got 5"):
        draw_churn(chances(1, "churn"), nodes=4, crashes=5, from_s=0.0, until_s=1.0, down_s=1.0)
