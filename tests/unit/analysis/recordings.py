"""A small recorded deployment, for tests that attack one."""

from functools import cache

from unlinkabledfl.experiment.linking.deployment import Deployment, Recorded, record
from unlinkabledfl.mixnet.mixers import OutboxSettings, PoissonSettings

OVERLAY = Deployment(
    name="small overlay",
    route="overlay",
    path_length=3,
    mixer=PoissonSettings(delay_mean_s=0.5, emission_rate_per_s=4.0, loop_rate_per_s=0.5),
    fragments=1,
    rounds=2,
    round_s=8.0,
    warm_up_s=6.0,
    nodes=10,
)
WALK = Deployment(
    name="small walk",
    route="walk",
    path_length=2,
    mixer=OutboxSettings(outbox_size=25, delay_mean_s=0.04, delay_deviation_s=0.001),
    fragments=2,
    rounds=2,
    round_s=10.0,
    warm_up_s=6.0,
    nodes=16,
)
CALIBRATION = Deployment(
    name="weak overlay",
    route="overlay",
    path_length=3,
    mixer=PoissonSettings(delay_mean_s=0.3, emission_rate_per_s=4.0, loop_rate_per_s=0.5),
    fragments=2,
    rounds=4,
    round_s=10.0,
    warm_up_s=5.0,
    nodes=12,
)


@cache
def recorded(deployment: Deployment) -> Recorded:
    return record(deployment, seed=1)
