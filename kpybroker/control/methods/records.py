"""Records: decoded as they are stored, and written as a producer would."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import trio

from kpybroker.broker.loop.yielding import ELEMENT, YieldBudget
from kpybroker.control.bytes_json import from_json, to_json
from kpybroker.control.errors import ControlError, did_you_mean
from kpybroker.control.inside import any_broker, ask, check, leading, partitions_of, wait_for_leaders
from kpybroker.control.registry import JSON, methods
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import TimestampType, iter_batches
from kpybroker.wire.records.builder import build_batch_of
from kpybroker.wire.records.partitioner import murmur2_partition
from kpybroker.wire.records.record import READ_HEADERS_MAX, Record, iter_records

if TYPE_CHECKING:
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.control.hosted import Hosted
    from kpybroker.storage.log.log import Log
    from kpybroker.wire.records.batch import BatchHeader

LIMIT_MAX = 100_000
READ_BYTES = 1 << 20
BATCH_RECORDS_MAX = 1_000
PRODUCE_TIMEOUT_MS = 30_000
RECORD_FIELDS = ("key", "value", "headers", "timestamp_ms", "partition")
COMMITTED = "read_committed"
Isolation = Literal["read_uncommitted", "read_committed"]


# --- reading


@dataclass(frozen=True, slots=True)
class Offsets:
    """From `start` up to `end`; None is the log's own end on that side."""

    start: int | None = None
    end: int | None = None


ALL = Offsets()


async def records(
    hosted: Hosted,
    topic: str,
    partition: int | None = None,
    offsets: Offsets = ALL,
    limit: int = 1_000,
    isolation: Isolation = "read_uncommitted",
) -> JSON:
    """Records with headers, timestamps and offsets, partition by partition; `end` is exclusive.

    Up to the high watermark, or with `read_committed` what a consumer of that isolation level sees.
    """
    if not 0 < limit <= LIMIT_MAX:
        raise ControlError(f"records: `limit` is {limit}", f"give 1 to {LIMIT_MAX}")
    found: list[JSON] = []
    for index in partitions_of(hosted, topic) if partition is None else [partition]:
        _, replica = leading(hosted, topic, index)
        await _read(replica, _Range(offsets, isolation == COMMITTED), limit, found)
        if len(found) >= limit:
            break
    return found


class _Range(NamedTuple):
    """What to read of a log."""

    offsets: Offsets
    is_committed: bool

    def within(self, log: Log) -> tuple[int, int, int]:
        """The first offset to read, the one after the last, and what bounds the batches to read."""
        bound = log.last_stable_offset if self.is_committed else log.high_watermark
        start, end = self.offsets.start or 0, self.offsets.end
        return max(start, log.log_start_offset), bound if end is None else min(end, bound), bound


async def _read(replica: Partition, wanted: _Range, limit: int, found: list[JSON]) -> None:
    log = replica.online_log()
    offset, end, bound = wanted.within(log)
    aborted = log.collect_aborted_transactions(offset, bound) if wanted.is_committed and offset < end else []
    budget = YieldBudget()
    while offset < end and len(found) < limit:
        fetched = log.read(offset, READ_BYTES, max_offset=bound, min_one_message=True)
        if fetched.slice is None:
            return
        try:
            data = await trio.to_thread.run_sync(fetched.slice.read)
        finally:
            fetched.slice.release()
        read_from = offset
        for position, header in iter_batches(data):
            if not header.is_control and not _is_aborted(header, aborted):
                for record in _records_of(replica, data, header, position):
                    if offset <= record.offset < end and len(found) < limit:
                        found.append(_record(replica, header, record))
                    await budget.spend(ELEMENT)
            offset = max(offset, header.next_offset)
        if offset == read_from:
            return


def _records_of(replica: Partition, data: bytes, header: BatchHeader, position: int) -> Iterator[Record]:
    try:
        yield from iter_records(data, header, position, headers_max=READ_HEADERS_MAX)
    except KafkaError as error:
        check(error.code, f"records of {replica.topic}-{replica.index} at {header.base_offset}", error.message)


def _is_aborted(header: BatchHeader, aborted: list[Any]) -> bool:
    return header.is_transactional and any(
        one.producer_id == header.producer_id and one.first_offset <= header.base_offset <= one.last_offset
        for one in aborted
    )


