"""What holds of every change that the console can make: a walk over the whole catalogue.

What its own files test is how one change works. Whether rights are missing is in `tests/console/test_secured.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pytest
from starlette.testclient import TestClient

from kpybroker.client.schemas.http import BadStatus
from kpybroker.console.app import make_app
from kpybroker.console.changes import catalogue
from kpybroker.console.options import ConsoleOptions
from kpybroker.console.web.forms import status_of
from kpybroker.console.web.live import Live
from kpybroker.testing import Broker, SchemaRegistry
from tests.console.changes.conftest import assert_needs_permission, assert_refused_at, fields_of, previewed
from tests.console.conftest import HERE, START_S, MakeClient, settings_for

CHANGES: Final = {key: one for key, one in catalogue.CHANGES.items() if one.calls is None}
"""All but those of Kafka Connect, which are in `tests/console/connect`."""
GROUP: Final = "of-the-catalogue"
ORDERS: Final = {"topic": "orders"}
RECORD: Final = '{"type": "record", "name": "R", "fields": []}'
SUBJECT: Final = {"subject": "catalogue-value"}
ACL: Final = {"principal": "User:a", "name": "t", "operations": "read"}
HANGING: Final = {"topic": "orders", "partition": "0", "start_offset": "0"}
SETTING: Final = {"kind": "topic", "name": "orders", "key": "retention.ms", "value": "1"}

Bad = Mapping[str, Mapping[str, str]]
BAD: Final[Mapping[str, tuple[Mapping[str, str], Bad]]] = {
    "topic-create": (
        {"topic": "new"},
        {
            "topic": {"topic": "no/slash"},
            "partitions": {"partitions": "many"},
            "replicas": {"replicas": "9"},
            "configs": {"configs": "retention.ms"},
        },
    ),
    "topic-partitions": (
        {**ORDERS, "partitions": "9"},
        {"topic": {"topic": "nowhere"}, "partitions": {"partitions": "1"}},
    ),
    "topic-trim": (
        {**ORDERS, "to": "0"},
        {"topic": {"topic": "nowhere"}, "to": {"to": "noon"}, "partitions": {"partitions": "77"}},
    ),
    "topic-delete": ({}, {"topic": {"topic": "nowhere"}}),
    "config": (
        SETTING,
        {
            "kind": {"kind": "planet"},
            "name": {"kind": "broker", "name": "77", "key": "log.cleaner.threads"},
            "key": {"key": "no.such.key"},
            "do": {"do": "fly"},
            "value": {"value": "soon"},
        },
    ),
    "elect": ({}, {"places": {"places": "a/b"}}),
    "elect-unclean": ({}, {"places": {"places": "orders:x"}}),
    "move": (
        {"places": "orders"},
        {
            "places": {"places": "orders:9"},
            "to": {"to": "77"},
            "replicas": {"replicas": "9"},
            "throttle": {"throttle": "0"},
        },
    ),
    "move-cancel": ({}, {"places": {"places": "orders:x"}}),
    "throttle-end": ({}, {}),
    "transaction-abort": ({}, {"id": {"id": "no-such-id"}}),
    "transaction-abort-hanging": (
        HANGING,
        {
            "topic": {"topic": "nowhere"},
            "partition": {"partition": "first"},
            "start_offset": {"start_offset": "-1"},
        },
    ),
    "group-offsets": (
        {"group": GROUP, "offsets": "orders 0 1"},
        {"group": {"group": ""}, "offsets": {"offsets": "orders 0"}},
    ),
    "group-move": (
        {"group": GROUP, "to": "start"},
        {
            "group": {"group": "no-such-group"},
            "to": {"to": "the moon"},
            "at": {"to": "offset", "at": "five"},
            "topics": {"topics": "orders:x"},
        },
    ),
    "group-forget": (
        {"group": GROUP, "topics": "orders"},
        {"group": {"group": "", "topics": "orders"}, "topics": {"topics": "nowhere"}},
    ),
    "group-delete": ({}, {"group": {"group": "no-such-group"}}),
    "schema-register": (
        {**SUBJECT, "schema": RECORD},
        {
            "subject": {"subject": ""},
            "type": {"type": "XML"},
            "schema": {"schema": "{"},
            "references": {"references": "one two"},
        },
    ),
    "schema-level": ({}, {"subject": {"subject": "no-such-subject"}, "level": {**SUBJECT, "level": "UPWARD"}}),
    "schema-delete": (
        SUBJECT,
        {"subject": {"subject": "no-such-subject"}, "version": {"version": "last"}, "how": {"how": "gently"}},
    ),
    **dict.fromkeys(
        ("acl-create", "acl-delete"),
        (
            ACL,
            {
                "principal": {"principal": ""},
                "permission": {"permission": "MAYBE"},
                "resource": {"resource": "planet"},
                "name": {"name": ""},
                "pattern": {"pattern": "GLOB"},
                "operations": {"operations": "fly"},
            },
        ),
    ),
    "user-set": (
        {"user": "a"},
        {"user": {"user": ""}, "mechanism": {"mechanism": "PLAIN"}, "iterations": {"iterations": "17"}},
    ),
    "user-delete": ({"user": "a"}, {"user": {"user": "no-such-user"}, "mechanism": {"mechanism": "PLAIN"}}),
    "quota-set": (
        {"values": "producer_byte_rate=1"},
        {
            "user": {"user": ""},
            "ip": {"user": "a", "ip": "127.0.0.1"},
            "values": {"user": "a", "values": "producer_byte_rate"},
        },
    ),
    "quota-unset": (
        {"keys": "producer_byte_rate"},
        {"user": {"user": ""}, "ip": {"user": "a", "ip": "127.0.0.1"}, "keys": {"user": "no-such-user"}},
    ),
}
"""By change: what is good, and for each field input that cannot be used, over it."""
ANYTHING: Final = frozenset(
    (("acl-create", "host"), ("acl-delete", "host"), ("quota-set", "client_id"), ("quota-unset", "client_id"))
)
"""Fields that take any text."""
LATER: Final = frozenset((("user-set", "password"),))
"""Asked for at the end: `test_security` has it."""
DELETES: Final = frozenset(
    (
        *("topic-trim", "topic-delete", "group-forget", "group-delete", "schema-delete"),
        *("acl-delete", "user-delete", "quota-unset"),
        *("elect-unclean", "transaction-abort", "transaction-abort-hanging"),
    )
)
"""Changes that delete something, or lose records."""
KEYS: Final = [key for key, change in CHANGES.items() if change.calls is None]
"""All but those of Kafka Connect: `tests/console/connect/test_walk.py` walks over those."""
CASES: Final = [(key, field) for key, (_, bad) in BAD.items() for field in bad]


@pytest.fixture(scope="module")
def registry(broker: Broker) -> Iterator[str]:
    with SchemaRegistry(broker, start_timeout=START_S) as started:
        yield started.url


@pytest.fixture(scope="module", autouse=True)
def group(broker: Broker) -> None:
    consumer = broker.consumer(GROUP, "orders", auto_offset_reset="earliest", enable_auto_commit=False)
    while not consumer.consume(1, timeout=1):
        pass
    consumer.commit(asynchronous=False)
    consumer.close()


@pytest.fixture(scope="module")
def browser(broker: Broker, registry: str) -> Iterator[TestClient]:
    """One for the whole walk, of a console that may change the cluster."""
    settings = settings_for(broker.bootstrap_servers)
    options = ConsoleOptions(settings, allow_changes=True, registry=registry)
    with TestClient(make_app(options, Live(settings, START_S, START_S)), base_url=HERE) as made:
        yield made


@pytest.fixture(scope="module")
def reader(broker: Broker) -> Iterator[TestClient]:
    """Of one that may not."""
    with TestClient(make_app(ConsoleOptions(settings_for(broker.bootstrap_servers))), base_url=HERE) as made:
        yield made


def test_each_field_of_each_change_has_a_case() -> None:
    fields = {(key, one.name) for key in KEYS for one in CHANGES[key].fields}
    assert fields - ANYTHING - LATER == set(CASES)
    assert BAD.keys() == set(KEYS)


@pytest.mark.parametrize(("key", "field"), CASES)
def test_input_that_cannot_be_used_marks_its_field_and_everything_typed_stays(
    browser: TestClient, key: str, field: str
) -> None:
    good, bad = BAD[key]
    typed = {**good, **bad[field]}
    page = previewed(browser, key, **typed)
    assert_refused_at(page, CHANGES[key], field, typed)


def test_what_deletes_asks_for_the_name_again() -> None:
    assert {key for key in KEYS if CHANGES[key].typed_again} == DELETES
    for key in DELETES:
        change = CHANGES[key]
        names = {one.name for one in change.fields}
        assert set(change.typed_again) <= names
        assert change.name_again(dict.fromkeys(names, "x")) == "x"


@pytest.mark.parametrize("key", KEYS)
def test_nothing_is_done_without_permission_a_token_and_a_preview(
    browser: TestClient, reader: TestClient, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert_needs_permission(browser, reader, key, BAD[key][0], caplog)


@pytest.mark.parametrize("key", KEYS)
def test_a_change_names_its_rights_and_its_equivalent(key: str) -> None:
    change = CHANGES[key]
    values = {**change.read({}), **BAD[key][0]}
    assert change.needs
    text = change.command_text(values, "broker:9092", "http://registry:8081")
    assert text.startswith("curl ") if change.curl else "kpybroker " in text and "-b broker:9092" in text


def test_a_registry_that_refuses_is_a_missing_right() -> None:
    assert [status_of(BadStatus("http://registry/subjects", status)) for status in (401, 403, 500)] == [403, 403, 503]


def test_what_a_cluster_cannot_do_is_off_with_the_reason(client: MakeClient) -> None:
    browser = client(allow_changes=True)
    page = browser.get("/change/acl-create").text
    assert "This cannot be done here: its brokers have no authorizer" in page
    assert 'class="primary" disabled' in page
    access = browser.get("/access").text
    assert '<button type="button" disabled>Create an ACL</button>' in access
    assert "/change/acl-create" not in access
    assert "/change/user-set" in access
    assert "knows no schema registry" in browser.get("/change/schema-register").text
    assert "disabled" not in browser.get("/change/topic-create").text
    assert fields_of(previewed(browser, "topic-create", topic="possible").text)
