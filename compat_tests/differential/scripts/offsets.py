"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords, InitProducerId."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.records import TIME, Batch
from compat_tests.differential.script import Ask, ask, script
from compat_tests.differential.steps import create, everything, produce
from kpybroker.wire.api import ApiKey
from kpybroker.wire.compression import Codec

LIST_OFFSETS = ApiKey.LIST_OFFSETS
EPOCHS = ApiKey.OFFSET_FOR_LEADER_EPOCH
DELETE_RECORDS = ApiKey.DELETE_RECORDS
INIT_PRODUCER_ID = ApiKey.INIT_PRODUCER_ID

FILLED = [
    create("{t}", partitions=2),
    produce("{t}", Batch([(None, b"a", TIME), (None, b"b", TIME + 10)])),
    produce("{t}", Batch([(None, b"c", TIME + 50), (None, b"d", TIME + 20)])),
    produce("{t}", Batch([(None, b"e", TIME + 30)])),
]


def offsets(timestamp: int, partition: int = 0, topic: str = "{t}", **more: Any) -> Ask:
    options: dict[str, Any] = {key: more.pop(key) for key in ("v", "isolation_level", "replica_id") if key in more}
    fields: dict[str, Any] = {"replica_id": -1, **options}
    place = {"partition_index": partition, "timestamp": timestamp, "max_num_offsets": 1, **more}
    return ask(LIST_OFFSETS, topics=[{"name": topic, "partitions": [place]}], **fields)


def epoch(leader_epoch: int, partition: int = 0, topic: str = "{t}", current: int = -1, **options: Any) -> Ask:
    place = {"partition": partition, "current_leader_epoch": current, "leader_epoch": leader_epoch}
    fields: dict[str, Any] = {"replica_id": -1, **options}
    return ask(EPOCHS, topics=[{"topic": topic, "partitions": [place]}], **fields)


def delete_to(offset: int, partition: int = 0, topic: str = "{t}") -> Ask:
    places = [{"partition_index": partition, "offset": offset}]
    return ask(DELETE_RECORDS, topics=[{"name": topic, "partitions": places}], timeout_ms=60_000)


def new_producer(transactional_id: str | None = None, pid: int = -1, epoch_: int = -1, timeout: int = 60_000) -> Ask:
    return ask(
        INIT_PRODUCER_ID,
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout,
        producer_id=pid,
        producer_epoch=epoch_,
    )


