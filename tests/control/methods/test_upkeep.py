"""Retention and compaction at once, by the same rules as in the background."""

from __future__ import annotations

from pathlib import Path

from tests.support.brokers.hosted import hosted_brokers, refusal


async def test_retention_deletes_what_is_too_old_and_nothing_else(tmp_path: Path) -> None:
    async with hosted_brokers(tmp_path, log_message_timestamp_before_max_ms="9223372036854775807") as (_, call):
        for name in ("old", "new"):
            await call("create_topic", name=name, config={"retention.ms": 1_000_000})
        await call("produce", topic="new", records=[{"value": "new"}])
        await call("produce", topic="old", records=[{"value": "old", "timestamp_ms": 1_000}])
        assert await call("apply_retention", topic="new") == {"new-0": 0}
        assert [one["value"] for one in await call("records", topic="old")] == ["old"]
        assert await call("apply_retention") == {"new-0": 0, "old-0": 1}
        assert await call("records", topic="old") == []
        assert [one["value"] for one in await call("records", topic="new")] == ["new"]


async def test_compaction_keeps_the_latest_of_each_key_up_to_the_end(tmp_path: Path) -> None:
    async with hosted_brokers(tmp_path) as (_, call):
        await call("create_topic", name="t", config={"cleanup.policy": "compact"})
        given = [{"key": str(number % 3), "value": str(number)} for number in range(10)]
        await call("produce", topic="t", records=given)
        assert await call("compact", topic="t") == {"t-0": 10}
        found = [(one["key"], one["value"], one["offset"]) for one in await call("records", topic="t")]
        assert found == [("1", "7", 7), ("2", "8", 8), ("0", "9", 9)]
        await call("produce", topic="t", records=[{"key": "1", "value": "last"}])
        await call("compact")
        assert [one["value"] for one in await call("records", topic="t")] == ["8", "9", "last"]


async def test_there_must_be_something_to_compact(tmp_path: Path) -> None:
    async with hosted_brokers(tmp_path) as (_, call):
        await call("create_topic", name="t")
        assert "`t` is not a topic that has cleanup.policy=compact" in await refusal(call("compact", topic="t"))
        assert "no topic has cleanup.policy=compact" in await refusal(call("compact"))
