"""Read a page as strictly as no browser does, so that a broken one is a failing test."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

VOID = frozenset({"meta", "link", "br", "hr", "img", "input"})


class Page(HTMLParser):
    """Elements, ids and references of a page; refuses tags that are not closed in order."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = source
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.anchors: list[str] = []
        self.labelled_by: list[str] = []
        self.words: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), "a script"
            assert value is not None or name == "open"
            if name == "id":
                self.ids.append(value or "")
            elif name == "aria-labelledby":
                self.labelled_by += (value or "").split()
            elif name == "href" and (value or "").startswith("#"):
                self.anchors.append((value or "")[1:])
            elif name in {"href", "src", "action", "data", "poster", "srcset"}:
                assert value == "data:,", f"{name}={value} asks somebody for something"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def drawings(self) -> list[ET.Element]:
        return [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", self.source, flags=re.DOTALL)]


def sound_page(source: str) -> Page:
    """Check what holds for every page of ours, and return it."""
    page = Page(source)
    assert source.startswith("<!doctype html>\n")
    assert not {"script", "iframe", "object", "embed"} & set(page.tags)
    assert not re.search(r"https?:|url\(|@import|javascript:", source)
    assert len(page.ids) == len(set(page.ids))
    assert set(page.anchors) | set(page.labelled_by) <= set(page.ids)
    assert (page.tags.count("h1"), page.tags.count("main"), page.tags.count("title") >= 1) == (1, 1, True)
    for drawing in page.drawings():
        assert drawing.get("role") == "img"
        assert [child.tag for child in drawing][:2] == ["title", "desc"]
        assert not re.search(r"\b(nan|inf)\b", ET.tostring(drawing, encoding="unicode"), flags=re.IGNORECASE)
    return page
