"""Topics are there, or gone, for every broker when a method returns."""

from __future__ import annotations

from pathlib import Path

from tests.support.brokers.hosted import hosted_brokers, refusal


async def test_a_created_topic_is_known_to_every_broker_at_once(tmp_path: Path) -> None:
    async with hosted_brokers(tmp_path, 3) as (hosted, call):
        created = await call("create_topic", name="t", partitions=4, replication_factor=2, config={"retention.ms": 1})
        assert created == {"name": "t", "partitions": 4, "replication_factor": 2}
        for broker in hosted.brokers.values():
            assert broker.metadata.partition_count("t") == 4
        await call("delete_topic", name="t")
        assert all(not broker.metadata.contains("t") for broker in hosted.brokers.values())


async def test_what_a_broker_refuses_is_refused_with_its_reason(tmp_path: Path) -> None:
    async with hosted_brokers(tmp_path) as (_, call):
        await call("create_topic", name="t")
        assert await refusal(call("create_topic", name="t")) == (
            "creating topic t: TOPIC_ALREADY_EXISTS: Topic 't' already exists.; "
            "use it, choose another name, or delete it first"
        )
        assert "INVALID_REPLICATION_FACTOR" in await refusal(call("create_topic", name="u", replication_factor=2))
        assert "INVALID_CONFIG" in await refusal(call("create_topic", name="u", config={"retention": True}))
        assert "OFFSET_OUT_OF_RANGE" in await refusal(call("delete_records", topic="t", partition=0, before=5))
        assert "there is no topic `u`" in await refusal(call("delete_topic", name="u"))


async def test_deleted_records_are_gone(tmp_path: Path) -> None:
    async with hosted_brokers(tmp_path) as (_, call):
        await call("produce", topic="t", records=[{"value": str(number)} for number in range(4)])
        assert await call("delete_records", topic="t", partition=0, before=3) == {"start_offset": 3}
        assert [one["value"] for one in await call("records", topic="t")] == ["3"]
        assert await call("delete_records", topic="t", partition=0, before=-1) == {"start_offset": 4}
