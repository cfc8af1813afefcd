"""Write SVG elements: names, attributes, escaped text, short numbers."""

import re
from html import escape
from typing import Final

__all__ = ["drawing", "element", "escaped", "path", "place", "text"]


# What no XML may hold, not even escaped.
_UNWRITABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def escaped(words: str) -> str:
    """Return words as they can stand in a page: nothing in them is taken for markup."""
    return escape(_UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", words))


def place(value: float) -> str:
    """Write a coordinate: a tenth of a pixel is finer than any screen shows."""
    return f"{value:.1f}".removesuffix(".0")


def element(name: str, content: str = "", **attributes: float | str) -> str:
    """Write an element. Underscores of attribute names stand for dashes, and `class_` is `class`."""
    parts = [name]
    for key, value in attributes.items():
        written = value if isinstance(value, str) else place(value)
        parts.append(f'{key.rstrip("_").replace("_", "-")}="{escaped(written)}"')
    head = " ".join(parts)
    return f"<{head}>{content}</{name}>" if content else f"<{head}/>"


def text(content: str, *, x: float, y: float, class_: str = "", anchor: str = "start", rotate: bool = False) -> str:
    """Write words at a place."""
    attributes: dict[str, float | str] = {"x": x, "y": y}
    if anchor != "start":
        attributes["text_anchor"] = anchor
    if class_:
        attributes["class_"] = class_
    if rotate:
        attributes["transform"] = f"rotate(-90 {place(x)} {place(y)})"
    return element("text", escaped(content), **attributes)


def path(points: list[tuple[float, float] | None]) -> str:
    """Write a line through points as path data; None lifts the pen."""
    parts: list[str] = []
    is_down = False
    for point in points:
        if point is None:
            is_down = False
            continue
        parts.append(f"{'L' if is_down else 'M'}{place(point[0])} {place(point[1])}")
        is_down = True
    return "".join(parts)


def drawing(body: str, *, name: str, title: str, description: str, width: float, height: float) -> str:
    """Wrap elements as a picture that a screen reader can name and describe."""
    head = f'<title id="{name}-t">{escaped(title)}</title><desc id="{name}-d">{escaped(description)}</desc>'
    return (
        f'<svg class="chart" role="img" aria-labelledby="{name}-t {name}-d" '
        f'viewBox="0 0 {place(width)} {place(height)}">{head}{body}</svg>'
    )
