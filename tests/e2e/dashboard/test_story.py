"""The dashboard as somebody uses it who sees it for the first time, in a real Chromium, with real nodes."""

import csv
import io
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.dashboard.conftest import TOKEN, Manager
from tests.e2e.dashboard.eyes import DESK, look_at

pytestmark = pytest.mark.browser

SMALL = """\
preset = "demo"

[run]
name = "small"
rounds = 2

[learning]
train_samples = 400
test_samples = 100

[topology]
nodes = 4
degree = 2

[mixnet]
path_length = 2
exchange = "neighbours"
delay_mean_s = 0.02
emission_rate_per_s = 20.0
"""
PATIENCE_MS = 300_000
"""For what real nodes do on a machine that has other things to do."""


@pytest.fixture
def page(browser: Browser) -> Any:
    context = browser.new_context(viewport={"width": DESK["width"], "height": DESK["height"]}, accept_downloads=True)
    context.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    page = context.new_page()
    broken: list[str] = []
    page.on("pageerror", lambda error: broken.append(str(error)))
    yield page
    context.close()
    assert broken == [], "the page threw"


def test_an_experiment_is_configured_launched_watched_compared_and_exported(page: Page, manager: Manager) -> None:
    sign_in(page, manager)
    expect(page.get_by_role("heading", name="No runs yet")).to_be_visible()
    look_at(page, "1-no-runs")

    configure(page)
    first = launch(page)
    watch(page, first)
    second = run_it_again_in_virtual_time(page)
    compare(page, first, second)


def sign_in(page: Page, manager: Manager) -> None:
    page.goto(f"{manager.address}/#token=wrong")
    page.get_by_label("Token").fill("still wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("not the token")
    look_at(page, "0-sign-in")

    page.goto("about:blank")
    page.goto(f"{manager.address}/#token={TOKEN}")
    expect(page.get_by_role("navigation", name="Views")).to_be_visible()
    assert TOKEN not in page.url


def configure(page: Page) -> None:
    page.get_by_role("link", name="New experiment").first.click()
    page.get_by_role("radio", name=re.compile("^paper")).check()
    expected = page.get_by_role("complementary", name="What to expect")
    expect(expected).to_contain_text("The last hop names the sender with probability 0.50")
    page.get_by_label("Mixnet").get_by_text("overlay", exact=True).click()
    expect(expected).not_to_contain_text("The last hop names the sender with probability")

    expect(expected.get_by_text("0.500")).to_be_visible()  # what walks would tell, beside what these routes do

    length = page.get_by_role("textbox", name="Path length", exact=True)
    length.fill("30")
    expect(page.get_by_text("“30” does not fit: it takes a whole number from 1 to 10.")).to_be_visible()
    expect(page.get_by_role("button", name="Launch")).to_be_disabled()
    look_at(page, "2-mistake")
    length.fill("4")
    expect(page.get_by_role("button", name="Launch")).to_be_enabled()
    expect(page.get_by_role("status").filter(has_text="differ")).to_contain_text("2 settings differ from paper")

    page.get_by_placeholder("Find a setting").fill("cover")
    expect(page.get_by_role("textbox", name="Loop rate", exact=True)).to_be_visible()
    page.get_by_placeholder("Find a setting").fill("")
    import_and_export(page)
    look_at(page, "3-new-experiment")


def import_and_export(page: Page) -> None:
    page.get_by_role("button", name="Import TOML").click()
    page.get_by_label("TOML", exact=True).fill("[mixnet]\npath_lenght = 3\n")
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("mixnet.path_length")
    page.get_by_label("TOML", exact=True).fill(SMALL)
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.get_by_role("textbox", name="Name", exact=True)).to_have_value("small")

    page.get_by_role("textbox", name="Exit", exact=True).fill("3@1")
    page.get_by_role("button", name="Export TOML").click()
    look_at(page, "4-toml")
    written = tomllib.loads(page.get_by_label("The scenario as TOML").input_value())
    assert written["topology"]["exit"] == [{"node": 3, "round": 1}]
    assert written["mixnet"] | {"path_length": 2, "delay_mean_s": 0.02} == written["mixnet"]
    page.get_by_role("button", name="Close").click()


def launch(page: Page) -> str:
    page.get_by_role("button", name="Launch").click()
    page.wait_for_url(re.compile(r"#/runs/small-"))
    expect(page.get_by_role("heading", name="small")).to_be_visible()
    return page.url.rsplit("/", 1)[-1]


def watch(page: Page, run: str) -> None:
    graph = page.get_by_role("application", name=re.compile("Topology of 4 nodes"))
    expect(graph).to_be_visible()
    expect(page.get_by_label("Events, the latest first")).to_contain_text("exit")
    look_at(page, "5-live")
    expect(page.locator(".badge.finished")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_role("img", name=re.compile(r"^Accuracy\..*Latest: mean: [0-9.]+ %"))).to_be_visible()
    expect(page.get_by_role("progressbar", name="How much of the run is done")).to_have_attribute(
        "aria-valuenow", "100"
    )
    expect(page.get_by_role("row", name=re.compile(r"^3 has left"))).to_be_visible()
    look_at(page, "6-finished")

    graph.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "Enter"):
        graph.press(key)
    expect(page.get_by_role("heading", name="Node 2")).to_be_visible()
    expect(page.get_by_role("region", name="Log")).to_contain_text("round 1 is over")
    expect(page.get_by_role("img", name=re.compile(r"^Round trip\..*Latest: median"))).to_be_visible()
    look_at(page, "7-node")
    page.get_by_role("link", name=run).click()

    with page.expect_popup() as opened:
        page.get_by_role("link", name="Report").click()
    expect(opened.value.locator("body")).to_contain_text("Accuracy")
    opened.value.close()


def run_it_again_in_virtual_time(page: Page) -> str:
    page.get_by_role("link", name="New from this").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("again")
    page.get_by_text("simulation", exact=True).click()
    page.get_by_role("button", name="Launch").click()
    page.wait_for_url(re.compile(r"#/runs/again-"))
    expect(page.locator(".badge.finished")).to_be_visible(timeout=PATIENCE_MS)
    return page.url.rsplit("/", 1)[-1]


def compare(page: Page, first: str, second: str) -> None:
    page.get_by_role("link", name="Runs", exact=True).click()
    for run in (first, second):
        page.get_by_label(f"Compare {run}").check()
    look_at(page, "8-runs")
    page.get_by_role("button", name="Compare 2").click()
    settings = page.get_by_role("region", name="Settings that differ").last
    expect(settings.get_by_role("row", name="run.backend process simulation")).to_be_visible()
    expect(settings.get_by_role("row", name="run.name small again")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile(r"^Accuracy\. .*small.*again"))).to_be_visible()
    expect(page.get_by_text("95 % interval over nodes")).to_be_visible()
    look_at(page, "9-compare")

    exported = rows_of(saved(page, "Export these curves, CSV"))
    accuracy = {(row["run"], row["round"]) for row in exported if row["metric"] == "accuracy"}
    assert accuracy >= {(run, str(number)) for run in (first, second) for number in (1, 2)}
    page.get_by_text("Download").first.click()
    figures = rows_of(saved(page, "All figures, CSV"))
    assert {"accuracy", "bytes_sent", "cpu_s", "queue_own"} <= {row["metric"] for row in figures}


def saved(page: Page, link: str) -> Path:
    with page.expect_download() as download:
        page.get_by_role("link", name=link).first.click()
    return Path(download.value.path())


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
