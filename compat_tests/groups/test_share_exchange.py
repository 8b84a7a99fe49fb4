"""Kafka 4.3.1 and kpybroker go on with each other's share groups: `__share_group_state`, and the group's own records.

A member at Kafka accepts, releases and rejects records and leaves. The files of the topic and of both internal topics
are copied into a broker of ours that has the topic with the same id: its members get what is left, with the right
delivery counts, and Kafka goes on with what they leave.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from compat_tests.conftest import StartBroker
from compat_tests.groups.test_group_exchange import take_topic_id, topic_ids
from compat_tests.groups.test_group_records import OFFSETS, TOPIC
from compat_tests.groups.test_share_states import PARTITION, dumped_by_kafka, dumped_by_us
from compat_tests.overload.raw import Raw
from compat_tests.support import quick
from compat_tests.support.groups.serving import QUICK, group_broker
from compat_tests.support.kraft import KraftBroker
from compat_tests.support.waiting import eventually
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from kpybroker.wire.messages.share_group_describe import ShareGroupDescribeRequest

GROUP, OTHER = "workers", "others"
ONE_OF_EACH = {"offsets.topic.num.partitions": "1", "share.coordinator.state.topic.num.partitions": "1"}
RECORDS, SETTLE_S = 10, 60.0
SAID = {
    **dict.fromkeys((0, 1, 2, 4), AcknowledgeType.ACCEPT),
    **dict.fromkeys((3, 5, 6), AcknowledgeType.RELEASE),
    7: AcknowledgeType.REJECT,
}
"""Nothing is said of 8 and 9: the member leaves with them."""
LEFT = {3: 2, 5: 2, 6: 2, 8: 2, 9: 2}
"""By offset, the delivery count that the next member sees."""


def begin_at_start(bootstrap: str, group: str) -> None:
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    admin = quick.admin_client(bootstrap)
    admin.incremental_alter_configs([resource])[resource].result(timeout=SETTLE_S)


def work(bootstrap: str, count: int, said: dict[int, AcknowledgeType], group: str = GROUP) -> dict[int, int]:
    """A member takes so many records, says that of them, and leaves; the delivery counts by offset."""
    consumer = ShareConsumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "share.acknowledgement.mode": "explicit", **quick.QUIET}
    )
    consumer.subscribe([TOPIC])
    found: dict[int, int] = {}

    def has_all() -> bool:
        for message in consumer.poll(0.2):
            assert message.error() is None
            found[message.offset()] = message.delivery_count()
            if message.offset() in said:
                consumer.acknowledge(message, said[message.offset()])
        return len(found) >= count

    eventually(has_all, f"{count} records", SETTLE_S)
    assert set(consumer.commit_sync(SETTLE_S).values()) == {None}
    consumer.close()
    return found


def state_of(bootstrap: str) -> tuple[str, list[tuple[int, int, int]]]:
    """The group's state; of each partition of the topic its number, start offset and lag."""
    group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=None)
    with Raw(("127.0.0.1", int(bootstrap.rpartition(":")[2]))) as raw:

        def described() -> Any:
            (one,) = raw.ask(ShareGroupDescribeRequest(group_ids=[GROUP]), 1).groups
            return one if one.error_code == ErrorCode.NONE and not one.members else None

        eventually(lambda: described() is not None, "the group without members", SETTLE_S)

        def offsets() -> Any:
            (one,) = raw.ask(DescribeShareGroupOffsetsRequest(groups=[group]), 1).groups
            rows = [each for topic in one.topics for each in topic.partitions]
            is_known = one.error_code == ErrorCode.NONE and all(each.error_code == ErrorCode.NONE for each in rows)
            return [(each.partition_index, each.start_offset, each.lag) for each in rows] if is_known else None

        eventually(lambda: offsets() is not None, "its start offsets", SETTLE_S)
        return described().group_state, offsets()


def copy_files(source: Path, target: Path) -> None:
    """The segments and leader epochs of the topic and of both internal topics; the rest is made again."""
    for partition in (f"{TOPIC}-0", OFFSETS, PARTITION):
        for path in (target / partition).iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        for path in (source / partition).iterdir():
            if path.suffix == ".log" or path.name == "leader-epoch-checkpoint":
                shutil.copy(path, target / partition)
    for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (target / name).unlink(missing_ok=True)


@pytest.mark.wide
def test_each_goes_on_with_the_share_groups_of_the_other(own_broker: StartBroker, tmp_path: Path) -> None:
    ours = group_broker(own_broker, **{name.replace(".", "_"): value for name, value in ONE_OF_EACH.items()})
    quick.create_topic(ours.bootstrap, TOPIC, 1)
    quick.fill(ours.bootstrap, TOPIC, ["other"], 0)
    begin_at_start(ours.bootstrap, OTHER)
    assert work(ours.bootstrap, 1, {0: AcknowledgeType.ACCEPT}, OTHER) == {0: 1}
    ours.stop()
    keys = {name.replace("_", "."): value for name, value in QUICK.items()} | ONE_OF_EACH
    kafka = KraftBroker(tmp_path / "kafka", keys)
    try:
        kafka.start()
        quick.create_topic(kafka.bootstrap, TOPIC, 1)
        quick.fill(kafka.bootstrap, TOPIC, [f"job-{number}" for number in range(RECORDS)], 0)
        begin_at_start(kafka.bootstrap, GROUP)
        assert work(kafka.bootstrap, RECORDS, SAID) == dict.fromkeys(range(RECORDS), 1)
        theirs = state_of(kafka.bootstrap)
        assert theirs == ("Empty", [(0, 3, len(LEFT))])
        kafka.service.stop()
        take_topic_id(ours, topic_ids(kafka.data_dir))
        copy_files(kafka.data_dir, ours.data_dir)

        ours.start()
        assert state_of(ours.bootstrap) == theirs
        assert work(ours.bootstrap, len(LEFT), dict.fromkeys((3, 5, 6, 8), AcknowledgeType.ACCEPT)) == LEFT
        left = state_of(ours.bootstrap)
        assert left == ("Empty", [(0, 9, 1)])
        ours.stop()
        assert dumped_by_kafka(ours.data_dir) == dumped_by_us(ours.data_dir)

        copy_files(ours.data_dir, kafka.data_dir)
        kafka.start()
        assert state_of(kafka.bootstrap) == left
        assert work(kafka.bootstrap, 1, {9: AcknowledgeType.ACCEPT}) == {9: 3}
        # Kafka persists the start offset of before the write: what is done counts in the lag only
        assert state_of(kafka.bootstrap) == ("Empty", [(0, 9, 0)])
    finally:
        kafka.close()
