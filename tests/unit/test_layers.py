"""The import contracts themselves are checked by import-linter; here is what it cannot check about them."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROTOCOL_LAYERS = ("sphinx", "mixnet", "fragments", "node")


def test_the_contract_of_the_protocol_layers_names_each_one_that_exists() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (pure,) = (contract for contract in contracts if contract["id"] == "pure")

    existing = [name for name in PROTOCOL_LAYERS if (ROOT / "src" / "unlinkabledfl" / name).exists()]

    assert sorted(pure["source_modules"]) == sorted(f"unlinkabledfl.{name}" for name in existing)
