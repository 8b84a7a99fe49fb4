"""Share groups as the metrics count them."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from kpybroker.broker.app import Broker
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.metrics.readers.shares import ACK_TYPES, TRAFFIC, SharesReader
from kpybroker.broker.replication.traffic import ShareTraffic
from kpybroker.broker.share.counts import NAMED
from kpybroker.core.share_coordinator.values import SharePartitionKey
from kpybroker.metrics.reading import Tags
from kpybroker.metrics.tables import share as s
from tests.broker.share.test_whole_share_group import ACCEPT, REJECT, RELEASE, join, whole_broker
from tests.metrics import absent
from tests.metrics.kafka_4_shares import COORDINATOR, MBEANS
from tests.support.brokers.running_broker import create_topic, running_broker
from tests.support.share.members import Member, produce, rows

LOCK_S = 30
TRAFFIC_SHOWN = (
    *("TotalShareFetchRequestsPerSec", "FailedShareFetchRequestsPerSec"),
    *("TotalShareAcknowledgementRequestsPerSec", "FailedShareAcknowledgementRequestsPerSec"),
)


def test_all_that_is_counted_by_topic_is_shown() -> None:
    assert {name for name, _ in TRAFFIC} == set(ShareTraffic.__slots__)


async def values(reader: SharesReader) -> dict[tuple[str, Tags], Any]:
    """By name or attribute, and tags."""
    return {
        (family.name or family.attribute, tuple(row)): value
        for reading in await reader.read(YieldBudget())
        for family, column in reading.columns
        for row, value in zip(reading.rows, column, strict=True)
    }


def reader_of(broker: Broker) -> SharesReader:
    assert broker.metrics is not None
    (reader,) = [one for one in broker.metrics.readers if isinstance(one, SharesReader)]
    return reader


async def test_what_members_hold_and_say_is_counted(tmp_path: Path) -> None:
    async with whole_broker(tmp_path, kpybroker_metrics_port="0") as broker:
        topic_id = await create_topic(broker, "t")
        await join(broker, "m")
        member = Member(broker, topic_id)
        await member.fetch(max_wait_ms=200)
        produce(broker, *[b"x"] * 6)
        assert rows(await member.fetch(max_wait_ms=5_000)) == [(0, 5, 1)]
        await member.acknowledge({0: [(1, 1, ACCEPT), (2, 3, REJECT), (4, 5, [2, 0])]})
        reader = reader_of(broker)
        found = await values(reader)
        counted = {name: found["RecordAcknowledgementsPerSec", (name,)] for name in ACK_TYPES}
        assert counted == {"Accept": 1, "Release": 1, "Reject": 2, "Renew": 0}
        assert found["InFlightMessageCount", ("g", "t", "0")] == 6
        assert found["InFlightBatchCount", ("g", "t", "0")] == 1
        assert (found["ShareSessionsCount", ()], found["SharePartitionsCount", ()]) == (1, 1)
        assert found["PartitionLoadTimeMs", ()].count == 1
        assert found["RequestTopicPartitionsFetchRatio", ("g",)].count == 2
        assert found["RequestTopicPartitionsFetchRatio", ("g",)].total == 100
        assert found["TopicPartitionsAcquireTimeMs", ("g",)].count == 1
        requests = {name: [found[name, row] for row in (("",), ("t",))] for name in TRAFFIC_SHOWN}
        assert requests == {
            "TotalShareFetchRequestsPerSec": [2, 2],
            "FailedShareFetchRequestsPerSec": [0, None],
            "TotalShareAcknowledgementRequestsPerSec": [1, 1],
            "FailedShareAcknowledgementRequestsPerSec": [0, None],
        }
        await member.acknowledge({0: [(1, 1, ACCEPT), (40, 41, ACCEPT)]})
        refused = await values(reader)
        assert [refused[TRAFFIC_SHOWN[3], row] for row in (("",), ("t",))] == [1, 1]
        partitions = broker.coordinators.share_partitions
        partitions.expire(broker.clock.monotonic() + LOCK_S + 1)
        assert (await values(reader))["AcquisitionLockTimeoutPerSec", ("g", "t", "0")] == 1  # offset 0 alone was held
        reader.rotate()
        partitions.disconnected(member.connection.connection_id)
        left = await values(reader)
        assert (left["ShareSessionsCount", ()], left["ShareSessionEvictionsPerSec", ()]) == (0, 1)


async def test_writes_of_states_are_counted_and_timed(tmp_path: Path) -> None:
    async with whole_broker(tmp_path, kpybroker_metrics_port="0") as broker:
        reader = reader_of(broker)
        before = await values(reader)
        assert (before["write-total", ()], before["write-latency-max", ()]) == (0, 0)
        topic_id = await create_topic(broker, "t")
        await join(broker, "m")
        member = Member(broker, topic_id)
        await member.fetch(max_wait_ms=200)
        produce(broker, *[b"x"] * 2)
        await member.fetch(max_wait_ms=5_000)
        await member.acknowledge({0: [(0, 0, RELEASE)]})
        found = await values(reader)
        assert found["write-total", ()] == 1
        assert 0 < found["write-latency-avg", ()] == found["write-latency-max", ()]
        assert found["num-partitions", ("active",)] == 1
        reader.tick()
        reader.tick()
        assert (await values(reader))["write-latency-max", ()] == found["write-latency-max", ()], "of the window"


async def test_pruning_is_shown_where_it_was_done(tmp_path: Path) -> None:
    keys = {"share_coordinator_snapshot_update_records_per_snapshot": "0"}
    async with whole_broker(tmp_path, kpybroker_metrics_port="0", **keys) as broker:
        reader = reader_of(broker)
        topic_id = await create_topic(broker, "t")
        await join(broker, "m")
        member = Member(broker, topic_id)
        await member.fetch(max_wait_ms=200)
        produce(broker, *[b"x"] * 2)
        await member.fetch(max_wait_ms=5_000)
        place = ("last-pruned-offset", ("__share_group_state", "0"))
        assert place not in await values(reader)
        await member.acknowledge({0: [(0, 0, RELEASE)]})
        (shard,) = broker.coordinators.share_states.partitions.shards.values()
        await broker.coordinators.share_states.prune()
        start_offset = shard.partition.online_log().log_start_offset
        assert 0 < start_offset == (await values(reader))[place]


async def test_a_group_that_is_gone_leaves_nothing(tmp_path: Path) -> None:
    async with whole_broker(tmp_path, kpybroker_metrics_port="0") as broker:
        topic_id = await create_topic(broker, "t")
        await join(broker, "m")
        await Member(broker, topic_id).fetch(max_wait_ms=200)
        partitions, reader = broker.coordinators.share_partitions, reader_of(broker)
        assert ("InFlightMessageCount", ("g", "t", "0")) in await values(reader)
        led = partitions.get(SharePartitionKey("g", topic_id, 0))
        assert led is not None
        partitions._lost(led)
        assert not [tags for _, tags in await values(reader) if tags[:1] == ("g",)]


async def test_a_broker_that_has_no_share_groups_has_zeros_and_imports_nothing(tmp_path: Path) -> None:
    async with running_broker(tmp_path, kpybroker_metrics_port="0") as broker:
        found = await values(reader_of(broker))
        assert found["ShareSessionsCount", ()] == 0
        assert found["RecordAcknowledgementsPerSec", ("Accept",)] == 0
        assert broker.coordinators.built_share_partitions is None
        assert broker.coordinators.built_share_states is None


async def test_kafka_3_9_has_none_of_them(tmp_path: Path) -> None:
    async with running_broker(tmp_path, kpybroker_metrics_port="0", kpybroker_kafka_version="3.9") as broker:
        assert await values(reader_of(broker)) == {}


def test_names_are_kafkas_or_have_a_reason_to_be_absent() -> None:
    for type_, names in MBEANS.items():
        here = {family.name for family in s.FAMILIES if family.type == type_}
        missing = {
            name
            for name in names
            if absent.reason("kafka.server", {"type": type_, "name": name, "group": "g"}, absent.SHARES) is None
        }
        assert here == missing, type_
    attributes = {family.attribute for family in s.COORDINATOR}
    patterns = [one for pattern in absent.GROUPS for one in pattern.split("|")]
    assert attributes == {name for name in COORDINATOR if not any(fnmatchcase(name, one) for one in patterns)}


def test_the_numbers_of_acknowledgements_are_the_machines() -> None:
    assert list(ACK_TYPES.items()) == [(one.name.capitalize(), int(one)) for one in NAMED]
