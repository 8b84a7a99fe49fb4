"""One broker, one console and one browser for the whole folder: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from compat_tests.deps import axe
from kpybroker.testing import Broker
from tests.support.programs.forks import COMMANDS, piped

CHROMIUM = "/usr/bin/chromium"
NAME = "console.example"
"""Of 127.0.0.1, in Chromium. It is no secure context there, unlike loopback: no header says which site a form is of."""
KEEP_PRIORITY = ("setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice")
"""Chromium gives itself a higher priority where it may, as root may: then the console waits for the browser, and a page
takes seconds in place of tenths."""
WAIT_MS = 60_000
START_S = 180.0
"""A machine that is busy with other tests starts a broker slowly."""

LOOKS = (("dark", 1440), ("light", 360))
"""Schemes and widths that every page is looked at in; `OTHER_LOOKS` are looked at by wide tests."""
OTHER_LOOKS = (("light", 1440), ("dark", 768), ("light", 768), ("dark", 360))

CONFIG = {"kpybroker.metrics.port": 0, "kpybroker.log.levels": "kafka.request.logger=DEBUG"}

HURRIED = "(every => { setInterval = (what, ms, ...rest) => every(what, ms / 10, ...rest); })(setInterval)"
"""Intervals alone: a limit of time is as long as ever."""

OpenPage = Callable[..., Page]


@contextmanager
def console(*arguments: str) -> Iterator[str]:
    """The address of a console with these arguments."""
    with piped(["console", "--port", "0", *arguments], COMMANDS) as process:
        assert process.stdout is not None
        ready = process.stdout.readline().split()
        try:
            assert ready[:3] == ["kpybroker", "console", "ready"]
            yield ready[-1].rstrip("/")
        finally:
            process.kill()


@pytest.fixture(scope="module")
def kafka() -> Iterator[Broker]:
    """A broker with a topic `orders` of three partitions, and thirty records in it."""
    with Broker(topics={"orders": 3}, config=CONFIG, start_timeout=START_S) as broker:
        broker.produce("orders", [(f"customer-{n % 5}", {"order": n, "total": n * 3.5}) for n in range(30)])
        yield broker


@pytest.fixture(scope="module")
def address(kafka: Broker) -> Iterator[str]:
    """A console of the broker that may change it."""
    with console("-b", kafka.bootstrap_servers, "--allow-changes") as found:
        yield found


@pytest.fixture(scope="module")
def browser_command(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What starts Chromium with the priority of the tests."""
    if os.getuid() != 0 or shutil.which(KEEP_PRIORITY[0]) is None:
        return CHROMIUM
    if subprocess.run([*KEEP_PRIORITY, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        return CHROMIUM  # a container's root may not give up what it has not
    file = tmp_path_factory.mktemp("browser") / "chromium"
    file.write_text(f'#!/bin/sh\nexec {" ".join(KEEP_PRIORITY)} {CHROMIUM} "$@"\n')
    file.chmod(0o755)
    return str(file)


@pytest.fixture(scope="module")
def chromium(browser_command: str) -> Iterator[Browser]:
    """Ends with the tests of a file: while it is open, an event loop runs in this thread."""
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", f"--host-resolver-rules=MAP {NAME} 127.0.0.1"]
        browser = playwright.chromium.launch(executable_path=browser_command, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[OpenPage]:
    """Opens a page in a browser of its own. The test fails if the page's policy or a script was violated.

    One that `hurries` updates itself ten times as often.
    """
    problems: list[str] = []
    contexts = []

    def make(url: str, *, allows_failures: bool = False, hurries: bool = False, **options: Any) -> Page:
        context = chromium.new_context(**options)
        if hurries:
            context.add_init_script(HURRIED)
        context.set_default_timeout(WAIT_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(f"a dialog: {dialog.message}"))
        page.on("request", lambda request: problems.append(request.url) if not _is_local(request.url) else None)
        if not allows_failures:
            page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
        page.goto(url)
        return page

    yield make
    for context in contexts:
        context.close()
    assert problems == []


def _is_local(url: str) -> bool:
    return url.startswith(("http://127.0.0.1:", f"http://{NAME}:"))


@pytest.fixture(scope="module")
def axe_source() -> str:
    return axe().read_text(encoding="utf-8")


def barriers(page: Page, source: str) -> list[str]:
    """What axe finds serious or critical."""
    page.evaluate(source)  # the protocol of the browser's debugger is not bound by the page's policy
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:200]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]


def barriers_of(page: Page, source: str, looks: Sequence[tuple[str, int]] = LOOKS) -> list[str]:
    """What axe finds in these schemes at these widths, and widths at which the page scrolls sideways."""
    found = []
    for scheme, width in looks:
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.set_viewport_size({"width": width, "height": 800})
        found += [f"{scheme} at {width}: {one}" for one in barriers(page, source)]
        if (needed := page.evaluate("document.documentElement.scrollWidth")) > width:
            found.append(f"at {width} pixels it is {needed} wide")
    return found
