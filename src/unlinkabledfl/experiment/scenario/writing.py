"""A complete scenario as TOML text, which loads to an equal scenario anywhere.

Invariant: `parse_scenario(to_toml(scenario)) == scenario`. Every key is written, defaults included: a run must not
change because a later version has other defaults.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from unlinkabledfl.experiment.scenario.model import Scenario

__all__ = ["to_toml"]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(scenario: Scenario, *, comments: Iterable[str] = ()) -> str:
    """Return the text; `comments` are lines for its head, such as versions."""
    lines = [f"# {line}" for comment in comments for line in comment.splitlines()]
    for section, table in scenario.model_dump().items():
        lines += ["", f"[{section}]", *(f"{key} = {_value(value)}" for key, value in table.items())]
    return "\n".join(lines).lstrip("\n") + "\n"


def _value(value: Any) -> str:  # noqa: ANN401 -- whatever a scenario holds
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _float(value)
        case str():
            return _text(value)
        case Mapping():
            inside = ", ".join(f"{_key(str(key))} = {_value(item)}" for key, item in value.items())
            return f"{{ {inside} }}" if inside else "{}"
        case _:
            return f"[{', '.join(_value(item) for item in value)}]"


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _text(name)


def _float(value: float) -> str:
    text = repr(value)
    # TOML has no float without a point or an exponent; Python writes neither for none that is finite.
    return text if "." in text or "e" in text or "E" in text else f"{text}.0"


def _text(value: str) -> str:
    # JSON's escapes are TOML's, but for DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
