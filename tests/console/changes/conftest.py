"""Changes as a browser without JavaScript makes them, and their equivalent commands."""

from __future__ import annotations

import html
import re
from typing import Any

from starlette.testclient import TestClient

HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')
COMMAND = re.compile(r'<code class="command">(.*?)</code>', re.DOTALL)


def previewed(browser: TestClient, key: str, /, **values: str) -> Any:
    """The response to a form's preview."""
    return browser.get(f"/change/{key}", params={"preview": "1", **values})


def fields_of(page: str) -> dict[str, str]:
    """What the form at the end of a preview carries."""
    _, _, end = page.partition('aria-label="Do it"')
    assert end, "the page has no form to do it"
    return {name: html.unescape(value) for name, value in HIDDEN.findall(end)}


def done(browser: TestClient, key: str, again: str = "", /, **values: str) -> Any:
    """The response to what a preview showed, done; a field that is a secret is among the values."""
    page = previewed(browser, key, **values)
    assert page.status_code == 200, page.text
    return browser.post(f"/change/{key}", data={**values, **fields_of(page.text), "typed_again": again})


def command_of(page: str) -> str:
    """The command that a page names."""
    (found,) = COMMAND.findall(page)
    return html.unescape(found)
