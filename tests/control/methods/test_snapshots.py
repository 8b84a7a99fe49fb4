"""After `restore` everything is as it was at `snapshot`: records, topics, groups, settings, on the same ports."""

from __future__ import annotations

import os
from pathlib import Path

from tests.control.methods.test_look import join
from tests.support.brokers.hosted import hosted_brokers, refusal


async def test_a_broker_goes_back(tmp_path: Path) -> None:
    async with hosted_brokers(tmp_path) as (hosted, call):
        await call("create_topic", name="t", config={"retention.ms": 77_000_000})
        await call("produce", topic="t", records=[{"value": "kept"}])
        await join(hosted, "g", "t")
        port = hosted.brokers[0].bound[0].listener.address[1]
        taken = await call("snapshot")
        await call("produce", topic="t", records=[{"value": "lost"}])
        await call("delete_topic", name="t")
        await call("create_topic", name="other")
        for _ in range(2):  # it can be used again
            await call("restore", id=taken["id"])
            (topic,) = await call("topics")
            assert (topic["name"], topic["config"]) == ("t", {"retention.ms": "77000000"})
            assert [one["value"] for one in await call("records", topic="t")] == ["kept"]
            assert [one["offset"] for one in await call("committed", group="g")] == [2]
            await call("produce", topic="t", records=[{"value": "lost again"}])
        assert hosted.brokers[0].bound[0].listener.address[1] == port
        copies = tmp_path / "data-snapshots"
        assert copies.exists()
        await call("drop_snapshot", id=taken["id"])
        assert f"there is no snapshot {taken['id']}" in await refusal(call("restore", id=taken["id"]))
    assert not copies.exists()


async def test_a_cluster_goes_back(tmp_path: Path) -> None:
    async with hosted_brokers(tmp_path, 3, default_replication_factor="3") as (hosted, call):
        await call("create_topic", name="t", partitions=3)
        await call("produce", topic="t", records=[{"value": str(number)} for number in range(9)])
        taken = await call("snapshot")
        await call("produce", topic="t", records=[{"value": "lost"}])
        await call("restore", id=taken["id"])
        assert sorted(one["value"] for one in await call("records", topic="t")) == [str(n) for n in range(9)]
        await hosted.add_broker()
        assert "the snapshot is of brokers [0, 1, 2], now there are [0, 1, 2, 3]" in await refusal(
            call("restore", id=taken["id"])
        )


async def test_copies_are_private_and_never_in_a_directory_that_was_there(tmp_path: Path) -> None:
    """Its name is made up here: another user may have made it, and what cannot be removed is not used."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    copies = tmp_path / "data-snapshots"
    copies.symlink_to(elsewhere)
    async with hosted_brokers(tmp_path) as (_, call):
        assert "data-snapshots cannot be made" in await refusal(call("snapshot"))
        assert list(elsewhere.iterdir()) == []
        copies.unlink()
        await call("snapshot")
        if os.name != "nt":
            assert copies.stat().st_mode & 0o777 == 0o700
