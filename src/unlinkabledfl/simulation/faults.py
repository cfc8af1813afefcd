"""What goes wrong in a world, and when: crashes, restarts, partitions.

A crash destroys a node: its state, its keys and what it had queued. What is on its way to it is lost, what it had sent
still arrives, and its peers notice after `links.detection_s`. A restart puts a fresh node in its place: same identity,
new Sphinx key, higher serial. A partition separates groups of nodes: nothing crosses until it ends, and then the links
of the topology come up again.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import TypeAlias

from unlinkabledfl.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """The node and all it knew is gone."""

    node: int
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """A fresh node takes the place of the crashed one."""

    node: int
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Nothing passes between these groups; nodes that no group names form one more."""

    groups: tuple[tuple[int, ...], ...]
    at_s: float
    until_s: float


Fault: TypeAlias = Crash | Restart | Partition


def check_faults(faults: Sequence[Fault], *, nodes: int) -> None:
    """Raise ConfigError for a schedule that cannot happen: unknown nodes, a crash of the dead, two cuts at once."""
    for fault in faults:
        _check_one(fault, nodes=nodes)
    alive = [True] * nodes
    lives = [fault for fault in faults if not isinstance(fault, Partition)]
    for change in sorted(lives, key=_instant):
        rises = isinstance(change, Restart)
        if alive[change.node] is rises:
            state = "runs" if rises else "has crashed"
            raise ConfigError(
                key="faults", got=change, takes=f"crash and restart in turn: node {change.node} {state} already"
            )
        alive[change.node] = rises
    cuts = sorted((fault for fault in faults if isinstance(fault, Partition)), key=_instant)
    for first, second in pairwise(cuts):
        if second.at_s < first.until_s:
            raise ConfigError(key="faults", got=second, takes=f"one partition at a time: one lasts to {first.until_s}")


def draw_churn(
    chances: Random, *, nodes: int, crashes: int, from_s: float, until_s: float, down_s: float
) -> list[Fault]:
    """Return crashes of different nodes at uniform times, each followed by a restart after `down_s`."""
    if not 0 <= crashes <= nodes:
        raise ConfigError(key="faults.crashes", got=crashes, takes=f"a whole number from 0 to the {nodes} nodes")
    faults: list[Fault] = []
    for node in chances.sample(range(nodes), crashes):
        at_s = chances.uniform(from_s, until_s)
        faults += [Crash(node=node, at_s=at_s), Restart(node=node, at_s=at_s + down_s)]
    return faults


def _instant(fault: Fault) -> float:
    return fault.at_s


def _check_one(fault: Fault, *, nodes: int) -> None:
    if not 0.0 <= fault.at_s < math.inf:
        raise ConfigError(key="faults", got=fault, takes="an instant of zero seconds or more")
    if isinstance(fault, Partition):
        named = [node for group in fault.groups for node in group]
        if len(set(named)) != len(named):
            raise ConfigError(key="faults", got=fault, takes="groups that share no node")
        if not fault.at_s < fault.until_s < math.inf:
            raise ConfigError(key="faults", got=fault, takes="an end after its start")
    else:
        named = [fault.node]
    if not all(0 <= node < nodes for node in named):
        raise ConfigError(key="faults", got=fault, takes=f"nodes from 0 to {nodes - 1}")
