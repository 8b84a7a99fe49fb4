"""What holds of every change of Kafka Connect, as `tests/console/changes/test_catalogue.py` has it of the others."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Final

import pytest
from starlette.testclient import TestClient

from kpybroker.console.changes import catalogue
from kpybroker.console.options import parse_connect
from tests.console.changes.conftest import assert_needs_permission, assert_refused_at, previewed
from tests.console.conftest import MakeClient
from tests.console.connect.fake import BARE, SINK, FakeConnect

CHANGES: Final = {key: one for key, one in catalogue.CHANGES.items() if one.calls is not None}
BILLING: Final = {"connect": "etl", "name": "billing"}
KEYS_TYPED: Final = {"config.table.url": "http://t", "config.topics": "orders", "config.batch.size": "7"}
PLACE: Final[Mapping[str, Mapping[str, str]]] = {
    "connect": {"connect": "other"},
    "name": {"name": "no-such-connector"},
}
OF_KEYS: Final[Mapping[str, Mapping[str, str]]] = {
    "more": {"more": "no equals"},
    "check": {"check": "never"},
    "config.tasks.max": {"config.tasks.max": "many"},
    "config.table.url": {"config.table.url": ""},
}
BAD: Final[Mapping[str, tuple[Mapping[str, str], Mapping[str, Mapping[str, str]]]]] = {
    "connector-create": (
        {**BILLING, "name": "new", "plugin": SINK, **KEYS_TYPED},
        {
            **OF_KEYS,
            "connect": {"connect": "other"},
            "name": {"name": "billing"},
            "plugin": {"plugin": "org.example.None"},
        },
    ),
    "connector-config": ({**BILLING, **KEYS_TYPED}, {**OF_KEYS, **PLACE}),
    "connector-restart": (BILLING, {**PLACE, "what": {"what": "the moon"}}),
    "connector-task-restart": ({**BILLING, "task": "0"}, {**PLACE, "task": {"task": "two"}}),
    **dict.fromkeys(
        ("connector-pause", "connector-resume", "connector-stop", "connector-delete", "connector-offsets-reset"),
        (BILLING, PLACE),
    ),
}
"""By change: what is good, and for each field input that cannot be used, over it."""
LATER: Final = frozenset((("connector-create", "secrets"), ("connector-config", "secrets")))
"""Asked for at the end: `test_configs` has it."""
CASES: Final = [(key, field) for key, (_, bad) in BAD.items() for field in bad]


def test_each_field_of_each_change_has_a_case() -> None:
    fields = {(key, one.name) for key, change in CHANGES.items() for one in change.fields}
    assert fields - LATER == {(key, field) for key, field in CASES if not field.startswith("config.")}
    assert BAD.keys() == CHANGES.keys()


@pytest.mark.parametrize(("key", "field"), CASES)
def test_input_that_cannot_be_used_marks_its_field_and_everything_typed_stays(
    browser: TestClient, fake: FakeConnect, key: str, field: str
) -> None:
    good, bad = BAD[key]
    typed = {**good, **bad[field]}
    before = copy.deepcopy((fake.configs, fake.states))
    assert_refused_at(previewed(browser, key, **typed), CHANGES[key], field, typed)
    assert (fake.configs, fake.states) == before


@pytest.mark.parametrize("key", CHANGES)
def test_nothing_is_done_without_permission_a_token_and_a_preview(
    browser: TestClient, client: MakeClient, fake: FakeConnect, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    reader = client(connects=(parse_connect(f"etl={fake.url}"),))
    before = copy.deepcopy((fake.configs, fake.states))
    assert_needs_permission(browser, reader, key, BAD[key][0], caplog)
    assert (fake.configs, fake.states) == before


@pytest.mark.parametrize("key", ["connector-create", "connector-config"])
def test_what_was_typed_stays_while_kafka_connect_is_away(client: MakeClient, key: str) -> None:
    browser = client(allow_changes=True, connects=(parse_connect("etl=http://127.0.0.1:1"),))
    page = previewed(browser, key, **BAD[key][0])
    assert page.status_code == 503
    for name, text in BAD[key][0].items():
        assert f'name="{name}" value="{text}"' in page.text


@pytest.mark.parametrize(
    ("plugin", "field"),
    [(BARE, "more"), ("BareSourceConnector", "more"), ("BareSource", "more"), ("org.example.Bare", "plugin")],
)
def test_a_plugin_that_says_nothing_of_its_keys_is_no_plugin_that_is_not_there(
    browser: TestClient, plugin: str, field: str
) -> None:
    """The first takes its values as secrets only; Connect knows it by shorter names too."""
    typed = {"connect": "etl", "name": "new", "plugin": plugin, "more": "path=/x"}
    page = previewed(browser, "connector-create", **typed)
    assert_refused_at(page, CHANGES["connector-create"], field, typed)
    assert ("is a secret" in page.text, "there is no plugin" in page.text) == (field == "more", field == "plugin")
