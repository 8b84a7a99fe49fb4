"""The site in Chromium: what its search puts first, and that no page is wider than the window."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, sync_playwright

from compat_tests.console.conftest import CHROMIUM, WAIT_MS
from tests.support.programs.site import built_site

RESULTS = "#search-results ul.search li > a"
PAGES = (
    *("index", "start/index", "guides/testing", "guides/console", "examples/index", "speed/index", "testing/index"),
    *(
        "reference/testing",
        "reference/registry",
        "reference/control",
        "reference/which-kafka",
        "reference/configuration",
    ),
    *("internals/why", "internals/architecture", "internals/benchmarks"),
)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTHS = (360, 768, 1440)
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


@pytest.mark.parametrize("name", PAGES)
def test_no_page_scrolls_sideways(address: str, chromium: Browser, name: str) -> None:
    page = chromium.new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(f"{address}/{name}.html")
    for scheme, width in itertools.product(SCHEMES, WIDTHS):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        wider = page.evaluate("document.scrollingElement.scrollWidth - window.innerWidth")
        assert wider <= 0, f"{wider} px wider than a window of {width} px, {scheme}"
    page.close()
