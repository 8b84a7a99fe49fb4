"""The authorizer of a start: what the configuration says about it, and how a mistake in it ends the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.broker.lifecycle.authorizer import rules_of
from kpybroker.broker.lifecycle.errors import EXIT_CONFIG, StartupError
from kpybroker.broker.security.audit import AclAuthorizer
from kpybroker.config.broker import BrokerConfig
from kpybroker.core.authorizer import AllowAll, Principal
from tests.support.brokers.running_broker import running_broker

CLASS = "kafka.security.authorizer.AclAuthorizer"


def rules(**keys: str) -> object:
    return rules_of(BrokerConfig({"authorizer.class.name": CLASS, **{k.replace("_", "."): v for k, v in keys.items()}}))


def test_what_is_configured() -> None:
    found = rules_of(
        BrokerConfig(
            {
                "authorizer.class.name": CLASS,
                "super.users": "User:a; User:CN=b,O=c",
                "allow.everyone.if.no.acl.found": " TRUE ",
            }
        )
    )
    assert found.super_users == {Principal("User", "a"), Principal("User", "CN=b,O=c")}
    assert found.allow_without_acl


@pytest.mark.parametrize(
    ("key", "value", "cause"),
    [
        ("super_users", "alice", "super.users cannot be read: expected .* but got alice"),
        ("allow_everyone_if_no_acl_found", "yes", "allow.everyone.if.no.acl.found=yes is not a boolean"),
    ],
)
def test_a_mistake_ends_the_start_with_cause_and_fix(key: str, value: str, cause: str) -> None:
    with pytest.raises(StartupError, match=cause) as caught:
        rules(**{key: value})
    assert caught.value.exit_code == EXIT_CONFIG
    assert key.replace("_", ".") in caught.value.fix


async def test_only_a_broker_that_is_configured_so_has_acls(tmp_path: Path) -> None:
    async with running_broker(tmp_path / "open") as broker:
        assert isinstance(broker.authorizer, AllowAll)
        assert broker.acls is None
    async with running_broker(tmp_path / "closed", authorizer_class_name=CLASS) as broker:
        assert isinstance(broker.authorizer, AclAuthorizer)
        assert broker.acls is not None
