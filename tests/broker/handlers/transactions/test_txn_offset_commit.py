"""TxnOffsetCommit: pending until the marker, fencing by transaction and by group, refusals by partition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kpybroker.broker.handlers.transactions import txn_offset_commit
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.support.brokers.fake_broker import Denying, versions
from tests.support.brokers.running_broker import ask
from tests.support.brokers.transactional import Producer, completed, fenced_producer, held_markers, one_producer
from tests.support.requests.consumer_group_requests import Member, loaded


@pytest.mark.parametrize("version", versions(txn_offset_commit))
async def test_offsets_are_kept_with_their_transaction(tmp_path: Path, version: int) -> None:
    async with one_producer(tmp_path) as (broker, producer):
        await producer.add_offsets()
        assert await producer.commit_offset(5, version=version) is ErrorCode.NONE
        offsets = broker.groups.shard_for("g").machine.groups["g"].offsets
        assert (offsets.get(("t", 0)), offsets.is_unstable(("t", 0))) == (None, True)
        await producer.end(True)
        await completed(broker)
        found = offsets.get(("t", 0))
        assert found is not None
        assert (found.offset, offsets.is_unstable(("t", 0))) == (5, False)


ADDS_FROM = 5


@pytest.mark.parametrize("version", range(ADDS_FROM))
async def test_the_group_must_take_part(tmp_path: Path, version: int) -> None:
    async with one_producer(tmp_path) as (_, producer):
        expected = ErrorCode.TRANSACTION_ABORTABLE if version >= 4 else ErrorCode.INVALID_TXN_STATE
        assert await producer.commit_offset(5, version=version) is expected


@pytest.mark.parametrize("enabled", ["true", "false"])
@pytest.mark.parametrize("committed", [True, False])
async def test_from_version_5_on_the_group_takes_part_by_its_offsets(
    tmp_path: Path, committed: bool, enabled: str
) -> None:
    """Whether verification is on or off: no AddOffsetsToTxn was sent."""
    async with one_producer(tmp_path, transaction_partition_verification_enable=enabled) as (broker, producer):
        assert await producer.commit_offset(5, version=ADDS_FROM) is ErrorCode.NONE
        offsets_partition = ("__consumer_offsets", broker.groups.partition_for("g"))
        assert broker.transactions.describe("x").partitions == (offsets_partition,)
        offsets = broker.groups.shard_for("g").machine.groups["g"].offsets
        assert offsets.is_unstable(("t", 0))
        await producer.end(committed, 5)
        await completed(broker)
        found = None if "g" not in broker.groups.shard_for("g").machine.groups else offsets.get(("t", 0))
        assert (found is not None and found.offset == 5) is committed


async def test_from_version_5_on_a_producer_waits_for_the_transaction_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Kafka 4.3 the coordinator of the group does not ask again itself."""
    async with one_producer(tmp_path) as (broker, producer):
        await producer.commit_offset(5, version=ADDS_FROM)
        released = held_markers(broker, monkeypatch)
        await producer.end(True, 5)
        assert await producer.commit_offset(6, version=ADDS_FROM) is ErrorCode.CONCURRENT_TRANSACTIONS
        released.set()
        await completed(broker)
        assert await producer.commit_offset(6, version=ADDS_FROM) is ErrorCode.NONE


async def test_from_version_5_on_the_fenced_take_no_part(tmp_path: Path) -> None:
    async with fenced_producer(tmp_path) as (broker, zombie, successor):
        assert await zombie.commit_offset(5, version=ADDS_FROM) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert broker.transactions.describe("x").partitions == ()
        assert await successor.commit_offset(6, version=ADDS_FROM) is ErrorCode.NONE


async def test_the_fenced_commit_nothing(tmp_path: Path) -> None:
    async with fenced_producer(tmp_path) as (_, zombie, successor):
        await successor.add_offsets()
        assert await zombie.commit_offset(5) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert await successor.commit_offset(6) is ErrorCode.NONE


