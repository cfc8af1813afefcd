"""What is taken down of a run is what happened."""

import numpy as np

from tests.unit.analysis.recordings import OVERLAY, WALK, recorded
from unlinkabledfl.analysis.trace import UNKNOWN


def test_every_target_leads_back_to_its_origin_over_its_path() -> None:
    for deployment in (OVERLAY, WALK):
        recording = recorded(deployment).recording
        crossings = recording.crossings

        assert len(recording.targets) > 100
        for row, last in enumerate(recording.targets):
            path = [int(crossings.target[last])]
            crossing = int(last)
            while recording.before[crossing] != UNKNOWN:
                crossing = int(recording.before[crossing])
                path.insert(0, int(crossings.target[crossing]))
            assert int(crossings.source[crossing]) == recording.oracle.origin[row]
            assert tuple(path) == recording.oracle.path[row]


def test_a_relay_sends_on_what_came_to_it_and_later() -> None:
    recording = recorded(OVERLAY).recording
    crossings = recording.crossings
    after = np.flatnonzero(recording.before != UNKNOWN)
    earlier = recording.before[after]

    assert (crossings.target[earlier] == crossings.source[after]).all()
    assert (crossings.arrived_at_s[earlier] <= crossings.left_at_s[after]).all()
    assert len(np.unique(crossings.wire_hash)) == len(crossings)


def test_an_adversary_sees_of_honest_relays_only_what_crosses_links() -> None:
    recording = recorded(OVERLAY).recording

    blind, _ = recording.observed()
    owning, _ = recording.observed(compromised=[2, 5])

    assert (blind.before == UNKNOWN).all()
    known = np.flatnonzero(owning.before != UNKNOWN)
    assert set(owning.crossings.source[known]) == {2, 5}


def test_what_owned_nodes_send_is_no_target() -> None:
    recording = recorded(OVERLAY).recording

    trace, oracle = recording.observed(compromised=[2, 5])

    assert len(trace.targets) == len(oracle.origin) < len(recording.targets)
    assert not np.isin(oracle.origin, [2, 5]).any()


def test_groups_hold_fragments_of_one_model() -> None:
    found = recorded(WALK)
    origins, targets = found.recording.oracle.origin, found.recording.crossings.target[found.recording.targets]

    for group in np.unique(found.groups):
        members = np.flatnonzero(found.groups == group)
        assert len(set(origins[members])) == len(set(targets[members])) == 1
        assert len(members) <= WALK.fragments
