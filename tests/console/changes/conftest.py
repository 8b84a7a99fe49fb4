"""Changes as a browser without JavaScript makes them, and their equivalent commands."""

from __future__ import annotations

import html
import logging
import re
from collections.abc import Mapping
from typing import Any

import pytest
from starlette.testclient import TestClient

from kpybroker.console.changes.change import Change
from tests.console.conftest import token_of

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


def assert_refused_at(page: Any, change: Change, field: str, typed: Mapping[str, str]) -> None:
    """The preview refuses the input, this field alone is marked, and everything that was typed is in the form."""
    assert page.status_code == 400, page.text
    before, *more = page.text.split('aria-invalid="true"')
    assert len(more) == 1
    assert f'name="{field}"' in before.rsplit("<", 1)[1]
    assert 'id="wrong"' in page.text
    text = html.unescape(page.text)
    choices = {one.name: one.choices for one in change.fields if one.kind == "choice"}
    for name, value in typed.items():
        if name in choices:
            assert value not in choices[name] or f'<option value="{value}" selected>' in text
        else:
            assert f'name="{name}" value="{value}"' in text or f">\n{value}</textarea>" in text, name
    assert "Do it" not in page.text


def assert_needs_permission(
    browser: TestClient, reader: TestClient, key: str, fields: Mapping[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is done without `--allow-changes`, which the console of `reader` has not; a token; and a preview."""

    def posted(by: TestClient, **more: str) -> Any:
        return by.post(f"/change/{key}", data={**fields, **more})

    with caplog.at_level(logging.INFO, "kpybroker.console.changes"):
        refused = posted(reader, token=token_of(reader.get(f"/change/{key}").text))
        assert (refused.status_code, "read-only" in refused.text) == (403, True)
        token = token_of(browser.get(f"/change/{key}").text)
        for wrong in ("", "x", token_of(reader.get(f"/change/{key}").text)):
            assert posted(browser, token=wrong).status_code == 403
        for signature in ("", "0" * 64):
            no_plan = posted(browser, token=token, plan="[]", signature=signature)
            assert (no_plan.status_code, "this form has no plan" in no_plan.text) == (400, True)
    assert not [line for line in caplog.messages if line.startswith("Change key=")], "nothing was done"
    assert [line for line in caplog.messages if line.startswith("Change refused, the console is read-only")]
