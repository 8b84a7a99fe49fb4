"""A cluster with TLS, logins and ACLs: what a user may not do is a page that says which permission is missing."""

from __future__ import annotations

import html
import logging
import re
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from starlette.testclient import TestClient

from kpybroker.client.connect.settings import Connection, load
from kpybroker.console.app import make_app
from kpybroker.console.changes.catalogue import CHANGES
from kpybroker.console.options import ConsoleOptions
from kpybroker.console.web.live import Live
from kpybroker.testing import Cluster
from tests.console.changes.conftest import done, fields_of, previewed
from tests.console.changes.rights import SCENES, Scene, grant
from tests.console.conftest import HERE, START_S, rows_of, text_of, token_of

Browse = Callable[[str], TestClient]


@pytest.fixture(scope="module")
def secured() -> Iterator[Cluster]:
    """Two brokers. alice may read and may see the cluster; bob may do nothing."""
    with Cluster(2, topics={"orders": 2}, tls=True, sasl="scram", acl=True, start_timeout=START_S) as broker:
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
def browse(secured: Cluster, tmp_path: Path) -> Iterator[Browse]:
    """Makes a console that logs in as a user, as its properties file says, and a browser for it."""
    made: list[TestClient] = []

    def make(user: str) -> TestClient:
        file = tmp_path / f"{user}.properties"
        keys = secured.config("java", user=user if user in secured.users else "bob")
        keys["sasl.jaas.config"] = keys["sasl.jaas.config"].replace('username="bob"', f'username="{user}"')
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


def test_a_wrong_password_is_said(secured: Cluster, browse: Browse, tmp_path: Path) -> None:
    keys = secured.config("java", user="alice")
    keys["sasl.jaas.config"] = keys["sasl.jaas.config"].replace('password="', 'password="no')
    file = tmp_path / "wrong.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    settings = load(Connection(command_config=str(file)))
    with TestClient(make_app(ConsoleOptions(settings)), base_url=HERE) as browser:
        page = browser.get("/topics")
    assert page.status_code == 503
    assert "fix: check sasl.mechanism, the user name and the password" in page.text


# --- the rights of each change


@pytest.fixture
def newcomer(secured: Cluster) -> str:
    """A user who may do nothing, with the password of bob."""
    name = f"new-{uuid.uuid4().hex[:8]}"
    wanted = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    upsertion = UserScramCredentialUpsertion(name, wanted, secured.users["bob"].encode())
    admin = secured.admin()  # kept: its futures end with it
    admin.alter_user_scram_credentials([upsertion])[name].result()
    return name


def attempted(browser: TestClient, key: str, scene: Scene) -> str:
    """The page after the preview was done, or the preview where that cannot be."""
    page = previewed(browser, key, **{name: value for name, value in scene.values.items() if name != "password"}).text
    if "Do it" not in page:
        return html.unescape(page)
    fields = {**scene.values, **fields_of(page), "typed_again": scene.again}
    return html.unescape(browser.post(f"/change/{key}", data=fields).text)


def until(browser: TestClient, key: str, scene: Scene, words: Sequence[str]) -> str:
    """The first page with one of these: a new right is known to all brokers a moment later."""
    end = time.monotonic() + SETTLE_S
    while not any(one in (text := attempted(browser, key, scene)) for one in words):
        assert time.monotonic() < end, f"none of {words}: {text_of(text.partition('<main')[2])}"
        time.sleep(0.05)
    return text


SETTLE_S: Final = 20.0
DONE: Final = "Done."
UNSEEN: Final = ("may not describe is hidden", "There is nothing to change", "has no such")
"""What a user sees who may not even describe a thing: to Kafka's clients it is not there."""


IN_EACH_RUN: Final = frozenset(("topic-partitions", "group-offsets", "quota-set"))
"""The others are wide tests: each has logins and rights of its own."""
KEYS: Final = [
    key if key in IN_EACH_RUN else pytest.param(key, marks=pytest.mark.wide)
    for key in CHANGES
    if not key.startswith("schema-") and CHANGES[key].calls is None
]


@pytest.mark.parametrize("key", KEYS)
def test_a_change_needs_the_rights_that_it_names_and_no_more(
    secured: Cluster, browse: Browse, newcomer: str, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    change = CHANGES[key]
    scene = SCENES[key](secured, partial(done, browse("admin")))
    browser, named = browse(newcomer), f"needs of the console's user: {change.needs}"
    for number, right in enumerate(scene.rights):
        is_last = number == len(scene.rights) - 1
        text = until(browser, key, scene, (named, DONE) if is_last else (named, DONE, *UNSEEN))
        assert DONE not in text, f"done without {right}"
        grant(secured, newcomer, right)
    with caplog.at_level(logging.INFO, "kpybroker.console.changes"):
        until(browser, key, scene, (scene.end,))
    assert re.search(
        rf"Change key={key} user=- from=\S+ command=['\"].*['\"] outcome=(done|failed items=1)", caplog.messages[-1]
    )
    assert "secret-of-a-right" not in caplog.text
    operations = {"".join(part.title() for part in operation.name.split("_")) for _, operation in scene.rights}
    assert operations - {"Describe"} <= set(re.findall(r"[A-Z]\w+", change.needs))
