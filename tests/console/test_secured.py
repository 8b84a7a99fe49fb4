"""A cluster with TLS, logins and ACLs: what a user may not do is a page that says which permission is missing."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from starlette.testclient import TestClient

from kpybroker.client.connect.settings import Connection, load
from kpybroker.console.app import make_app
from kpybroker.console.options import ConsoleOptions
from kpybroker.console.web.live import Live
from kpybroker.testing import Broker
from tests.console.changes.conftest import done, fields_of, previewed
from tests.console.conftest import HERE, START_S, rows_of, token_of

Browse = Callable[[str], TestClient]


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    """alice may read and may see the cluster; bob may do nothing."""
    with Broker(topics={"orders": 2}, tls=True, sasl="scram", acl=True, start_timeout=START_S) as broker:
        broker.produce("orders", ["<paid>"])
        allow, literal = AclPermissionType.ALLOW, ResourcePatternType.LITERAL
        rows = [
            (ResourceType.TOPIC, "orders", AclOperation.READ),
            (ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE),
        ]
        bindings = [AclBinding(kind, name, literal, "User:alice", "*", may, allow) for kind, name, may in rows]
        admin = broker.admin()
        for future in admin.create_acls(bindings).values():
            future.result()
        yield broker


@pytest.fixture
def browse(secured: Broker, tmp_path: Path) -> Iterator[Browse]:
    """Makes a console that logs in as a user, as its properties file says, and a browser for it."""
    made: list[TestClient] = []

    def make(user: str) -> TestClient:
        file = tmp_path / f"{user}.properties"
        keys = secured.config("java", user=user)
        file.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
        settings = load(Connection(command_config=str(file), timeout_s=START_S))
        live = Live(settings, page_s_max=START_S, request_s_max=START_S)
        options = ConsoleOptions(settings, allow_changes=True)
        made.append(TestClient(make_app(options, live), base_url=HERE, follow_redirects=False))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_an_administrator_sees_everything(browse: Browse) -> None:
    browser = browse("admin")
    for path in ("/", "/topics", "/topics/orders", "/replication", "/log-dirs", "/groups", "/transactions"):
        page = browser.get(path)
        assert (page.status_code, "What failed" in page.text) == (200, False), path
    access = browser.get("/access").text
    assert "User:alice" in access
    assert "SCRAM" in access


def test_a_reader_reads_and_learns_which_permission_is_missing(browse: Browse) -> None:
    browser = browse("alice")
    assert "/topics/orders" in browser.get("/topics").text
    assert "&lt;paid&gt;" in browser.get("/topics/orders/messages").text
    settings = browser.get("/topics/orders/configuration")
    assert settings.status_code == 200
    assert "TOPIC_AUTHORIZATION_FAILED" in settings.text
    assert "needs of the console&#39;s user: DescribeConfigs on the topic" in settings.text.replace("'", "&#39;")
    token = token_of(browser.get("/topics/orders/produce").text)
    refused = browser.post("/topics/orders/produce", data={"token": token, "value": "x"})
    assert refused.status_code == 403
    assert "TOPIC_AUTHORIZATION_FAILED" in refused.text
    assert "Describe and Write on the topic" in refused.text
    assert "kpybroker acl create" in refused.text


def test_a_change_that_is_refused_names_the_right_and_keeps_the_form(browse: Browse) -> None:
    wanted = {"topic": "not-mine", "partitions": "2", "preview": "1"}
    refused = browse("alice").get("/change/topic-create", params=wanted)
    assert refused.status_code == 403
    assert "TOPIC_AUTHORIZATION_FAILED" in refused.text
    assert "needs of the console's user: Create on the topic or on the cluster" in html.unescape(refused.text)
    assert 'name="topic" value="not-mine"' in refused.text
    allowed = browse("admin").get("/change/topic-create", params=wanted)
    assert allowed.status_code == 200
    assert "would be created" in allowed.text


def test_an_acl_is_created_and_deleted_with_its_principal_typed_again(browse: Browse) -> None:
    browser = browse("admin")
    values = {"principal": "carol", "resource": "topic", "name": "app-", "pattern": "PREFIXED", "operations": "read"}
    assert (
        "--allow-principal carol --operation read --topic app- --prefixed"
        in previewed(browser, "acl-create", **values).text
    )
    assert rows_of(done(browser, "acl-create", **values).text, "Result")[0] == [
        *("User:carol", "*", "topic", "app-", "PREFIXED", "READ", "ALLOW"),
        "created",
    ]
    assert "is there already" in previewed(browser, "acl-create", **values).text
    access = html.unescape(browser.get("/access").text)
    (link,) = [one for one in re.findall(r'href="(/change/acl-delete[^"]*)"', access) if "carol" in one]
    gone = browser.get(link)
    assert "would be deleted" in gone.text
    assert browser.post("/change/acl-delete", data=fields_of(gone.text)).status_code == 400
    deleted = browser.post("/change/acl-delete", data={**fields_of(gone.text), "typed_again": "User:carol"})
    assert rows_of(deleted.text, "Result")[0][-1] == "deleted"
    assert "carol" not in browser.get("/access").text
    refused = done(browse("alice"), "acl-create", **values)
    assert refused.status_code == 403
    assert "needs of the console's user: Alter and Describe on the cluster" in html.unescape(refused.text)
    assert 'name="principal" value="carol"' in refused.text


def test_a_stranger_gets_pages_and_no_traceback(browse: Browse) -> None:
    browser = browse("bob")
    for path in (
        "/",
        "/topics",
        "/topics/orders",
        "/topics/orders/messages",
        "/replication",
        "/log-dirs",
        "/transactions",
        "/access",
        "/groups",
        "/group?id=readers",
    ):
        page = browser.get(path)
        assert page.status_code in (200, 403, 404, 503), path
        assert "Traceback" not in page.text
        assert 'href="/topics/orders"' not in page.text or path.startswith("/topics/orders"), path
        assert "paid" not in page.text
    assert "CLUSTER_AUTHORIZATION_FAILED" in browser.get("/access").text


def test_a_wrong_password_is_said(secured: Broker, browse: Browse, tmp_path: Path) -> None:
    keys = secured.config("java", user="alice")
    keys["sasl.jaas.config"] = keys["sasl.jaas.config"].replace('password="', 'password="no')
    file = tmp_path / "wrong.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    settings = load(Connection(command_config=str(file)))
    with TestClient(make_app(ConsoleOptions(settings)), base_url=HERE) as browser:
        page = browser.get("/topics")
    assert page.status_code == 503
    assert "fix: check sasl.mechanism, the user name and the password" in page.text
