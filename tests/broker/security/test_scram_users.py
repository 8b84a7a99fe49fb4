"""The users of `/config/users`: initial ones, and changes that are seen at the next login."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from kpybroker.broker.security.scram_users import ScramUsers, parse_initial_users
from kpybroker.core.security.scram import (
    SaltForm,
    ScramMechanism,
    form_of,
    format_credential,
    make_credential,
    parse_credential,
    salt_of,
)
from kpybroker.wire import znodes
from tests.support.brokers.sasl_broker import sasl_broker, scram_log_in
from tests.support.network.memory_transport import MemoryTransport
from tests.support.network.raw_client import RawClient

CREDENTIAL = make_credential(ScramMechanism.SHA_256, "secret", b"salt", 4096)
TEXT = format_credential(CREDENTIAL)


def test_users_by_mechanism() -> None:
    users = ScramUsers()
    users.update("a%2Cb", {"SCRAM-SHA-256": TEXT, "producer_byte_rate": "1"})
    assert users.credential(ScramMechanism.SHA_256, "a,b") == CREDENTIAL
    assert users.credential(ScramMechanism.SHA_512, "a,b") is None
    assert users.credential(ScramMechanism.SHA_256, "a%2Cb") is None
    users.update("a%2Cb", {})
    assert users.credential(ScramMechanism.SHA_256, "a,b") is None


def test_quotas_of_a_user_and_client_id_are_no_users() -> None:
    users = ScramUsers()
    users.update("alice/clients/x", {"SCRAM-SHA-256": TEXT})
    assert users.credential(ScramMechanism.SHA_256, "alice/clients/x") is None


def test_a_credential_that_cannot_be_read_lets_no_one_in_and_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    users = ScramUsers()
    users.update("alice", {"SCRAM-SHA-256": TEXT})
    users.update("alice", {"SCRAM-SHA-256": "geheim"})
    assert users.credential(ScramMechanism.SHA_256, "alice") is None
    assert "SCRAM-SHA-256 of user 'alice' in /config/users" in caplog.text
    assert "geheim" not in caplog.text


def test_initial_users_are_written_as_for_kafka_storage() -> None:
    text = "SCRAM-SHA-256=[name=alice,password=s=1], SCRAM-SHA-512=[password=p,name=bob,iterations=8192]"
    alice, bob = parse_initial_users(text)
    assert (alice.name, alice.mechanism, alice.password, alice.iterations) == (
        "alice",
        ScramMechanism.SHA_256,
        "s=1",
        4096,
    )
    assert (bob.name, bob.mechanism, bob.iterations) == ("bob", ScramMechanism.SHA_512, 8192)
    assert "s=1" not in repr(alice)
    assert parse_initial_users("") == []


@pytest.mark.parametrize(
    "text",
    [
        "geheim",
        "SCRAM-SHA-1=[name=a,password=geheim]",
        "SCRAM-SHA-256=[name=a]",
        "SCRAM-SHA-256=[password=geheim]",
        "SCRAM-SHA-256=[name=a,password=geheim,iterations=1]",
        "SCRAM-SHA-256=[name=a,password=geheim,iterations=x]",
        "SCRAM-SHA-256=[name=a,password=geheim,salt=x]",
    ],
)
def test_initial_users_that_cannot_be_read_are_not_shown(text: str) -> None:
    with pytest.raises(ValueError, match=r"^user 1 cannot be read$"):
        parse_initial_users(text)


async def test_a_change_of_the_tree_is_seen_at_the_next_login(tmp_path: Path) -> None:
    transport = MemoryTransport()

    async def may_log_in(password: str) -> bool:
        client = await RawClient.to(broker, transport)
        response = await scram_log_in(client, "SCRAM-SHA-256", "alice", password)
        return bool(response.error_code == 0)

    async with sasl_broker(tmp_path, transport) as broker:
        assert await may_log_in("alice-secret")
        changed = make_credential(ScramMechanism.SHA_256, "changed", b"salt", 4096)
        await broker.configs.write(znodes.CONFIG_USERS, "alice", {"SCRAM-SHA-256": format_credential(changed)})
        assert not await may_log_in("alice-secret")
        assert await may_log_in("changed")
        await broker.configs.write(znodes.CONFIG_USERS, "alice", {})
        assert not await may_log_in("changed")


async def test_a_change_by_another_broker_or_a_tool_is_seen(tmp_path: Path) -> None:
    """Which leaves the configuration and a notification of it in the tree."""
    transport = MemoryTransport()
    changed = make_credential(ScramMechanism.SHA_256, "changed", b"salt", 4096)
    async with sasl_broker(tmp_path, transport) as broker:
        path = znodes.config_path(znodes.CONFIG_USERS, "alice")
        await broker.tree.set(path, znodes.encode_config({"SCRAM-SHA-256": format_credential(changed)}))
        data = znodes.encode_config_change("users/alice")
        await broker.tree.create(znodes.config_change_path(), data, sequential=True)
        with trio.fail_after(60):
            while True:
                client = await RawClient.to(broker, transport)
                if (await scram_log_in(client, "SCRAM-SHA-256", "alice", "changed")).error_code == 0:
                    break


async def test_initial_users_are_created_once(tmp_path: Path) -> None:
    async with sasl_broker(tmp_path, MemoryTransport()) as broker:
        first = await broker.configs.read(znodes.CONFIG_USERS, "alice")
        assert first.keys() == {"SCRAM-SHA-256", "SCRAM-SHA-512"}
        from kpybroker.broker.lifecycle.logins import create_users

        await create_users(broker, broker.configs)
        assert await broker.configs.read(znodes.CONFIG_USERS, "alice") == first


def test_the_form_of_most_credentials_is_known_and_follows_changes() -> None:
    users, mechanism = ScramUsers(), ScramMechanism.SHA_256
    assert users.usual_form(mechanism) == SaltForm()

    def put(name: str, salt: bytes, iterations: int) -> None:
        credential = make_credential(mechanism, "x", salt, iterations)
        users.update(name, {mechanism.mechanism_name: format_credential(credential)})

    put("alice", bytes(range(64)), 8192)
    assert users.usual_form(mechanism) == SaltForm(64, True, 8192)
    for name in ("bob", "carol"):
        put(name, salt_of(1 << 129), 4096)
    assert users.usual_form(mechanism) == SaltForm()
    assert users.usual_form(ScramMechanism.SHA_512) == SaltForm()


async def test_a_stranger_cannot_tell_initial_users_from_others(tmp_path: Path) -> None:
    """Those of a development broker are such."""
    async with sasl_broker(tmp_path, MemoryTransport()) as broker:
        stored = await broker.configs.read(znodes.CONFIG_USERS, "alice")
        for mechanism in ScramMechanism:
            assert form_of(parse_credential(stored[mechanism.mechanism_name])) == SaltForm()
