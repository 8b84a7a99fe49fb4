"""Counts of clients that push their own metrics."""

from __future__ import annotations

from pathlib import Path

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.metrics.readers.client_metrics import ClientMetricsReader
from kpybroker.metrics.rates import TICK_S
from kpybroker.metrics.reading import Value
from kpybroker.metrics.tables import client_metrics as m
from kpybroker.wire.errors import ErrorCode
from tests.support.brokers.running_broker import running_broker
from tests.support.requests.client_metrics_requests import NOT_OTLP, PushingClient, Recorder


async def values(reader: ClientMetricsReader) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for reading in await reader.read(YieldBudget()):
        for family, column in reading.columns:
            (found[family.attribute],) = column
    return found


async def test_requests_are_counted_by_what_became_of_them(tmp_path: Path) -> None:
    async with running_broker(tmp_path, kpybroker_metrics_port="0") as broker:
        reader = ClientMetricsReader(broker)
        assert await values(reader) == {}
        reader.tick()
        broker.client_metrics.receiver = Recorder()
        clients = [PushingClient(broker, connection_id=f"c-{number}") for number in range(3)]
        for client in clients:
            await client.get()
        assert await clients[0].push() == ErrorCode.NONE
        assert await clients[0].push() == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert await clients[1].push(NOT_OTLP) == ErrorCode.INVALID_RECORD
        assert await clients[2].push(subscription_id=1) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        found = await values(reader)
        assert found.keys() == {family.attribute for family in m.FAMILIES}
        assert found["instance-count"] == 3
        for name in ("unknown-subscription-request", "throttle", "plugin-export", "plugin-error"):
            assert found[f"{name}-count"] == 1
            rate = found[f"{name}-rate"]
            assert isinstance(rate, float)
            assert 0 < rate <= 1 / TICK_S
