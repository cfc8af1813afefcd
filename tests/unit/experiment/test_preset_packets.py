"""Every shape of packet that a preset uses has golden vectors."""

import pytest

from tests.vectors.make_sphinx import HERE
from unlinkabledfl.experiment.scenario import PRESETS, preset
from unlinkabledfl.experiment.translation import geometry_of


@pytest.mark.parametrize("layer", ["x25519", "pq"])
@pytest.mark.parametrize("name", PRESETS)
def test_the_packets_of_a_preset_have_golden_vectors(name: str, layer: str) -> None:
    geometry = geometry_of(preset(name, [f"mixnet.key_layer={layer}"]).mixnet, None)

    assert (HERE / f"sphinx-{layer}-{geometry.max_hops}-{geometry.body_bytes}.json").is_file()


@pytest.mark.parametrize("path_length", range(1, 11))
def test_so_have_those_of_routes_of_any_length(path_length: int) -> None:
    geometry = geometry_of(preset("strong", [f"mixnet.path_length={path_length}"]).mixnet, None)

    assert (HERE / f"sphinx-x25519-{geometry.max_hops}-{geometry.body_bytes}.json").is_file()
