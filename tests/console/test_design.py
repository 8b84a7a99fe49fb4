"""What docs/internals/console-design.md promises: contrasts, the weight of a first visit, no style in a page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

import kpybroker.console
from tests.console.conftest import MakeClient

STATIC: Final = Path(kpybroker.console.__file__).with_name("static")
TEMPLATES: Final = STATIC.with_name("templates")
DESIGN: Final = Path(__file__).parents[2] / "docs" / "internals" / "console-design.md"
FIRST_VISIT_BYTES_MAX: Final = 200_000
TEXT, EDGE = 4.5, 3.0
"""WCAG 2.2 AA: of text that is not large, and of the edge of a field or a shape that means something."""
PAIRS: Final = (
    *((front, back, TEXT) for front in ("text", "faint", "link") for back in ("back", "side", "raised", "hover")),
    *((front, back, TEXT) for front in ("good", "warn", "bad") for back in ("back", "hover", f"{front}-back")),
    *(("text", back, TEXT) for back in ("field", "good-back", "warn-back", "bad-back")),
    ("faint", "field", TEXT),
    ("on-accent", "accent", TEXT),
    ("on-chosen", "chosen", TEXT),
    ("on-chosen", "back", TEXT),
    ("edge", "back", EDGE),
    ("edge", "field", EDGE),
    ("link", "line", EDGE),
)
TOKEN: Final = re.compile(r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);")


def tokens() -> dict[str, tuple[str, str]]:
    """Each colour, for light and for dark."""
    return {name: (light, dark) for name, light, dark in TOKEN.findall((STATIC / "console.css").read_text())}


def luminance(colour: str) -> float:
    """As WCAG defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("front", "back", "at_least"), PAIRS)
def test_a_contrast(front: str, back: str, at_least: float) -> None:
    found = tokens()
    for scheme in (0, 1):
        assert contrast(found[front][scheme], found[back][scheme]) >= at_least


def test_the_figures_of_the_page_are_those_of_the_colours() -> None:
    found = tokens()
    rows = [
        f"| `--{front}` on `--{back}` | {contrast(found[front][0], found[back][0]):.1f} | "
        f"{contrast(found[front][1], found[back][1]):.1f} | {at_least} |"
        for front, back, at_least in PAIRS
    ]
    text = DESIGN.read_text()
    missing = [row for row in rows if row not in text]
    assert missing == []
    colours = [f"| `--{name}` | `{light}` | `{dark}` |" for name, (light, dark) in found.items()]
    assert [row for row in colours if row not in text] == []


def test_a_first_visit_is_light(client: MakeClient) -> None:
    browser = client()
    page = browser.get("/")
    assert page.status_code == 200
    files = set(re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text))
    assert {"/static/console.css", "/static/console.js", "/static/htmx.min.js", "/static/inter.woff2"} <= files
    weight = len(page.content) + sum(len(browser.get(file).content) for file in files)
    print(f"{weight} bytes: the page {len(page.content)}, {len(files)} files")
    assert weight <= FIRST_VISIT_BYTES_MAX
    fonts_and_images = re.findall(r"url\(\"?([^)\"]+)", (STATIC / "console.css").read_text())
    assert {f"/static/{name}" for name in fonts_and_images} <= files


@pytest.mark.parametrize("file", sorted(TEMPLATES.rglob("*.html")), ids=lambda file: file.name)
def test_a_template_has_no_style_of_its_own(file: Path) -> None:
    text = file.read_text()
    assert not re.search(r"<style|\sstyle=|<script(?! src=\"/static/)|\son[a-z]+=|https?://", text)
