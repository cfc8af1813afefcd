"""The document of `bench link` holds what it promises."""

import pytest

from benchmarks import link

COLUMNS = {"ours", "qh3_stock", "aioquic", "aioquic_one_stream"}


def test_the_document_carries_the_promised_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "_THEIRS_A_SAMPLE", 8)
    monkeypatch.setattr(link, "_OURS_A_SAMPLE", 16)

    document = link.measure(rounds=1)

    assert set(document) >= {"cpu_us", "ratio_qh3_stock", "ratio_aioquic", "machine", "versions", "seconds"}
    assert set(document["cpu_us"]) == COLUMNS
    for name in ("ours", "qh3_stock"):
        assert set(document["cpu_us"][name]) == {"1280", "16000"}
        assert all(us > 0 for us in document["cpu_us"][name].values())
    assert link.render(document) is not None


def test_ratios_are_taken_at_1280_bytes_and_missing_where_there_is_nothing_to_compare() -> None:
    figures: dict[str, dict[str, float] | None] = {
        "ours": {"1280": 50.0, "16000": 1.0},
        "qh3_stock": {"1280": 250.0, "16000": 1.0},
        "aioquic": {"1280": 1_500.0, "16000": 1.0},
    }

    assert link.ratios(figures) == {"ratio_qh3_stock": 0.2, "ratio_aioquic": 30.0}
    assert link.ratios(figures | {"aioquic": None}) == {"ratio_qh3_stock": 0.2, "ratio_aioquic": None}
