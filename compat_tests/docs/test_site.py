"""The site in Chromium: what its search puts first, that no page is wider than the window, diagrams in both schemes."""

from __future__ import annotations

import functools
import itertools
import re
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from compat_tests.console.conftest import CHROMIUM, WAIT_MS
from tests.support.programs.site import built_site

RESULTS = "#search-results ul.search li > a"
PAGES = (
    *("index", "guides/console", "examples/index", "reference/testing", "reference/configuration"),
    *("guides/pipelines/changes", "testing/suites", "internals/architecture", "internals/benchmarks/one-broker"),
)
"""Of each kind of content one: tables, code, diagrams, pictures, signatures. All pages are in the wide test."""
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTHS = (360, 768, 1440)
PAGES_MIN = 100
OF_NO_READER = {"_static", "_modules", "genindex.html", "search.html"}
DIAGRAMS = (
    "concepts/log",
    "concepts/transactions",
    "guides/pipelines/changes",
    "internals/architecture",
    "speed/index",
)
CONTRAST_MIN, LETTER_PX_MIN = 4.5, 10
LETTERS = """() => [...document.querySelectorAll('.diagram text')].map((text) => {
  const box = text.ownerSVGElement, behind = getComputedStyle(document.body).backgroundColor;
  const scale = box.getBoundingClientRect().width / box.viewBox.baseVal.width;
  return [getComputedStyle(text).fill, behind, parseFloat(getComputedStyle(text).fontSize) * scale];
})"""
TESTING = "reference/testing.html#kpybroker.testing"


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and says nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of the built site."""
    site = built_site()
    if not (site / "index.html").exists():
        pytest.skip("without graphviz the site is built as text")
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Ends with the tests of this file."""
    if not Path(CHROMIUM).exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("assert_lag", f"{TESTING}.Brokers.assert_lag"),
        ("UnusedFault", f"{TESTING}.UnusedFault"),
        ("kafka_faults", "reference/testing.html#fixture-kafka_faults"),
        ("broker_down", "reference/control.html#control-method-broker_down"),
        ("processes", "guides/processes.html"),
        ("install", "start/index.html"),
    ],
)
def test_a_search_leads_to(address: str, chromium: Browser, query: str, first: str) -> None:
    page = chromium.new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(f"{address}/search.html?q={query}")
    page.wait_for_function("document.querySelector('#search-results .search-summary')?.textContent.includes('found')")
    hrefs = [str(one.get_attribute("href")) for one in page.query_selector_all(RESULTS)]
    page.close()
    assert hrefs[0] == first
    decisions = [number for number, href in enumerate(hrefs) if href.startswith("decisions/")]
    guides = [number for number, href in enumerate(hrefs) if href.startswith(("guides/", "reference/", "start/"))]
    assert not decisions or min(guides) < min(decisions)


def too_wide(page: Page, address: str) -> list[str]:
    """At which widths, in which schemes the page would scroll sideways, and by how much."""
    page.goto(address)
    found = []
    for scheme, width in itertools.product(SCHEMES, WIDTHS):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        wider = page.evaluate("document.scrollingElement.scrollWidth - window.innerWidth")
        if wider > 0:
            found.append(f"{address}: {wider} px wider than a window of {width} px, {scheme}")
    return found


@pytest.mark.parametrize("name", PAGES)
def test_no_page_scrolls_sideways(address: str, chromium: Browser, name: str) -> None:
    page = chromium.new_page()
    page.set_default_timeout(WAIT_MS)
    assert not too_wide(page, f"{address}/{name}.html")
    page.close()


@pytest.mark.wide
def test_none_of_all_pages_scrolls_sideways(address: str, chromium: Browser) -> None:
    site = built_site()
    names = sorted(file.relative_to(site) for file in site.rglob("*.html") if not OF_NO_READER & set(file.parts))
    assert len(names) > PAGES_MIN
    page = chromium.new_page()
    page.set_default_timeout(WAIT_MS)
    found = [one for name in names for one in too_wide(page, f"{address}/{name}")]
    page.close()
    assert not found, "\n".join(found)


def luminance(colour: str) -> float:
    """Of `rgb(...)`, as WCAG defines it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_diagrams_follow_the_scheme_and_can_be_read(
    address: str, chromium: Browser, scheme: Literal["light", "dark"]
) -> None:
    context = chromium.new_context(viewport={"width": 1440, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    for name in DIAGRAMS:
        page.goto(f"{address}/{name}.html")
        letters = page.evaluate(LETTERS)
        assert letters, name
        for colour, behind, height in letters:
            lighter, darker = sorted((luminance(colour), luminance(behind)), reverse=True)
            assert (lighter + 0.05) / (darker + 0.05) >= CONTRAST_MIN, f"{name}: {colour} on {behind}"
            assert height >= LETTER_PX_MIN, f"{name}: letters of {height:.1f} px"
        assert page.evaluate("[...document.querySelectorAll('.diagram svg')].every((svg) => svg.ariaLabel.length > 40)")
        assert (luminance(letters[0][1]) < 0.2) == (scheme == "dark")
    context.close()
