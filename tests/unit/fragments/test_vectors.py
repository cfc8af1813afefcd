import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.fuzz_fragments import fuzz_one
from unlinkabledfl.errors import FragmentError
from unlinkabledfl.fragments import FragmentDecoder, FragmentEncoder, Grid, codec_by_name

FOLDER = Path(__file__).parents[2] / "vectors"
GOOD = json.loads((FOLDER / "fragment-good.json").read_text())
BAD = json.loads((FOLDER / "fragment-bad.json").read_text())
GRID = Grid(**GOOD["grid"])
DECODER = FragmentDecoder(GRID, capacity_bytes=GOOD["capacity_bytes"], bound=GOOD["bound"])


def test_the_generator_writes_the_files_again() -> None:
    documents = runpy.run_path(str(FOLDER / "make_fragment.py"))["documents"]()

    assert {path.name: text for path, text in documents.items()} == {
        name: (FOLDER / name).read_text() for name in ("fragment-good.json", "fragment-bad.json")
    }


@pytest.mark.parametrize("case", GOOD["cases"], ids=lambda case: case["name"])
def test_a_good_fragment_says_this(case: Any) -> None:
    fragment = DECODER.decode(bytes.fromhex(case["data"]))

    assert (fragment.round, fragment.start, fragment.stop) == (case["round"], case["start"], case["stop"])
    assert fragment.content_id.hex() == case["content_id"]
    assert (str(fragment.values.dtype), fragment.values.size) == ("float32", case["stop"] - case["start"])
    assert np.abs(fragment.values - np.array(case["values"])).max() <= case["tolerance"]


@pytest.mark.parametrize("case", BAD["cases"], ids=lambda case: case["name"])
def test_a_bad_fragment_is_refused_for_its_cause(case: Any) -> None:
    with pytest.raises(FragmentError) as caught:
        DECODER.decode(bytes.fromhex(case["data"]))

    assert caught.value.cause == case["cause"]


def test_f32_writes_the_golden_bytes() -> None:
    case = GOOD["cases"][0]
    vector = np.zeros(28, dtype=np.float32)
    vector[8:16] = case["values"]
    encoder = FragmentEncoder(GRID, codec_by_name("f32"), capacity_bytes=200)

    data = encoder.encode(vector, round_number=7, rng=np.random.default_rng(1), ranges=[1])

    assert [each.hex() for each in data] == [case["data"]]


@given(st.binary(max_size=1_400))
def test_the_fuzz_target_finds_nothing_here(data: bytes) -> None:
    fuzz_one(data)
