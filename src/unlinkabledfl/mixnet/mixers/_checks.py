"""Checks that the settings of the mixers share; every refusal names the key as the operator wrote it."""

import math

from unlinkabledfl.errors import ConfigError


def check_seconds(key: str, got: float) -> None:
    """Refuse a duration that is negative, not finite or not a number."""
    if not (_is_number(got) and 0.0 <= got < math.inf):
        raise ConfigError(key=key, got=got, takes="a number of seconds, 0 or more")


def check_rate(key: str, got: float, *, hint: str, zero_allowed: bool) -> None:
    """Refuse a rate that is negative, not finite or not a number, and zero where it is none."""
    if not (_is_number(got) and 0.0 <= got < math.inf and (got > 0.0 or zero_allowed)):
        bound = "0 or more" if zero_allowed else "more than 0"
        raise ConfigError(key=key, got=got, takes=f"a number of packets per second, {bound}", hint=hint)


def check_count(key: str, got: object, *, least: int, most: int | None = None, hint: str | None = None) -> None:
    """Refuse what is not a whole number in this range."""
    in_range = isinstance(got, int) and least <= got and (most is None or got <= most)
    if isinstance(got, bool) or not in_range:
        bound = f", {least} or more" if most is None else f" from {least} to {most}"
        raise ConfigError(key=key, got=got, takes=f"a whole number{bound}", hint=hint)


def check_switch(key: str, got: bool) -> None:
    """Refuse what is neither true nor false: a string such as "no" would count as true."""
    if not isinstance(got, bool):
        raise ConfigError(key=key, got=got, takes="true or false")


def check_capacities(*, transit_capacity: int, own_capacity: int) -> None:
    """Refuse queues that could hold nothing."""
    check_count("mixnet.transit_capacity", transit_capacity, least=1)
    check_count("mixnet.own_capacity", own_capacity, least=1)


def _is_number(got: object) -> bool:
    return isinstance(got, int | float) and not isinstance(got, bool)
