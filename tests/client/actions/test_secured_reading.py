"""`topic consume` for a user who may read a topic, and may use no group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from kpybroker.testing import Broker
from tests.support.programs.command_line import Result, invoke


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    """alice may read the topic, and nothing else."""
    with Broker(topics={"orders": 2}, sasl="plain", acl=True, start_timeout=180.0) as broker:
        broker.produce("orders", [("a", "one"), ("b", "two")])
        allow, literal = AclPermissionType.ALLOW, ResourcePatternType.LITERAL
        rule = AclBinding(ResourceType.TOPIC, "orders", literal, "User:alice", "*", AclOperation.READ, allow)
        admin = broker.admin()
        admin.create_acls([rule])[rule].result()
        yield broker


@pytest.fixture
def as_alice(secured: Broker, tmp_path: Path) -> list[str]:
    file = tmp_path / "alice.properties"
    keys = secured.config("java", user="alice")
    file.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    return ["--command-config", str(file)]


def consume(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Result:
    return invoke(monkeypatch, "topic", "consume", "orders", "-e", *arguments)


def test_reading_without_a_group_needs_no_permission_on_one(
    as_alice: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = consume(monkeypatch, *as_alice)
    assert (result.code, sorted(result.lines), result.err) == (0, ["one", "two"], "")


def test_reading_as_a_member_of_a_group_does(as_alice: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    result = consume(monkeypatch, *as_alice, "-g", "readers")
    assert result.code == 1
    cause, fix = result.err.splitlines()
    assert "GROUP_AUTHORIZATION_FAILED" in cause
    assert fix.startswith("fix: ")
