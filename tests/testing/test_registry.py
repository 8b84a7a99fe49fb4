"""A registry next to a test's broker: started, stopped, and its errors."""

from __future__ import annotations

import httpx
import pytest

from kpybroker.testing import Broker, BrokerGone, SchemaRegistry, StartError, UsageError

START_S = 180.0


def register(registry: SchemaRegistry, subject: str) -> int:
    body = {"schema": '"int"'}
    return int(httpx.post(f"{registry.url}/subjects/{subject}/versions", json=body, timeout=START_S).json()["id"])


def test_another_one_on_the_same_broker_has_the_schemas() -> None:
    with Broker(start_timeout=START_S) as broker:
        registry = SchemaRegistry(broker, start_timeout=START_S)
        with pytest.raises(BrokerGone, match="is not running"):
            registry.url  # noqa: B018
        with registry:
            assert register(registry, "a") == 1
            with pytest.raises(UsageError, match="started already"):
                registry.start()
        registry.stop()
        with SchemaRegistry(broker, start_timeout=START_S) as again:
            assert httpx.get(f"{again.url}/subjects", timeout=START_S).json() == ["a"]
            port = int(again.url.rpartition(":")[2])
            with pytest.raises(StartError, match="cannot listen"):
                SchemaRegistry(broker, port=port, start_timeout=START_S).start()


async def test_it_logs_in_and_may_be_awaited() -> None:
    async with (
        Broker(tls=True, sasl="scram", acl=True, start_timeout=START_S) as broker,
        SchemaRegistry(broker, start_timeout=START_S) as registry,
    ):
        assert register(registry, "a") == 1
