"""Mixing strategies behind one protocol: `poisson` (the default), `outbox` (the published design) and `off`.

A new strategy is a settings class, a machine with the methods of `Mixer`, a delay law in
`unlinkabledfl.mixnet.delay_law` and one more case in `make_mixer`.
"""

from typing import TypeAlias, assert_never

from unlinkabledfl.mixnet.draw import Draw
from unlinkabledfl.mixnet.mixers.off import Off, OffSettings
from unlinkabledfl.mixnet.mixers.outbox import Outbox, OutboxSettings
from unlinkabledfl.mixnet.mixers.poisson import Poisson, PoissonSettings
from unlinkabledfl.mixnet.mixers.protocol import RETRY_PAUSE_S, Mixer, MixerEvent, Released, Scheduled

__all__ = [
    "RETRY_PAUSE_S",
    "Mixer",
    "MixerEvent",
    "MixerSettings",
    "Off",
    "OffSettings",
    "Outbox",
    "OutboxSettings",
    "Poisson",
    "PoissonSettings",
    "Released",
    "Scheduled",
    "make_mixer",
]

MixerSettings: TypeAlias = OutboxSettings | PoissonSettings | OffSettings


def make_mixer(settings: MixerSettings, *, draw: Draw) -> Mixer:
    """Return the mixer for these settings, not started."""
    match settings:
        case OutboxSettings():
            return Outbox(settings=settings, draw=draw)
        case PoissonSettings():
            return Poisson(settings=settings, draw=draw)
        case OffSettings():
            return Off(settings=settings)
        case _:
            assert_never(settings)
