"""`kpybroker quota` against a broker."""

from __future__ import annotations

from typing import Any

import pytest

from kpybroker.client.actions.security.quotas import EntityOptions
from tests.client.conftest import Run


def quotas(run: Run, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run("quota", "list", *words, "--format", "json").json
    return found


def test_quotas_are_set_listed_and_removed(run: Run, name: str) -> None:
    assert run("quota", "set", "--user", name, "producer_byte_rate=1000", "request_percentage=12.5").code == 0
    assert run("quota", "set", "--user", name, "--client-id", "c", "consumer_byte_rate=7").code == 0
    assert run("quota", "set", "--client-id", f"{name}-c", "controller_mutation_rate=1").code == 0
    assert run("quota", "set", "--ip", "192.0.2.7", "connection_creation_rate=5").code == 0
    mine = {"user": name}
    both = {"client-id": "c", "user": name}
    assert quotas(run, "--user", name) == [
        {"entity": both, "key": "consumer_byte_rate", "value": 7.0},
        {"entity": mine, "key": "producer_byte_rate", "value": 1000.0},
        {"entity": mine, "key": "request_percentage", "value": 12.5},
    ]
    table = run("quota", "list", "--user", name, "--client-id", "c").lines
    assert [line.split() for line in table] == [
        ["USER", "CLIENT-ID", "IP", "KEY", "VALUE"],
        [name, "c", "-", "consumer_byte_rate", "7"],
    ]
    assert len(quotas(run)) >= 5
    assert run("quota", "unset", "--user", name, "producer_byte_rate", "request_percentage").code == 0
    assert quotas(run, "--user", name) == [{"entity": both, "key": "consumer_byte_rate", "value": 7.0}]
    gone = run("quota", "unset", "--user", name, "producer_byte_rate")
    assert gone.code == 1
    assert "there is no quota producer_byte_rate" in gone.err


def test_those_of_everyone_else(run: Run, name: str) -> None:
    assert run("quota", "set", "--default", "user", "--client-id", name, "producer_byte_rate=5").code == 0
    (row,) = quotas(run, "--default", "user", "--client-id", name)
    assert row == {"entity": {"client-id": name, "user": None}, "key": "producer_byte_rate", "value": 5.0}
    assert "(default)" in run("quota", "list", "--client-id", name).text
    assert run("quota", "unset", "--default", "user", "--client-id", name, "producer_byte_rate").code == 0
    assert quotas(run, "--client-id", name) == []


def test_a_dry_run_changes_nothing(run: Run, name: str) -> None:
    result = run("quota", "set", "--user", name, "producer_byte_rate=5", "--dry-run")
    assert result.code == 0
    assert "would be set" in result.text
    assert quotas(run, "--user", name) == []


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (("set", "producer_byte_rate=5"), 2, "no one is named"),
        (("set", "--user", "u", "producer_byte_rate"), 2, "is no quota"),
        (("set", "--user", "u", "producer_byte_rate=x"), 2, "is no quota"),
        (("set", "--user", "u", "producer_byte_rate=nan"), 2, "is no quota"),
        (("set", "--user", "u", "producer_byte_rate=1e400"), 2, "is no quota"),
        (("set", "--user", "u", "=5"), 2, "is no quota"),
        (("set", "--user", "u", "a=5", "a=6"), 2, "a is set twice"),
        (("set", "--user", "u", "no_such_key=5"), 1, "no_such_key"),
        (("set", "--user", "u", "producer_byte_rate=-5"), 1, ""),
        (("set", "--user", "u", "connection_creation_rate=5"), 1, ""),
        (("set", "--ip", "no address", "connection_creation_rate=5"), 1, ""),
        (("set", "--user", "u", "--default", "user", "a=5"), 2, "user is named twice"),
        (("set", "--user", "u", "--ip", "192.0.2.7", "a=5"), 2, "an address has quotas of its own"),
        (("list", "--ip", "192.0.2.7", "--default", "user"), 2, "an address has quotas of its own"),
        (("unset", "--user", "u", "producer_byte_rate"), 1, "there is no quota"),
    ],
)
def test_what_cannot_be_done_is_refused(run: Run, words: tuple[str, ...], code: int, named: str) -> None:
    result = run("quota", *words)
    assert (result.code, result.out) == (code, b"")
    assert named in result.err
    assert len(result.err.splitlines()) == 2
    assert quotas(run, "--user", "u") == []


def test_an_entity_has_a_name_for_each_kind() -> None:
    options = EntityOptions("u", "c", None, ())
    assert options.entity() == {"user": "u", "client-id": "c"}
    assert EntityOptions(defaults=("ip",)).entity() == {"ip": None}
