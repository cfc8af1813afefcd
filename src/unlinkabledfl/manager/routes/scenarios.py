"""`/api/presets`, `/api/schema`, `/api/scenario/…`: make a scenario, and learn what it promises, before it runs."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter

from unlinkabledfl.errors import ConfigError
from unlinkabledfl.experiment.scenario import (
    PRESETS,
    Scenario,
    find_mistakes,
    keys,
    parse_tables,
    preset,
    preset_toml,
    sections,
    to_toml,
    validate_scenario,
)
from unlinkabledfl.manager.context import Here
from unlinkabledfl.manager.documents import (
    Checked,
    Draft,
    Expected,
    KeyDescription,
    Preset,
    Presets,
    ScenarioSchema,
    SectionDescription,
    Start,
    TomlText,
)
from unlinkabledfl.manager.problems import mistake_of, problems, scenario_of

__all__ = ["router"]

router = APIRouter(prefix="/api", tags=["scenarios"])


@router.get("/presets", responses=problems(401))
def list_presets() -> Presets:
    """Return the scenarios that come with the package."""
    return Presets(presets=tuple(map(_preset, PRESETS)))


@router.get("/schema", responses=problems(401))
def get_schema() -> ScenarioSchema:
    """Return everything that can be set, with a sentence, the unit and the paper's symbol for each key."""
    described = []
    for section, model in sections().items():
        chosen = [key for key in keys().values() if key.section == section]
        described.append(
            SectionDescription(
                name=section,
                says=Scenario.model_fields[section].description or (model.__doc__ or "").strip(),
                keys=tuple(
                    KeyDescription(
                        key=key.dotted,
                        name=key.name,
                        says=key.says,
                        takes=key.takes,
                        default=list(key.default) if isinstance(key.default, tuple) else key.default,
                        unit=key.unit,
                        symbol=key.symbol,
                        json_schema=dict(key.schema),
                    )
                    for key in chosen
                ),
            )
        )
    return ScenarioSchema(sections=tuple(described), json_schema=Scenario.model_json_schema())


@router.post("/scenario/validate", responses=problems(400, 401, 403, 413, 422))
def check_scenario(draft: Draft) -> Checked:
    """Fill in all defaults, or say for each key that does not fit what it takes."""
    return _checked(draft.scenario)


@router.post("/scenario/from-toml", responses=problems(400, 401, 403, 413, 422))
def import_toml(text: TomlText) -> Checked:
    """Read a TOML file, presets and all."""
    try:
        tables = parse_tables(text.toml, origin="the file")
    except ConfigError as error:
        return Checked(scenario=None, mistakes=(mistake_of(error),))
    return _checked(tables)


@router.post("/scenario/to-toml", responses=problems(400, 401, 403, 409, 413, 422))
def export_toml(start: Start) -> TomlText:
    """Write a scenario as a TOML file, complete with all defaults."""
    return TomlText(toml=to_toml(scenario_of(start.scenario)))


@router.post("/scenario/indicators", responses=problems(400, 401, 403, 413, 422))
def expect(draft: Draft, context: Here) -> Expected:
    """Say what a scenario promises: reach, payload, traffic, time, entropies, linkability, robustness, resources."""
    mistakes = find_mistakes(draft.scenario)
    if mistakes:
        return Expected(indicators=None, mistakes=tuple(map(mistake_of, mistakes)))
    try:
        return Expected(indicators=context.expectations.of(validate_scenario(draft.scenario)), mistakes=())
    except ConfigError as error:
        return Expected(indicators=None, mistakes=(mistake_of(error),))


def _checked(tables: Mapping[str, Any]) -> Checked:
    mistakes = find_mistakes(tables)
    if mistakes:
        return Checked(scenario=None, mistakes=tuple(map(mistake_of, mistakes)))
    return Checked(scenario=validate_scenario(tables), mistakes=())


def _preset(name: str) -> Preset:
    toml = preset_toml(name)
    says = " ".join(line.lstrip("# ") for line in toml.splitlines() if line.startswith("#"))
    return Preset(name=name, says=says, toml=toml, scenario=preset(name))