async def test_a_member_of_another_generation_commits_nothing(tmp_path: Path) -> None:
    async with one_producer(tmp_path, features={}) as (_, producer):
        await producer.add_offsets()
        assert await producer.commit_offset(5, generation_id=3, member_id="who") is ErrorCode.UNKNOWN_MEMBER_ID
        assert await producer.commit_offset(5, generation_id=3) is ErrorCode.UNKNOWN_MEMBER_ID
        assert await producer.commit_offset(5) is ErrorCode.NONE


async def test_with_consumer_groups_a_member_of_no_group_has_no_generation(tmp_path: Path) -> None:
    """As in Kafka 4; a group that exists refuses it as before."""
    async with one_producer(tmp_path) as (broker, producer):
        await producer.add_offsets()
        assert await producer.commit_offset(5, generation_id=3, member_id="who") is ErrorCode.ILLEGAL_GENERATION
        assert "g" not in broker.groups.shard_for("g").machine.groups
        assert await producer.commit_offset(5) is ErrorCode.NONE
        assert await producer.commit_offset(5, generation_id=3, member_id="who") is ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_member_of_a_consumer_group_commits_with_its_epoch(tmp_path: Path) -> None:
    """A stale epoch is a generation that has passed: producers know no other error."""
    async with one_producer(tmp_path, group_consumer_assignment_interval_ms="0") as (broker, producer):
        await loaded(broker)
        await producer.add_offsets()
        member = Member(broker, "m1")
        await member.join("t")
        member_of: dict[str, Any] = {"member_id": "m1", "generation_id": member.epoch}
        assert await producer.commit_offset(5, **member_of) is ErrorCode.NONE
        stale = member_of | {"generation_id": member.epoch + 1}
        assert await producer.commit_offset(6, **stale) is ErrorCode.ILLEGAL_GENERATION
        assert await producer.commit_offset(6, **member_of | {"member_id": "who"}) is ErrorCode.UNKNOWN_MEMBER_ID
        assert await producer.commit_offset(7) is ErrorCode.NONE
        await producer.end(True)
        await completed(broker)
        found = broker.groups.shard_for("g").machine.groups["g"].offsets.get(("t", 0))
        assert found is not None
        assert found.offset == 7


@pytest.mark.parametrize("version", versions(txn_offset_commit))
async def test_old_producers_do_not_hear_that_a_coordinator_loads(tmp_path: Path, version: int) -> None:
    async with one_producer(tmp_path) as (broker, producer):
        await producer.add_offsets()
        index = broker.groups.partition_for("g")
        broker.groups.on_resigned(index)
        broker.groups.on_elected(index, 1)
        expected = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if version >= 2 else ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await producer.commit_offset(5, version=version) is expected


async def test_each_partition_gets_its_response(tmp_path: Path) -> None:
    async with one_producer(tmp_path) as (broker, producer):
        await producer.add_offsets()
        broker.authorizer = Denying({(Operation.READ, ResourceType.TOPIC, "secret")})
        request = TxnOffsetCommitRequest(
            **producer.names,
            group_id="g",
            topics=[
                TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                    name=name,
                    partitions=[
                        TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                            partition_index=index, committed_offset=1, committed_metadata=metadata
                        )
                        for index, metadata in places
                    ],
                )
                for name, places in {"t": [(0, "m"), (1, "x" * 5000), (9, "")], "secret": [(0, "")]}.items()
            ],
        )
        response = await ask(broker, request, 3)
        assert {
            (topic.name, p.partition_index): p.error_code for topic in response.topics for p in topic.partitions
        } == {
            ("t", 0): ErrorCode.NONE,
            ("t", 1): ErrorCode.OFFSET_METADATA_TOO_LARGE,
            ("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("secret", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        }


async def test_refusals(tmp_path: Path) -> None:
    async with one_producer(tmp_path) as (broker, producer):
        assert await producer.commit_offset(5, "") is ErrorCode.INVALID_GROUP_ID
        assert await Producer(broker, "").commit_offset(5) is ErrorCode.INVALID_REQUEST
        broker.authorizer = Denying(
            {(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "y"), (Operation.READ, ResourceType.GROUP, "h")}
        )
        assert await producer.commit_offset(5, "h") is ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert await Producer(broker, "y").commit_offset(5) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
