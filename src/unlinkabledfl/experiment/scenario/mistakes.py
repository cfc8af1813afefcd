"""What pydantic found wrong with a scenario, as one `ConfigError` that names the key and what would work."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.scenario.schema import keys, sections

__all__ = ["explain", "explain_all", "known_keys"]

_SHOWN = 200


def explain(error: ValidationError) -> ConfigError:
    """Return the first mistake; a key that does not exist before a value that does not fit."""
    return explain_all(error)[0]


def explain_all(error: ValidationError) -> list[ConfigError]:
    """Return all mistakes, each key once; keys that do not exist before values that do not fit."""
    found = sorted(error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden")
    explained: dict[str, ConfigError] = {}
    for mistake in map(_explain, found):
        explained.setdefault(mistake.key, mistake)
    return list(explained.values())


def known_keys(name: str, *, got: object) -> ConfigError:
    """Return the error for a key or section that does not exist, with the nearest that does."""
    section, _, key = name.partition(".")
    tables, known = sections(), keys()
    if not key:
        exact = next((dotted for dotted, each in known.items() if each.name == section), None)
        hint = exact or _nearest(section, list(tables)) or _elsewhere(section)
        takes = f"no such section: there are {', '.join(tables)}"
        return ConfigError(key=name, got=_short(got), takes=takes, hint=_ask(hint))
    here = [each.name for each in known.values() if each.section == section]
    near = _nearest(key, here)
    hint = f"{section}.{near}" if near else _elsewhere(key) or _nearest(name, list(known))
    takes = (
        f"no such key: [{section}] has {', '.join(here)}" if here else f"no such section: there are {', '.join(tables)}"
    )
    return ConfigError(key=name, got=_short(got), takes=takes, hint=_ask(hint))


def _explain(mistake: Mapping[str, Any]) -> ConfigError:
    path = [str(part) for part in mistake["loc"]]
    if path[:2] == ["learning", "options"]:
        path = path[:3]  # what follows names the types that were tried
    name, got, kind = ".".join(path), mistake["input"], mistake["type"]
    if kind == "extra_forbidden" and len(path) <= 2:  # noqa: PLR2004 -- section and key
        return known_keys(name, got=got)
    if kind == "extra_forbidden":
        return ConfigError(key=name, got=_short(got), takes="no such key: there are node and round")
    key = keys().get(".".join(path[:2]))
    if key is None:
        return ConfigError(key=name, got=_short(got), takes=f"a table, written [{name}]")
    hint = None
    if key.is_text and isinstance(got, str) and "enum" in key.schema:
        hint = _ask(_nearest(got, key.schema["enum"]))
    if len(path) > 2 and key.schema.get("type") == "array" and kind != "missing":  # noqa: PLR2004
        return ConfigError(key=name, got=_short(got), takes="a whole number in range", hint=str(mistake["msg"]))
    if key.unit and not key.is_text:
        return ConfigError(key=name, got=_short(got), takes=f"{key.takes} ({key.unit})", hint=hint)
    return ConfigError(key=name, got=_short(got), takes=key.takes, hint=hint)


def _elsewhere(name: str) -> str | None:
    """Return where a key of exactly or nearly this name is, in whichever section."""
    near = _nearest(name, [each.name for each in keys().values()])
    return next((dotted for dotted, each in keys().items() if each.name == near), None)


def _nearest(name: str, among: list[str]) -> str | None:
    return next(iter(get_close_matches(name.lower(), among, n=1, cutoff=0.6)), None)


def _ask(name: str | None) -> str | None:
    return None if name is None else f"did you mean {name}?"


def _short(got: object) -> object:
    try:
        text = repr(got)
    except ValueError:
        return "a number of thousands of digits"
    return got if len(text) <= _SHOWN else text[:_SHOWN] + "…"
