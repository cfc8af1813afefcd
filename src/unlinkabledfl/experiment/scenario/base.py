"""What all sections of a scenario have in common: frozen, strict, and every key documented in its declaration.

The declarations are the only place in which a key is described. The reference page, error messages, the JSON schema and
with it the OpenAPI schema and any form made from it are all derived from them.
"""

from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["SEED_END", "Section", "setting"]

SEED_END: Final = 2**53
"""JSON's readers hold whole numbers below this exactly; a seed that a form rounded would be another."""


class Section(BaseModel):
    """A group of settings. Strict: `"3"` is no number and `1` is not true, but a whole number may stand for a float."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, validate_default=True)


def setting(default: Any, says: str, *, unit: str = "", symbol: str = "", **constraints: Any) -> Any:  # noqa: ANN401
    """Declare a key: its default, what it does, the unit it counts in, the paper's symbol, and pydantic's bounds."""
    extra: dict[str, Any] = {}
    if unit:
        extra["unit"] = unit
    if symbol:
        extra["symbol"] = symbol
    return Field(default, description=says, json_schema_extra=extra, **constraints)
