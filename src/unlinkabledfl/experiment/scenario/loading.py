"""Scenarios from presets, TOML files and `--set`, with every mistake as one sentence that says what would work.

Three layers, the later over the earlier: the defaults of the models; a preset, named on the command line or by
`preset = "paper"` at the top of a file; the file's own keys; then the overrides, in their order.
"""

import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.scenario.mistakes import explain, explain_all, known_keys
from unlinkabledfl.experiment.scenario.model import Scenario
from unlinkabledfl.experiment.scenario.schema import Key, keys

__all__ = [
    "PRESETS", "find_mistakes", "load_scenario", "override", "parse_scenario", "parse_tables", "preset", "preset_toml",
    "validate_scenario",
]  # fmt: skip

PRESETS: Final = ("demo", "paper", "strong", "direct")
_PRESET_KEY: Final = "preset"
_MAX_BYTES: Final = 4 * 1024 * 1024

Tables = dict[str, Any]


def load_scenario(source: str, overrides: Sequence[str] = ()) -> Scenario:
    """Return the scenario of a preset's name or of a TOML file, with `section.key=value` overrides on top."""
    tables = _preset_tables(source) if source in PRESETS else _read_file(Path(source))
    for text in overrides:
        tables = override(tables, text)
    # A graph that an override names lies where the command was started; a resumed run looks for it from anywhere.
    return validate_scenario(_located(tables, Path.cwd()))


def preset(name: str, overrides: Sequence[str] = ()) -> Scenario:
    """Return a preset's scenario, with overrides on top."""
    tables = _preset_tables(name)
    for text in overrides:
        tables = override(tables, text)
    return validate_scenario(tables)


def parse_scenario(text: str, *, origin: str = "scenario") -> Scenario:
    """Return the scenario that this TOML text holds."""
    return validate_scenario(_parse(text, origin=origin, folder=None))


def validate_scenario(tables: Mapping[str, Any]) -> Scenario:
    """Return the scenario of nested mappings, as TOML or JSON give them; ConfigError for the first mistake."""
    try:
        return Scenario.model_validate(dict(tables))
    except ValidationError as error:
        raise explain(error) from None


def find_mistakes(tables: Mapping[str, Any]) -> list[ConfigError]:
    """Return all that is wrong with nested mappings: each key once; nothing where they make a scenario."""
    try:
        Scenario.model_validate(dict(tables))
    except ValidationError as error:
        return explain_all(error)
    except ConfigError as error:
        return [error]
    return []


def parse_tables(text: str, *, origin: str = "scenario") -> Tables:
    """Return the nested mappings of a TOML text, its preset under them; ConfigError where it does not parse."""
    return _parse(text, origin=origin, folder=None)


def preset_toml(name: str) -> str:
    """Return a preset as its file says it."""
    _preset_tables(name)
    return (files(__package__) / "presets" / f"{name}.toml").read_text(encoding="utf-8")


def override(tables: Mapping[str, Any], text: str) -> Tables:
    """Return the tables with one `section.key=value` applied; the value is TOML, or the bare text of a string."""
    name, equals, value = text.partition("=")
    name = name.strip()
    known = keys()
    if not equals:
        raise ConfigError(key="--set", got=text, takes="section.key=value, such as mixnet.path_length=3")
    if name not in known:
        raise known_keys(name, got=value)
    section, key = name.split(".")
    merged = {part: dict(table) if isinstance(table, Mapping) else table for part, table in tables.items()}
    table = merged.setdefault(section, {})
    if not isinstance(table, dict):
        raise ConfigError(key=section, got=table, takes=f"a table, written [{section}]")
    table[key] = _value_of(value.strip(), known[name])
    return merged


def _value_of(text: str, key: Key) -> Any:  # noqa: ANN401 -- whatever TOML has
    if key.is_text:
        quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
        return _toml_value(text) if quoted else text
    value = _toml_value(text)
    if value is None and key.is_number:
        try:
            return float(text)
        except ValueError:
            return text
    return text if value is None else value


def _toml_value(text: str) -> Any:  # noqa: ANN401 -- whatever TOML has
    """Return the value, or None where the text is no TOML value."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return None
    # More than one key: somebody smuggled a line break in.
    return parsed["value"] if len(parsed) == 1 else None


def _preset_tables(name: str) -> Tables:
    if name not in PRESETS:
        near = get_close_matches(name, PRESETS, n=1)
        raise ConfigError(
            key=_PRESET_KEY,
            got=name,
            takes=f"one of {', '.join(PRESETS)}",
            hint=f"did you mean {near[0]}?" if near else None,
        )
    text = (files(__package__) / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _read_file(path: Path) -> Tables:
    known = f"a preset ({', '.join(PRESETS)}) or the path of a TOML file"
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ConfigError(key="scenario", got=str(path), takes=f"a TOML file of at most {_MAX_BYTES:,} bytes")
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError(key="scenario", got=str(path), takes="a TOML file, which is UTF-8 text") from None
    except (OSError, ValueError) as error:
        near = get_close_matches(str(path), PRESETS, n=1)
        problem = getattr(error, "strerror", None) or "not a path"
        hint = f"did you mean {near[0]}?" if near else f"{problem}"
        raise ConfigError(key="scenario", got=str(path), takes=known, hint=hint) from None
    return _parse(text, origin=str(path), folder=path.parent)


def _parse(text: str, *, origin: str, folder: Path | None) -> Tables:
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Besides what is no TOML: numbers with thousands of digits, and tables within tables without end.
        raise ConfigError(key=origin, got="text that does not parse", takes="TOML", hint=str(error)) from None
    name = tables.pop(_PRESET_KEY, None)
    if folder is not None:
        tables = _located(tables, folder.absolute())
    if name is None:
        return tables
    if not isinstance(name, str):
        raise ConfigError(key=_PRESET_KEY, got=name, takes=f"one of {', '.join(PRESETS)}")
    return _merge(_preset_tables(name), tables)


def _located(tables: Tables, folder: Path) -> Tables:
    """Return the tables with the graph's file as an absolute path, where they name one: relative to this folder."""
    topology = tables.get("topology")
    if not isinstance(topology, dict) or not isinstance(topology.get("file"), str) or not topology["file"]:
        return tables
    return {**tables, "topology": {**topology, "file": str(folder / topology["file"])}}


def _merge(under: Tables, over: Tables) -> Tables:
    merged = dict(under)
    for section, table in over.items():
        below = merged.get(section)
        merged[section] = {**below, **table} if isinstance(below, dict) and isinstance(table, dict) else table
    return merged
