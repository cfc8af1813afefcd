"""Bandwidths as people write them: `2MB/s`, `500 kB/s`, `10Mbit/s`."""

import re
from typing import Final

from unlinkabledfl.errors import ConfigError

__all__ = ["parse_bandwidth"]

_WRITTEN: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kMG]?)(B|bit)(?:/s|ps)\s*")
_SCALE: Final = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}


def parse_bandwidth(text: str) -> float:
    """Return bytes a second; ConfigError for what is none."""
    found = _WRITTEN.fullmatch(text)
    value = 0.0 if found is None else float(found[1]) * _SCALE[found[2]] / (8.0 if found[3] == "bit" else 1.0)
    if not value > 0.0:
        raise ConfigError(key="--bandwidth", got=text, takes="what a node may send, such as 2MB/s, 500kB/s or 10Mbit/s")
    return value
