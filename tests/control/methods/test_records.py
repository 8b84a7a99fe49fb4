"""Records as they are stored, and writing them as a producer does."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.control.inside import leading
from kpybroker.wire.records.builder import BatchFields, build_batch
from kpybroker.wire.records.control import ControlRecordType, EndTransactionMarker
from tests.support.brokers.hosted import hosted_brokers, refusal


async def test_what_was_produced_is_read_with_every_field(tmp_path: Path) -> None:
    async with hosted_brokers(tmp_path) as (hosted, call):
        given = {"key": "k", "value": {"base64": "/w=="}, "headers": [["h", "1"], ["h", None]], "timestamp_ms": 17}
        assert await call("produce", topic="t", records=[given, {}]) == [
            {"partition": 0, "offset": 0},
            {"partition": 0, "offset": 1},
        ]
        first, second = await call("records", topic="t")
        now_ms = hosted.brokers[0].clock.time_ms()
    assert {name: first[name] for name in given} == given
    assert (first["offset"], first["timestamp_type"], first["leader_epoch"]) == (0, "CreateTime", 0)
    assert (second["key"], second["value"], second["headers"]) == (None, None, [])
    assert now_ms - 60_000 < second["timestamp_ms"] <= now_ms


async def test_a_part_of_a_topic(tmp_path: Path) -> None:
    async with hosted_brokers(tmp_path) as (_, call):
        await call("create_topic", name="t", partitions=2)
        await call("produce", topic="t", records=[{"value": str(number)} for number in range(10)])

        async def values(**bounds: int) -> list[str]:
            return [one["value"] for one in await call("records", topic="t", **bounds)]

        assert await values(partition=1) == ["1", "3", "5", "7", "9"]
        assert await values(partition=1, start=3) == ["7", "9"]
        assert await values(partition=1, start=1, end=3) == ["3", "5"]
        assert await values(limit=6) == ["0", "2", "4", "6", "8", "1"]
        assert await values(partition=0, start=99) == []


async def test_more_records_than_one_batch_and_one_read_hold(tmp_path: Path) -> None:
    async with hosted_brokers(tmp_path) as (_, call):
        placed = await call("produce", topic="t", records=[{"value": "x" * 1_000}] * 2_500)
        assert [one["offset"] for one in placed] == list(range(2_500))
        found = await call("records", topic="t", limit=10_000)
    assert [one["offset"] for one in found] == list(range(2_500))


async def test_an_aborted_transaction_is_seen_only_uncommitted(tmp_path: Path) -> None:
    async with hosted_brokers(tmp_path, transaction_partition_verification_enable="false") as (hosted, call):
        await call("produce", topic="t", records=[{"value": "before"}])
        broker, partition = leading(hosted, "t", 0)
        from kpybroker.storage.log.append import ProducedBatches

        fields = BatchFields(producer_id=9, producer_epoch=0, base_sequence=0, is_transactional=True)
        partition.append(ProducedBatches(memoryview(build_batch([(None, b"open", 1)], fields)), 1))
        seen = [one["value"] for one in await call("records", topic="t", isolation="read_committed")]
        assert seen == ["before"]
        partition.append_marker(EndTransactionMarker(ControlRecordType.ABORT, 0, broker.clock.time_ms()), 9, 0)
        await call("produce", topic="t", records=[{"value": "after"}])
        committed = [one["value"] for one in await call("records", topic="t", isolation="read_committed")]
        everything = [one["value"] for one in await call("records", topic="t")]
    assert (committed, everything) == (["before", "after"], ["before", "open", "after"])


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"valu": "x"}, "record 0 has a field `valu`; did you mean `value`?"),
        ({"value": 1}, "the value of record 0 is no string"),
        ({"value": {"base64": "?"}}, "is not base64"),
        ({"partition": 3}, "record 0 is for partition 3; the topic has 1: 0 to 0"),
        ({"timestamp_ms": -1}, "the timestamp of record 0 is -1"),
        ({"headers": ["h"]}, "a header of record 0 is 'h'"),
    ],
)
async def test_a_wrong_record_is_refused_and_nothing_is_written(
    tmp_path: Path, record: dict[str, object], expected: str
) -> None:
    async with hosted_brokers(tmp_path) as (_, call):
        await call("create_topic", name="t")
        assert expected in await refusal(call("produce", topic="t", records=[record, {"value": "y"}]))
        assert await call("records", topic="t") == []


async def test_a_topic_that_is_not_there(tmp_path: Path) -> None:
    async with hosted_brokers(tmp_path, auto_create_topics_enable="false") as (_, call):
        await call("create_topic", name="orders")
        assert await refusal(call("records", topic="order")) == "there is no topic `order`; did you mean `orders`?"
        refused = await refusal(call("produce", topic="order", records=[{}]))
        assert "UNKNOWN_TOPIC_OR_PARTITION" in refused
        assert "create the topic first" in refused
        assert "orders has no partition 1; give one of 0 to 0" in await refusal(
            call("records", topic="orders", partition=1)
        )
