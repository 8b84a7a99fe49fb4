"""Login, tokens, host names and headers: what holds for every page."""

from __future__ import annotations

import pytest

from tests.console.conftest import HERE, MakeClient, token_of

LOGIN = {"password": "secret"}


def test_every_response_forbids_inline_scripts_and_other_hosts(client: MakeClient) -> None:
    browser = client()
    for path in ("/login", "/static/console.js", "/no-such-page"):
        policy = browser.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy


def test_pages_have_no_inline_script_and_no_style(client: MakeClient) -> None:
    page = client().get("/topics").text
    assert "<script>" not in page
    assert "style=" not in page
    assert " on" + "click" not in page
    assert "//" not in page.replace("<!doctype", "").replace("://127", "")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "", "[", "127.0.0.1.evil.example"])
def test_another_host_name_is_refused(client: MakeClient, host: str) -> None:
    assert client().get("/topics", headers={"host": host}).status_code == 421


def test_a_host_name_that_was_allowed_is_served(client: MakeClient) -> None:
    assert client(hosts=("console.example",)).get("/login", headers={"host": "Console.example"}).status_code == 200


def test_pages_need_the_login_and_come_back_to_where_one_was(client: MakeClient) -> None:
    browser = client(**LOGIN)
    away = browser.get("/topics?q=a")
    assert away.headers["location"] == "/login?next=/topics%3Fq%3Da"
    form = browser.get(away.headers["location"]).text
    wrong = browser.post("/login", data={"token": token_of(form), "password": "other"})
    assert wrong.status_code == 403
    assert browser.get("/topics").status_code == 303
    done = browser.post("/login", data={"token": token_of(form), "password": "secret", "next": "/topics?q=a"})
    assert done.headers["location"] == "/topics?q=a"
    assert {"HttpOnly", "SameSite=Strict"} <= set(done.headers["set-cookie"].split("; "))
    page = browser.get("/topics")
    assert page.status_code == 200
    browser.post("/logout", data={"token": token_of(page.text)})
    assert browser.get("/topics").status_code == 303


@pytest.mark.parametrize("target", ["//evil.example", "https://evil.example", "/\\evil.example", "/a\r\nb"])
def test_a_login_leads_to_no_other_host(client: MakeClient, target: str) -> None:
    browser = client(**LOGIN)
    token = token_of(browser.get("/login").text)
    done = browser.post("/login", data={"token": token, "password": "secret", "next": target})
    assert done.headers["location"] == "/"


def test_ten_wrong_passwords_close_the_login(client: MakeClient) -> None:
    browser = client(**LOGIN)
    token = token_of(browser.get("/login").text)
    codes = [browser.post("/login", data={"token": token, "password": "x"}).status_code for _ in range(11)]
    assert codes == [403] * 10 + [429]
    assert browser.post("/login", data={"token": token, "password": "secret"}).status_code == 429


def test_a_form_without_the_token_of_its_session_is_refused(client: MakeClient) -> None:
    browser = client(**LOGIN)
    token = token_of(client(**LOGIN).get("/login").text)
    browser.get("/login")
    for data in ({"password": "secret"}, {"password": "secret", "token": token}, {"password": "secret", "token": ""}):
        assert browser.post("/login", data=data).status_code == 403


def test_a_form_of_another_site_is_refused(client: MakeClient) -> None:
    browser = client(**LOGIN)
    data = {"token": token_of(browser.get("/login").text), "password": "secret"}
    assert browser.post("/login", data=data, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert browser.post("/login", data=data, headers={"origin": "http://evil.example"}).status_code == 403
    assert browser.post("/login", data=data, headers={"origin": HERE}).status_code == 303


def test_a_proxy_logs_in_by_its_header(client: MakeClient) -> None:
    browser = client(user_header="X-User")
    assert browser.get("/topics").status_code == 401
    assert browser.get("/topics", headers={"x-user": "alice"}).status_code == 200
