"""Every key of a scenario by its dotted name, with what it takes in words: read off the models, for people."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from unlinkabledfl.experiment.scenario.base import SEED_END
from unlinkabledfl.experiment.scenario.model import Scenario

__all__ = ["Key", "keys", "sections"]

_LISTS = {"integer": "a list of whole numbers", "string": "a list of texts"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key, as people are told of it."""

    section: str
    name: str
    takes: str
    default: Any
    says: str
    unit: str
    symbol: str
    schema: Mapping[str, Any]

    @property
    def dotted(self) -> str:
        """Its full name."""
        return f"{self.section}.{self.name}"

    @property
    def is_text(self) -> bool:
        """Whether its value is a string."""
        return self.schema.get("type") == "string"

    @property
    def is_number(self) -> bool:
        """Whether its value may have a fraction."""
        return self.schema.get("type") == "number"


def sections() -> Mapping[str, type[BaseModel]]:
    """Return each section's model by its name, in order."""
    return {name: _model_of(field) for name, field in Scenario.model_fields.items()}


@cache
def keys() -> Mapping[str, Key]:
    """Return every key by its dotted name, in order."""
    found: dict[str, Key] = {}
    for section, model in sections().items():
        properties = model.model_json_schema()["properties"]
        for name, field in model.model_fields.items():
            key = _describe(section, name, field, properties[name])
            found[key.dotted] = key
    return MappingProxyType(found)


def _describe(section: str, name: str, field: FieldInfo, schema: Mapping[str, Any]) -> Key:
    default = field.default
    return Key(
        section=section,
        name=name,
        takes=takes(schema),
        default=None if default is PydanticUndefined else default,
        says=field.description or "",
        unit=schema.get("unit", ""),
        symbol=schema.get("symbol", ""),
        schema=schema,
    )


def takes(schema: Mapping[str, Any]) -> str:
    """Say in words what a value of this JSON schema may be; it reads after "takes"."""
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        *most, last = [str(choice) for choice in schema["enum"]]
        return f"{', '.join(most)} or {last}"
    match schema.get("type"):
        case "boolean":
            return "true or false"
        case "integer":
            return f"a whole number{_bounds(schema)}"
        case "number":
            return f"a number{_bounds(schema)}"
        case "string":
            return _text(schema)
        case "array":
            return _LISTS.get(schema["items"].get("type"), "a list of { node, round }")
        case _:
            return "a table of texts, numbers, true and false"


def _bounds(schema: Mapping[str, Any]) -> str:
    least, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    most, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    parts = []
    if least is not None:
        parts.append(f" from {_number(least)}")
    elif above is not None:
        parts.append(f" above {_number(above)}")
    if most is not None:
        parts.append(f" to {_number(most)}" if least is not None else f" and up to {_number(most)}")
    elif below is not None:
        parts.append(f" to below {_number(below)}" if least is not None else f" and below {_number(below)}")
    return "".join(parts)


def _text(schema: Mapping[str, Any]) -> str:
    longest = schema.get("maxLength")
    limit = f" of at most {longest} characters" if longest else ""
    return f"a text{limit}" + (f" that matches {schema['pattern']}" if "pattern" in schema else "")


def _number(value: float) -> str:
    if value == SEED_END:
        return "2^53"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}" if abs(value) >= 10_000 else str(int(value))  # noqa: PLR2004 -- short ones need none
    return f"{value:g}"


def _model_of(field: FieldInfo) -> type[BaseModel]:
    model = field.annotation
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise TypeError(f"a section is a model, not {model!r}")
    return model
