"""Login, tokens, host names and headers: what holds for every page."""

from __future__ import annotations

import pytest

from kpybroker.client.connect.errors import CommandError
from kpybroker.console.options import parse_proxies
from kpybroker.console.pages.routes import ROUTES
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
    page = browser.get("/topics", headers={"x-user": "<alice>"})
    assert page.status_code == 200
    assert "as &lt;alice&gt;" in page.text


@pytest.mark.parametrize(
    ("peer", "trusted", "status"),
    [
        ("127.0.0.1", (), 200),
        ("::1", (), 200),
        ("10.1.2.3", (), 401),
        ("10.1.2.3", ("10.0.0.0/8",), 200),
        ("::ffff:10.1.2.3", ("10.0.0.0/8",), 200),
        ("127.0.0.1", ("10.0.0.0/8",), 401),
        ("a socket's path", ("10.0.0.0/8",), 401),
    ],
)
def test_the_header_counts_from_trusted_proxies_only(
    client: MakeClient, peer: str, trusted: tuple[str, ...], status: int
) -> None:
    browser = client(peer, user_header="X-User", proxies=parse_proxies(trusted))
    page = browser.get("/topics", headers={"x-user": "alice", "x-forwarded-for": "127.0.0.1"})
    assert page.status_code == status
    assert ("--trusted-proxy" in page.text) == (status == 401)


def test_a_trusted_proxy_with_tls_makes_cookies_secure(client: MakeClient) -> None:
    for peer, is_secure in (("127.0.0.1", True), ("10.1.2.3", False)):
        page = client(peer, **LOGIN).get("/login", headers={"x-forwarded-proto": "https"})
        assert page.headers["set-cookie"].endswith("; Secure") is is_secure


def test_a_trusted_proxy_is_an_address() -> None:
    with pytest.raises(CommandError, match="--trusted-proxy") as caught:
        parse_proxies(["10.0.0.1/8"])
    assert caught.value.exit_code == 2


OWN = ("/login", "/logout", "/look")
"""Of the browser's own session and colours: no change of the cluster."""
CHANGES = [route.path for route in ROUTES if "POST" in (route.methods or ()) and route.path not in OWN]


def filled(path: str) -> str:
    return path.replace("{name}", "orders") + ("?id=g" if path.startswith("/group") else "")


def test_every_route_that_changes_something_is_a_post() -> None:
    """What a browser fetches by itself, an image or a link, never changes anything."""
    assert len(CHANGES) >= 5
    assert all(route.methods in ({"GET", "HEAD"}, {"POST"}) for route in ROUTES)


@pytest.mark.parametrize("path", CHANGES)
def test_a_read_only_console_refuses_every_change_also_a_forged_one(client: MakeClient, path: str) -> None:
    browser = client(password="secret", control="http://127.0.0.1:1")
    login = browser.get("/login").text
    browser.post("/login", data={"token": token_of(login), "password": "secret"})
    token = token_of(browser.get("/logs").text)  # of the session, and so of every form
    refused = browser.post(filled(path), data={"token": token, "do": "reset", "value": "x", "plan": "[]"})
    assert refused.status_code == 403
    assert "this console is read-only" in refused.text


@pytest.mark.parametrize("path", CHANGES)
def test_a_change_needs_the_token_of_its_session_and_the_own_site(client: MakeClient, path: str) -> None:
    browser = client(allow_changes=True, control="http://127.0.0.1:1")
    other = token_of(client(allow_changes=True).get("/topics/orders/produce").text)
    token = token_of(browser.get("/topics/orders/produce").text)
    for data in ({}, {"token": ""}, {"token": other}):
        assert "another session" in browser.post(filled(path), data=data).text
    for headers in ({"sec-fetch-site": "same-site"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}):
        refused = browser.post(filled(path), data={"token": token}, headers=headers)
        assert refused.status_code == 403
        assert "another site" in refused.text


@pytest.mark.parametrize("path", CHANGES)
def test_a_change_needs_the_login(client: MakeClient, path: str) -> None:
    browser = client(password="secret", allow_changes=True)
    token = token_of(browser.get("/login").text)
    assert browser.post(filled(path), data={"token": token}).headers["location"].startswith("/login")


def test_no_secret_is_in_a_page(client: MakeClient) -> None:
    secrets = ("secret-of-registry", "secret-of-metrics", "secret-of-login")
    browser = client(
        bootstrap="127.0.0.1:1",
        registry=f"http://me:{secrets[0]}@127.0.0.1:1",
        metrics=[f"http://me:{secrets[1]}@127.0.0.1:1/metrics"],
        password=secrets[2],
    )
    login = browser.get("/login").text
    browser.post("/login", data={"token": token_of(login), "password": secrets[2]})
    for path in ("/", "/topics", "/metrics/cluster", "/access", "/logs", "/no-such-page"):
        page = browser.get(path)
        assert "kpybroker console" in page.text or "fix: " in page.text
        assert not any(secret in page.text for secret in secrets), path
