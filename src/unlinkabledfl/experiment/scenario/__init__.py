"""Everything that decides a run: presets, TOML files, overrides, and the one frozen object that they become."""

from unlinkabledfl.experiment.scenario.learning import Aggregation, Attack, Learning, Payload
from unlinkabledfl.experiment.scenario.loading import (
    PRESETS,
    find_mistakes,
    load_scenario,
    override,
    parse_scenario,
    parse_tables,
    preset,
    preset_toml,
    validate_scenario,
)
from unlinkabledfl.experiment.scenario.model import Scenario
from unlinkabledfl.experiment.scenario.network import Churn, Links, Mixnet, Topology
from unlinkabledfl.experiment.scenario.running import Container, Monitoring, Process, Run, Simulation
from unlinkabledfl.experiment.scenario.schema import Key, keys, sections
from unlinkabledfl.experiment.scenario.writing import to_toml

__all__ = [
    "PRESETS",
    "Aggregation",
    "Attack",
    "Churn",
    "Container",
    "Key",
    "Learning",
    "Links",
    "Mixnet",
    "Monitoring",
    "Payload",
    "Process",
    "Run",
    "Scenario",
    "Simulation",
    "Topology",
    "find_mistakes",
    "keys",
    "load_scenario",
    "override",
    "parse_scenario",
    "parse_tables",
    "preset",
    "preset_toml",
    "sections",
    "to_toml",
    "validate_scenario",
]
