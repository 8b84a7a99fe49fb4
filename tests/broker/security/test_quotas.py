"""Quotas from the tree: at the start, after a change by another broker or tool, and when a value is no number."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.broker.requests.connection_limits import resolve
from kpybroker.wire import znodes
from tests.support.brokers.configured_broker import configured_broker


async def tell(broker: Broker, entity_type: str, entity: str, props: dict[str, str]) -> None:
    """What a change by another broker, or by a tool, leaves in the tree."""
    path = znodes.config_path(entity_type, entity)
    if await broker.tree.exists(path) is None:
        await broker.tree.create(path, znodes.encode_config(props))
    else:
        await broker.tree.set(path, znodes.encode_config(props))
    change = znodes.encode_config_change(f"{entity_type}/{entity}")
    await broker.tree.create(znodes.config_change_path(), change, sequential=True)
    await broker.configs.process_pending_changes()


def limit(broker: Broker, user: str, client_id: str) -> float | None:
    assert broker.quotas is not None
    found = broker.quotas.produced.limits.find(user, client_id)
    return None if found is None else found[1]


async def test_what_another_broker_sets_applies_at_once(tmp_path: Path) -> None:
    async with configured_broker(tmp_path) as broker:
        assert broker.quotas is None
        await tell(broker, "clients", "an%20app", {"producer_byte_rate": "1"})
        assert [limit(broker, "u", client) for client in ("an app", "an%20app")] == [1, None]
        await tell(broker, "clients", "<default>", {"producer_byte_rate": "2", "request_percentage": "1.5"})
        assert [limit(broker, "u", client) for client in ("an app", "other", "")] == [1, 2, None]
        await tell(broker, "users", "CN%3Dalice%2CO%3DX", {"producer_byte_rate": "3", "SCRAM-SHA-256": "salt=..."})
        assert limit(broker, "CN=alice,O=X", "other") == 3
        await tell(broker, "users", "<default>", {"producer_byte_rate": "4"})
        assert limit(broker, "bob", "other") == 4
        for entity in ("an%20app", "<default>"):
            await tell(broker, "clients", entity, {})
        for entity in ("CN%3Dalice%2CO%3DX", "<default>"):
            await tell(broker, "users", entity, {})
        assert broker.quotas is None


async def test_what_is_set_is_there_after_a_start(tmp_path: Path) -> None:
    async with configured_broker(tmp_path) as broker:
        await broker.configs.write("users", "alice/clients/app", {"producer_byte_rate": "1"})
        await broker.configs.write("users", "<default>/clients/<default>", {"producer_byte_rate": "2"})
        await broker.configs.write("ips", "10.0.0.9", {"connection_creation_rate": "7"})
        await broker.configs.write("ips", "<default>", {"connection_creation_rate": "8"})
        assert [limit(broker, "alice", "app"), limit(broker, "bob", "b")] == [1, 2]
    async with configured_broker(tmp_path) as broker:
        assert [limit(broker, "alice", "app"), limit(broker, "bob", "b")] == [1, 2]
        assert broker.server.limits._ip_rates == {"10.0.0.9": 7}
        assert broker.server.limits._default_ip_rate == 8
        await broker.configs.write("ips", "<default>", {})
        assert broker.server.limits._default_ip_rate is None


async def test_a_value_that_is_no_number_is_reported_and_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with configured_broker(tmp_path) as broker:
        await tell(broker, "clients", "c", {"producer_byte_rate": "1.5", "consumer_byte_rate": "9"})
        assert limit(broker, "u", "c") is None
        assert broker.quotas is not None
        assert len(broker.quotas) == 1
    assert "producer_byte_rate of clients/c is not a number: '1.5'" in caplog.text


async def test_an_address_is_its_own_and_a_host_has_one() -> None:
    assert await resolve("10.1.2.3") == "10.1.2.3"
    assert await resolve("localhost") in ("127.0.0.1", "::1")


async def test_the_latest_change_of_a_host_applies(tmp_path: Path) -> None:
    async with configured_broker(tmp_path) as broker:
        for rate in ("5", "6", "7"):
            await tell(broker, "ips", "localhost", {"connection_creation_rate": rate})
        with trio.fail_after(60):
            while list(broker.server.limits._ip_rates.values()) != [7]:
                await trio.testing.wait_all_tasks_blocked(0.001)
        await tell(broker, "ips", "localhost", {})
        with trio.fail_after(60):
            while broker.server.limits._ip_rates:
                await trio.testing.wait_all_tasks_blocked(0.001)


async def test_a_host_without_an_address_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with configured_broker(tmp_path) as broker:
        await tell(broker, "ips", "no such host", {"connection_creation_rate": "7"})
        with trio.fail_after(60):
            while "Cannot limit the connections of no such host" not in caplog.text:
                await trio.testing.wait_all_tasks_blocked(0.001)


async def test_a_node_without_quotas_is_removed_with_those_above_it(tmp_path: Path) -> None:
    async with configured_broker(tmp_path) as broker:
        write, tree = broker.configs.write, broker.tree
        props = {"producer_byte_rate": "1"}
        await write("users", "u/clients/a", props)
        await write("users", "u/clients/b", props)
        await write("users", "u", props)
        await write("users", "u", {})
        assert await tree.exists("/config/users/u") is not None, "it has children"
        await write("users", "u/clients/a", {})
        assert (await tree.children("/config/users/u/clients")).names == ("b",)
        await write("users", "u/clients/b", {})
        assert await tree.exists("/config/users/u") is None
        await write("users", "v", props)
        await write("users", "v/clients/a", props)
        await write("users", "v/clients/a", {})
        assert (await tree.children("/config/users/v")).names == ()
        await write("clients", "never there", {})
        assert (await tree.children("/config/clients")).names == ()
        assert await broker.configs.entities_and_pairs("users") == ["v"]
