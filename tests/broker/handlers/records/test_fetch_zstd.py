"""A topic of `compression.type=zstd` and consumers from before zstd: Kafka 3.9 refuses them, Kafka 4 does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.produce import ProduceRequest
from tests.support.brokers.running_broker import ask, create_topic, running_broker
from tests.support.storage.batches import batch


@pytest.mark.parametrize(
    ("release", "version", "expected"),
    [
        (None, 9, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (None, 10, ErrorCode.NONE),
        ("3.9", 9, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ("4.3", 9, ErrorCode.NONE),
        ("4.3", 10, ErrorCode.NONE),
    ],
)
async def test_who_is_sent_zstd(tmp_path: Path, release: str | None, version: int, expected: ErrorCode) -> None:
    keys: dict[str, Any] = {} if release is None else {"kpybroker_kafka_version": release}
    async with running_broker(tmp_path, **keys) as broker:
        await create_topic(broker, "t", compression_type="zstd")
        data = ProduceRequest.PartitionProduceData(index=0, records=bytes(batch(b"v")))
        topic = ProduceRequest.TopicProduceData(name="t", partition_data=[data])
        await ask(broker, ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic]), 9)
        partition = FetchRequest.FetchPartition(partition=0, partition_max_bytes=1000)
        asked = [FetchRequest.FetchTopic(topic="t", partitions=[partition])]
        response = await ask(broker, FetchRequest(max_bytes=1000, topics=asked, replica_id=-1), version)
        found = response.responses[0].partitions[0]
        assert (found.error_code, bool(found.records)) == (expected, expected is ErrorCode.NONE)