SCRIPTS = [
    script(
        "list-offsets-times",
        LIST_OFFSETS,
        "every special time, times before, between and after records that are not in order",
        FILLED,
        *(offsets(special) for special in (-1, -2, -3, -4, -5, -6, -100)),
        *(offsets(special, 1) for special in (-1, -2, -3, TIME)),
        *(offsets(TIME + after) for after in (-1_000_000, 0, 1, 10, 11, 20, 21, 30, 49, 50, 51)),
        offsets(0),
    ),
    script(
        "list-offsets-segments",
        LIST_OFFSETS,
        "times over several segments, with equal times, compressed, and stamped by the broker",
        create("{t}", segment_bytes=300, partitions=2),
        *(produce("{t}", Batch([(None, b"x" * 50, TIME + at)])) for at in (0, 10, 10, 90, 20, 90, 30)),
        produce("{t}", Batch([(None, b"x", TIME + at) for at in (5, 95, 95)], codec=Codec.GZIP)),
        offsets(-3),
        *(offsets(TIME + after) for after in (0, 5, 10, 11, 21, 90, 91, 95, 96)),
        delete_to(4),
        offsets(-2),
        offsets(-3),
        *(offsets(TIME + after) for after in (0, 10, 50, 95)),
        create("{t}-now", message_timestamp_type="LogAppendTime"),
        produce("{t}-now", Batch([(None, b"a", TIME), (None, b"b", TIME + 1)])),
        offsets(-3, topic="{t}-now"),
        offsets(TIME, topic="{t}-now"),
        versions=(1, 9),
    ),
    script(
        "list-offsets-places",
        LIST_OFFSETS,
        "partitions that are not there, twice the same, none",
        FILLED,
        offsets(-1, 2),
        offsets(-1, -1),
        offsets(-1, topic="{t}-missing"),
        offsets(-1, topic="bad name"),
        *(offsets(special, topic="{t}-missing") for special in (-3, -4, -5, -6, -100)),
        *(offsets(special, 7, current_leader_epoch=5) for special in (-3, -100)),
        ask(
            LIST_OFFSETS,
            replica_id=-1,
            topics=[
                {
                    "name": "{t}",
                    "partitions": [
                        {"partition_index": 0, "timestamp": -1, "max_num_offsets": 1},
                        {"partition_index": 1, "timestamp": -2, "max_num_offsets": 1},
                        {"partition_index": 0, "timestamp": -2, "max_num_offsets": 1},
                    ],
                },
                {
                    "name": "{t}-missing",
                    "partitions": [{"partition_index": 0, "timestamp": -1, "max_num_offsets": 1}],
                },
            ],
        ),
        ask(LIST_OFFSETS, replica_id=-1, topics=[]),
        offsets(-1, replica_id=-2),
        offsets(-1, replica_id=5),
    ),
    script(
        "list-offsets-many",
        LIST_OFFSETS,
        "version 0 returns segments' first offsets, as many as asked for",
        create("{t}", segment_bytes=200),
        *(produce("{t}", Batch([b"%d" % n * 100])) for n in range(4)),
        *(offsets(-1, max_num_offsets=count) for count in (0, 1, 2, 3, 10, -1)),
        *(offsets(-2, max_num_offsets=count) for count in (1, 10)),
        offsets(9_999_999_999_999, max_num_offsets=10),
        offsets(TIME, max_num_offsets=10),
        delete_to(2),
        offsets(-1, max_num_offsets=10),
        versions=(0, 0),
    ),
    script(
        "list-offsets-epochs",
        LIST_OFFSETS,
        "leader epochs that the broker does not have, and both isolation levels",
        FILLED,
        *(offsets(-1, current_leader_epoch=current) for current in (-1, 0, 1, 50)),
        *(offsets(TIME, current_leader_epoch=current) for current in (0, 1)),
        *(offsets(special, isolation_level=1) for special in (-1, -2, -3, TIME, TIME + 40, TIME + 99)),
        delete_to(2),
        *(offsets(special) for special in (-1, -2, -3, -4, TIME, TIME + 30)),
        versions=(2, 9),
    ),
    script(
        "leader-epochs",
        EPOCHS,
        "where an epoch ends",
        FILLED,
        *(epoch(asked) for asked in (0, 1, -1, 5)),
        *(epoch(0, current=current) for current in (0, 1, 7)),
        epoch(0, 1),
        epoch(0, 2),
        epoch(0, topic="{t}-missing"),
        epoch(0, replica_id=-2),
        epoch(0, replica_id=3),
        ask(EPOCHS, replica_id=-1, topics=[]),
        ask(EPOCHS, replica_id=-1, topics=[{"topic": "{t}", "partitions": []}]),
        ask(
            EPOCHS,
            replica_id=-1,
            topics=[
                {
                    "topic": "{t}",
                    "partitions": [{"partition": 0, "leader_epoch": 0}, {"partition": 1, "leader_epoch": 0}],
                },
                {"topic": "{t}-missing", "partitions": [{"partition": 0, "leader_epoch": 0}]},
            ],
        ),
    ),
    script(
        "delete-records",
        DELETE_RECORDS,
        "up to an offset, to the end, beyond it, where there is nothing to delete or no right to",
        FILLED,
        delete_to(2),
        delete_to(1),
        delete_to(2),
        everything("{t}"),
        delete_to(3),
        everything("{t}"),
        delete_to(6),
        delete_to(-2),
        delete_to(-1),
        everything("{t}"),
        delete_to(0),
        delete_to(0, 1),
        delete_to(-1, 1),
        delete_to(0, 2),
        delete_to(0, topic="{t}-missing"),
        ask(DELETE_RECORDS, topics=[], timeout_ms=60_000),
        ask(
            DELETE_RECORDS,
            topics=[
                {"name": "{t}", "partitions": [{"partition_index": 0, "offset": -1}, {"partition_index": 9}]},
                {"name": "{t}-missing", "partitions": [{"partition_index": 0, "offset": 1}]},
            ],
            timeout_ms=60_000,
        ),
        create("{t}-compact", cleanup_policy="compact"),
        delete_to(0, topic="{t}-compact"),
        create("{t}-both", cleanup_policy="compact,delete"),
        delete_to(0, topic="{t}-both"),
        delete_to(0, topic="__consumer_offsets"),
    ),
    script(
        "init-producer-id",
        INIT_PRODUCER_ID,
        "a producer without a transactional id; with half of an id",
        new_producer(),
        new_producer(),
        new_producer(timeout=-1),
        new_producer(pid=5, epoch_=0),
        new_producer(pid=5),
        new_producer(epoch_=0),
        new_producer(""),
    ),
]
