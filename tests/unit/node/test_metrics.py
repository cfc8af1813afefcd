"""What participants report, and what docs/metrics.md says about it."""

import re
from pathlib import Path

import pytest

from tests.unit.node.federation import Federation, Plan, rounds_of
from unlinkabledfl.node.ledger import Ledger, Totals
from unlinkabledfl.node.rounds import RoundOver

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
OVER = RoundOver(round_number=1, train_s=1.0, exchange_s=2.0, aggregate_s=0.25, evaluate_s=0.5)


def documented(*, gauges: bool) -> set[str]:
    text = PAGE.read_text(encoding="utf-8")
    reports, _, instants = text.partition("\n## Gauges")
    rows = [line.split("|")[1] for line in (instants if gauges else reports).splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


@pytest.fixture(scope="module")
def federation() -> Federation:
    made = Federation(Plan(nodes=4, degree=2, settings=rounds_of(2)))
    made.run_until_finished()
    return made


def test_every_metric_of_a_report_is_documented_and_the_other_way_round(federation: Federation) -> None:
    reported = {name for report in federation.reports[0].values() for name in report}

    drivers = {"cpu_s", "cpu_mix_s", "cpu_learner_s", "pss_mib"}
    pytorch = {"train_samples", "train_steps"}
    assert reported == documented(gauges=False) - drivers - pytorch


def test_every_gauge_is_documented_and_the_other_way_round(federation: Federation) -> None:
    assert set(federation.participant(0).gauges()) == documented(gauges=True)


def test_flows_are_what_passed_since_the_report_before() -> None:
    ledger = Ledger()
    reports = [
        ledger.close(OVER, Totals(fragments_sent=sent, bytes_sent=10 * sent), peers_routable=3) for sent in (4, 4, 11)
    ]

    assert [report["fragments_sent"] for report in reports] == [4.0, 0.0, 7.0]
    assert [report["bytes_sent"] for report in reports] == [40.0, 0.0, 70.0]


def test_a_round_lasts_as_long_as_its_phases() -> None:
    assert Ledger().close(OVER, Totals(), peers_routable=3)["round_s"] == 3.75


def test_round_trips_are_those_since_the_report_before_and_left_out_where_there_were_none() -> None:
    ledger = Ledger()
    for round_trip_s in range(101):
        ledger.round_trip(float(round_trip_s))
    first = ledger.close(OVER, Totals(), peers_routable=3)
    second = ledger.close(OVER, Totals(), peers_routable=3)

    assert (first["rtt_s_mean"], first["rtt_s_p50"], first["rtt_s_p95"]) == (50.0, 50.0, 95.0)
    assert not any(name.startswith("rtt") for name in second)


def test_the_share_of_cover_counts_resends_as_packets_of_our_own() -> None:
    totals = Totals(fragments_sent=3, fragments_resent=1, cover_sent=12)

    assert (totals.cover_share, Totals().cover_share) == (0.75, 0.0)
    assert Ledger().close(OVER, totals, peers_routable=3)["cover_share"] == 0.75


def test_what_a_learner_says_of_training_and_of_evaluation_stays_apart() -> None:
    ledger = Ledger()
    ledger.notes.train_metrics = {"loss": 2.0, "train_samples": 60.0}
    ledger.notes.evaluation = {"loss": 1.0, "accuracy": 0.9}
    report = ledger.close(OVER, Totals(), peers_routable=3)

    assert {name: report[name] for name in ("train_loss", "train_samples", "loss", "accuracy")} == {
        "train_loss": 2.0,
        "train_samples": 60.0,
        "loss": 1.0,
        "accuracy": 0.9,
    }
