"""PushTelemetry: what a client may push, and what the receiver gets of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kpybroker.broker.app import Broker
from kpybroker.broker.client_metrics.receiver import Pushed
from kpybroker.broker.handlers.client_metrics import push_telemetry
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.compression import Codec, compress
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.push_telemetry import PushTelemetryRequest
from tests.support.brokers.configured_broker import call
from tests.support.brokers.control_broker import Denying
from tests.support.brokers.running_broker import running_broker
from tests.support.requests.client_metrics_requests import NOT_OTLP, PushingClient, Recorder, subscribe

MAX_BYTES = 2000


@asynccontextmanager
async def receiving_broker(directory: Path, **keys: Any) -> AsyncIterator[tuple[Broker, Recorder]]:
    recorder = Recorder()
    async with running_broker(directory, telemetry_max_bytes=str(MAX_BYTES), **keys) as broker:
        broker.client_metrics.receiver = recorder
        await subscribe(broker, "all", metrics="*")
        yield broker, recorder


@pytest.mark.parametrize("codec", list(Codec))
async def test_a_push_reaches_the_receiver_decompressed(tmp_path: Path, codec: Codec) -> None:
    metrics = b"abc" * (MAX_BYTES // 3)
    async with receiving_broker(tmp_path) as (broker, recorder):
        client = PushingClient(broker)
        await client.get()
        assert await client.push(compress(codec, metrics), compression_type=codec) == ErrorCode.NONE
        assert recorder.pushed == [
            Pushed(client.instance_id, "app", "librdkafka", "2.16.0", "10.0.0.7", False, metrics)
        ]


async def test_the_last_push_says_so(tmp_path: Path) -> None:
    async with receiving_broker(tmp_path) as (broker, recorder):
        client = PushingClient(broker)
        await client.get()
        assert await client.push() == ErrorCode.NONE
        assert await client.push(terminating=True) == ErrorCode.NONE
        assert [one.terminating for one in recorder.pushed] == [False, True]
        assert await client.push(terminating=True) == ErrorCode.INVALID_REQUEST


async def test_an_empty_push_is_taken_and_not_received(tmp_path: Path) -> None:
    async with receiving_broker(tmp_path) as (broker, recorder):
        client = PushingClient(broker)
        await client.get()
        assert await client.push(b"", terminating=True, compression_type=Codec.ZSTD) == ErrorCode.NONE
        assert recorder.pushed == []


@pytest.mark.parametrize(
    ("metrics", "fields", "code"),
    [
        (b"x", {"client_instance_id": bytes(16)}, ErrorCode.INVALID_REQUEST),
        (b"x", {"client_instance_id": (1).to_bytes(16)}, ErrorCode.INVALID_REQUEST),
        (b"x", {"subscription_id": 1}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        (b"x", {"compression_type": 9}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (bytes(MAX_BYTES + 1), {}, ErrorCode.TELEMETRY_TOO_LARGE),
        (NOT_OTLP, {}, ErrorCode.INVALID_RECORD),
        (b"x", {"compression_type": Codec.ZSTD}, ErrorCode.INVALID_RECORD),
        (b"x", {"compression_type": Codec.SNAPPY}, ErrorCode.INVALID_RECORD),
        *(
            (compress(codec, bytes(MAX_BYTES + 1)), {"compression_type": codec}, ErrorCode.INVALID_RECORD)
            for codec in Codec
            if codec is not Codec.NONE
        ),
    ],
)
async def test_what_is_refused_does_not_reach_the_receiver(
    tmp_path: Path, metrics: bytes, fields: dict[str, Any], code: ErrorCode
) -> None:
    async with receiving_broker(tmp_path) as (broker, recorder):
        client = PushingClient(broker)
        await client.get()
        assert await client.push(metrics, **fields) == code
        assert recorder.pushed == []
        assert await client.push() == ErrorCode.THROTTLING_QUOTA_EXCEEDED or code == ErrorCode.INVALID_REQUEST


async def test_without_a_receiver_metrics_are_read_and_dropped(tmp_path: Path) -> None:
    # As by a Kafka without a plug-in.
    async with receiving_broker(tmp_path) as (broker, _):
        broker.client_metrics.receiver = None
        client = PushingClient(broker)
        await client.get()
        assert await client.push(NOT_OTLP) == ErrorCode.NONE
        assert await client.push(b"x", compression_type=Codec.GZIP, terminating=True) == ErrorCode.INVALID_RECORD


async def test_large_bodies_are_decompressed_in_a_thread(tmp_path: Path) -> None:
    metrics = bytes(range(256)) * 2_000
    async with receiving_broker(tmp_path) as (broker, recorder):
        broker.client_metrics.manager.max_bytes = 1 << 30
        client = PushingClient(broker)
        await client.get()
        assert await client.push(compress(Codec.LZ4, metrics), compression_type=Codec.LZ4) == ErrorCode.NONE
        assert [one.metrics for one in recorder.pushed] == [metrics]
        assert await client.push(b"x", compression_type=Codec.LZ4, terminating=True) == ErrorCode.INVALID_RECORD


async def test_it_needs_no_right(tmp_path: Path) -> None:
    every = {(operation, kind, None) for operation in Operation for kind in ResourceType}
    async with receiving_broker(tmp_path) as (broker, _):
        request = PushTelemetryRequest(client_instance_id=b"a" * 16)
        response = await call(broker, push_telemetry, request, 0, authorizer=Denying(every))
        assert response.error_code == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
