"""How pages look: three choices that a form changes and a cookie keeps."""

from __future__ import annotations

import pytest

from kpybroker.console.web.look import CHOICES, COOKIE, Look, changed, cookie_of, look_of
from tests.console.conftest import MakeClient, token_of


def test_the_defaults_are_the_first_values() -> None:
    assert Look() == Look(*(values[0][0] for _, _, values in CHOICES))
    assert Look._fields == tuple(name for name, _, _ in CHOICES)


@pytest.mark.parametrize("text", [None, "", "pink", "dark.huge", "....", "dark.roomy.narrow.more", "\u202e"])
def test_a_cookie_that_says_something_else_leaves_defaults(text: str | None) -> None:
    found = look_of(text)
    for name, _, values in CHOICES:
        assert getattr(found, name) in dict(values)


def test_a_cookie_is_read_back() -> None:
    look = Look("dark", "roomy", "narrow")
    assert look_of(cookie_of(look).split(";")[0].partition("=")[2]) == look
    assert changed(look, {"theme": "light", "density": "none", "other": "x"}) == Look("light", "roomy", "narrow")


def test_a_choice_is_kept_without_scripts(client: MakeClient) -> None:
    browser = client()
    page = browser.get("/logs").text
    assert '<html lang="en" data-theme="system" data-density="compact" data-bar="wide">' in page
    form = {"token": token_of(page), "theme": "dark", "next": "/logs?text=a"}
    response = browser.post("/look", data=form)
    assert (response.status_code, response.headers["location"]) == (303, "/logs?text=a")
    assert "SameSite=Lax" in response.headers["set-cookie"]
    assert browser.cookies[COOKIE] == "dark.compact.wide"
    assert 'data-theme="dark"' in browser.get("/logs").text
    assert browser.post("/look", data=form | {"next": "//elsewhere.example"}).headers["location"] == "/"


def test_another_site_changes_no_look(client: MakeClient) -> None:
    browser = client()
    assert browser.post("/look", data={"theme": "dark"}).status_code == 403
    assert COOKIE not in browser.cookies