def _record(replica: Partition, header: BatchHeader, record: Record) -> JSON:
    is_append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    return {
        "topic": replica.topic,
        "partition": replica.index,
        "offset": record.offset,
        "timestamp_ms": record.timestamp,
        "timestamp_type": "LogAppendTime" if is_append_time else "CreateTime",
        "key": to_json(record.key),
        "value": to_json(record.value),
        "headers": [[name, to_json(value)] for name, value in record.headers],
        "leader_epoch": header.partition_leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "sequence": record.sequence,
        "is_transactional": header.is_transactional,
    }


# --- writing


async def produce(hosted: Hosted, topic: str, records: list[dict[str, JSON]]) -> JSON:
    """Append records, each {key, value, headers, timestamp_ms, partition}; all fields may be left out.

    Without `partition`, a record with a key goes where Kafka's own producer sends it, others in turn to each partition.
    A topic that does not exist is created if `auto.create.topics.enable` is set. Returns where each record is.
    """
    await _ensure_topic(hosted, topic)
    indexes = partitions_of(hosted, topic)
    now_ms = any_broker(hosted).clock.time_ms()
    by_partition: dict[int, list[tuple[int, Record]]] = {}
    for number, fields in enumerate(records):
        index, record = _given(fields, number, indexes, now_ms)
        by_partition.setdefault(index, []).append((number, record))
    placed: dict[int, JSON] = {}
    for index, given in by_partition.items():
        for start in range(0, len(given), BATCH_RECORDS_MAX):
            some = given[start : start + BATCH_RECORDS_MAX]
            base = await _append(hosted, topic, index, [record for _, record in some])
            for delta, (number, _) in enumerate(some):
                placed[number] = {"partition": index, "offset": base + delta}
    return [placed[number] for number in range(len(records))]


async def _ensure_topic(hosted: Hosted, topic: str) -> None:
    from kpybroker.wire.messages.metadata import MetadataRequest

    broker = any_broker(hosted)
    if topic in broker.metadata.snapshot.topics:
        return
    wanted = MetadataRequest.MetadataRequestTopic(name=topic)
    response = await ask(broker, ApiKey.METADATA, MetadataRequest(topics=[wanted], allow_auto_topic_creation=True))
    error = response.topics[0].error_code
    if error not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
        check(error, f"producing to {topic}")
    await wait_for_leaders(hosted, topic)


def _given(fields: dict[str, JSON], number: int, indexes: list[int], now_ms: int) -> tuple[int, Record]:
    what = f"record {number}"
    for name in fields:
        if name not in RECORD_FIELDS:
            raise ControlError(f"{what} has a field `{name}`", did_you_mean(name, RECORD_FIELDS))
    key = from_json(fields.get("key"), f"the key of {what}")
    value = from_json(fields.get("value"), f"the value of {what}")
    timestamp = _integer(fields.get("timestamp_ms"), f"the timestamp of {what}", now_ms)
    default = indexes[number % len(indexes)] if key is None else murmur2_partition(key, len(indexes))
    index = _integer(fields.get("partition"), f"the partition of {what}", default)
    if index not in indexes:
        raise ControlError(f"{what} is for partition {index}", f"the topic has {len(indexes)}: 0 to {indexes[-1]}")
    return index, Record(0, timestamp, key, value, tuple(_headers(fields.get("headers"), what)))


def _integer(value: JSON, what: str, default: int) -> int:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ControlError(f"{what} is {value!r}", "give an integer of 0 or more")
    return value


def _headers(given: JSON, what: str) -> Iterator[tuple[str, bytes | None]]:
    pairs = given.items() if isinstance(given, dict) else given or ()
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            raise ControlError(f"a header of {what} is {pair!r}", "give an object, or a list of [name, value]")
        yield pair[0], from_json(pair[1], f"header {pair[0]} of {what}")


async def _append(hosted: Hosted, topic: str, index: int, given: list[Record]) -> int:
    """The offset of the first record."""
    from kpybroker.wire.messages.produce import ProduceRequest

    broker, _ = leading(hosted, topic, index)
    batch = build_batch_of([record._replace(offset=delta) for delta, record in enumerate(given)], base_offset=0)
    data = ProduceRequest.PartitionProduceData(index=index, records=memoryview(batch))
    request = ProduceRequest(
        acks=-1,
        timeout_ms=PRODUCE_TIMEOUT_MS,
        topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[data])],
    )
    response = await ask(broker, ApiKey.PRODUCE, request)
    found = response.responses[0].partition_responses[0]
    check(found.error_code, f"producing to {topic}-{index}", found.error_message)
    offset: int = found.base_offset
    return offset


METHODS = methods(records, produce)
