"""Looking at a page as people do: at a desk and on a phone, in the light and in the dark, and with axe for those who
cannot see it. Pictures stay in build/screenshots."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

ROOT = Path(__file__).parents[3]
PICTURES = ROOT / "build" / "screenshots"
AXE = ROOT / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"

DESK = {"width": 1440, "height": 900}
PHONE = {"width": 360, "height": 740}


def look_at(page: Page, name: str) -> None:
    """Keep pictures of this view, and fail where it overflows or axe finds a serious fault."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme="light" if theme == "light" else "dark")
        page.wait_for_function("(theme) => document.documentElement.dataset.theme === theme", arg=theme)
        for device, size in (("desk", DESK), ("phone", PHONE)):
            page.set_viewport_size({"width": size["width"], "height": size["height"]})
            page.evaluate("() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
            page.screenshot(path=PICTURES / f"{name}-{device}-{theme}.png", animations="disabled")
            wide = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, f"{name} is {wide} pixels too wide for a {device}"
        faults = serious_faults(page)
        assert not faults, "\n".join([f"{name} in the {theme}:", *faults])
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": DESK["width"], "height": DESK["height"]})


def serious_faults(page: Page) -> list[str]:
    """Return what axe finds that keeps people out, as sentences."""
    if page.evaluate("() => typeof axe === 'undefined'"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{fault['id']}: {fault['help']}: {node['target']} {node['failureSummary']}"
        for fault in found["violations"]
        if fault["impact"] in {"serious", "critical"}
        for node in fault["nodes"][:3]
    ]
