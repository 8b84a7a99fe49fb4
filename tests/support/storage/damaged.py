"""A broker's directory with some of everything in it, damage to its files, and what may be seen of that afterwards.

The judge reads as Java's consumer does, which checks each batch's CRC, and compares with what was written.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.lifecycle.errors import StartupError
from kpybroker.broker.lifecycle.open_tree import EMBEDDED_TREE_FILE
from kpybroker.config.broker import BrokerConfig
from kpybroker.storage.disk import names
from kpybroker.storage.disk.checkpoints import decode_leader_epochs, decode_offsets
from kpybroker.storage.disk.errors import CorruptCheckpointError
from kpybroker.storage.log.append import ProducedBatches
from kpybroker.storage.segments.txn_index import ENTRY
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.delete_records import DeleteRecordsRequest
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.list_offsets import ListOffsetsRequest
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest
from kpybroker.wire.messages.offset_fetch import OffsetFetchRequest
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.records.batch import iter_batches, verify_crc
from kpybroker.wire.records.control import ControlRecordType, EndTransactionMarker
from kpybroker.wire.records.record import iter_records
from tests.support.brokers.running_broker import ask, create_topic, settings
from tests.support.network.memory_transport import MemoryTransport
from tests.support.storage.batches import batch

KINDS = (
    names.LOG_SUFFIX,
    names.INDEX_SUFFIX,
    names.TIME_INDEX_SUFFIX,
    names.TXN_INDEX_SUFFIX,
    names.SNAPSHOT_SUFFIX,
    names.LEADER_EPOCH_CHECKPOINT,
    names.PARTITION_METADATA,
    names.RECOVERY_POINT_CHECKPOINT,
    names.LOG_START_OFFSET_CHECKPOINT,
    names.HIGH_WATERMARK_CHECKPOINT,
    names.CLEANER_OFFSET_CHECKPOINT,
    names.META_PROPERTIES,
    names.CLEAN_SHUTDOWN,
    EMBEDDED_TREE_FILE,
)
TOPIC, PARTITIONS, GROUP, COMMITTED = "t", 2, "readers", 17
BATCHES, DELETED_BELOW, ABORTS_EVERY = 30, 7, 6
FIRST_MS = 1_700_000_000_000
BASE_OFFSET_BYTES = 8  # of a batch; outside its CRC, as in Kafka's format
REFUSALS = frozenset(
    (
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.INVALID_RECORD,
    )
)

Content = dict[int, tuple[bytes | None, int]]
"""Value and timestamp by offset."""


@dataclass(slots=True)
class Seen:
    """What a restart on some directory showed."""

    refusal: StartupError | None = None
    offline: list[str] = field(default_factory=list)
    content: dict[int, Content] = field(default_factory=dict)
    aborted: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    errors: list[ErrorCode] = field(default_factory=list)
    bad_crc: int = 0
    committed: int | None = None
    log: list[logging.LogRecord] = field(default_factory=list)

    @property
    def report(self) -> str:
        """Everything that an operator can read: the serious log lines, and why there was no start."""
        lines = [record.getMessage() for record in self.log if record.levelno >= logging.WARNING]
        return "\n".join([*lines, "" if self.refusal is None else self.refusal.cause])


def broker_on(directory: Path) -> contextlib.AbstractAsyncContextManager[Broker]:
    keys = settings(
        directory,
        log_segment_bytes="1200",
        log_index_interval_bytes="150",
        offsets_topic_num_partitions="1",
        transaction_partition_verification_enable="false",
        log_cleaner_enable="false",
    )
    return Broker.open(BrokerConfig(keys), transport=MemoryTransport(), seed=1)


async def make(directory: Path, killed: Path) -> None:
    """Fill `directory` and stop in order; `killed` is how it was shortly before that."""
    async with broker_on(directory) as broker:
        await create_topic(broker, TOPIC, PARTITIONS)
        await _fill(broker)
        deleted = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=DELETED_BELOW)
        topic = DeleteRecordsRequest.DeleteRecordsTopic(name=TOPIC, partitions=[deleted])
        await ask(broker, DeleteRecordsRequest(topics=[topic], timeout_ms=1000), 2)
        await _commit(broker)
        for log in broker.logs:
            log.flush()
        broker.logs.recovery_point_checkpoint()()
        broker.logs.log_start_offset_checkpoint()()
        broker.logs.high_watermark_checkpoint()()
        (directory / names.CLEANER_OFFSET_CHECKPOINT).write_bytes(f"0\n1\n{TOPIC} 0 0\n".encode())
        shutil.copytree(directory, killed)


async def _fill(broker: Broker) -> None:
    for number in range(BATCHES):
        for index in range(PARTITIONS):
            when = FIRST_MS + number
            values = [b"%d of partition %d" % (2 * number + at, index) for at in (0, 1)]
            options = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 2 * number}
            assert not await produce(broker, index, batch(*values, timestamp=when, **options))
            if index == 1 and number % ABORTS_EVERY == 0:
                _abort(broker, index, number // ABORTS_EVERY, when)


def _abort(broker: Broker, index: int, sequence: int, when: int) -> None:
    options = {"producer_id": 2, "producer_epoch": 0, "base_sequence": sequence, "is_transactional": True}
    partition = broker.replicas.partition(TOPIC, index)
    assert partition is not None
    partition.append(ProducedBatches(batch(b"aborted", timestamp=when, **options), when, 9))
    partition.append_marker(EndTransactionMarker(ControlRecordType.ABORT, 0, when), 2, 0)


async def produce(broker: Broker, index: int, records: bytearray) -> ErrorCode:
    data = ProduceRequest.PartitionProduceData(index=index, records=bytes(records))
    topic = ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[data])
    response = await ask(broker, ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[topic]), 9)
    return ErrorCode(response.responses[0].partition_responses[0].error_code)


async def _commit(broker: Broker) -> None:
    await ask(broker, FindCoordinatorRequest(key=GROUP), 2)
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=COMMITTED)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
    request = OffsetCommitRequest(group_id=GROUP, topics=[topic])
    with trio.fail_after(60):  # until there is a coordinator
        while True:
            if not (await ask(broker, request, 8)).topics[0].partitions[0].error_code:
                return
            await trio.sleep(0.01)


async def look(directory: Path, restart_s_max: float = 60) -> Seen:
    """Start a broker there, read everything, and write a record more to each partition."""
    seen = Seen()
    with _log_kept(seen.log), trio.fail_after(restart_s_max):
        try:
            async with broker_on(directory) as broker:
                seen.offline = list(broker.logs.dirs.offline)
                for index in range(PARTITIONS):
                    await _read(broker, index, seen)
                await _read_committed_offset(broker, seen)
                for index in range(PARTITIONS):
                    code = await produce(broker, index, batch(b"later", timestamp=FIRST_MS + BATCHES))
                    if code:
                        seen.errors.append(code)
                if broker.fatal is not None:
                    seen.refusal = broker.fatal
        except StartupError as error:
            seen.refusal = error
    return seen


@contextlib.contextmanager
def _log_kept(into: list[logging.LogRecord]) -> Iterator[None]:
    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            into.append(record)

    keeper = Keeper()
    logging.getLogger().addHandler(keeper)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(keeper)


async def _offset(broker: Broker, index: int, timestamp: int, seen: Seen) -> int:
    partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=timestamp)
    topic = ListOffsetsRequest.ListOffsetsTopic(name=TOPIC, partitions=[partition])
    response = await ask(broker, ListOffsetsRequest(replica_id=-1, topics=[topic]), 7)
    found = response.topics[0].partitions[0]
    if found.error_code:
        seen.errors.append(ErrorCode(found.error_code))
        return -1
    offset: int = found.offset
    return offset


async def _read(broker: Broker, index: int, seen: Seen) -> None:
    content: Content = {}
    offset, end = [await _offset(broker, index, special, seen) for special in (-2, -1)]
    while 0 <= offset < end:
        partition = FetchRequest.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=3000)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=3000,
            isolation_level=1,
            topics=[FetchRequest.FetchTopic(topic=TOPIC, partitions=[partition])],
        )
        data = (await ask(broker, request, 12)).responses[0].partitions[0]
        if data.error_code:
            seen.errors.append(ErrorCode(data.error_code))
            break
        for transaction in data.aborted_transactions or ():
            seen.aborted.setdefault(index, []).append((transaction.producer_id, transaction.first_offset))
        before = offset
        try:
            offset = _take(bytes(data.records or b""), offset, content)
        except KafkaError:
            seen.bad_crc += 1
            break
        if offset == before:
            break
    seen.content[index] = content


def _take(records: bytes, offset: int, content: Content) -> int:
    """The next offset."""
    for position, header in iter_batches(records):
        verify_crc(records, position, header)
        if not header.is_control:
            for record in iter_records(records, header, position):
                if record.offset >= offset:
                    content[record.offset] = (record.value, record.timestamp)
        offset = max(offset, header.next_offset)
    return offset


async def _read_committed_offset(broker: Broker, seen: Seen) -> None:
    topic = OffsetFetchRequest.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])
    request = OffsetFetchRequest(group_id=GROUP, topics=[topic])
    while True:
        response = await ask(broker, request, 7)
        if response.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            break
        await trio.sleep(0.005)
    if response.error_code:
        seen.errors.append(ErrorCode(response.error_code))
    else:
        seen.committed = response.topics[0].partitions[0].committed_offset


@dataclass(frozen=True, slots=True)
class Damage:
    """One file, changed.

    `is_of_an_offset`: a batch says now that its records have other offsets, which its CRC does not cover.
    `is_believable`: nothing is wrong with what it says, such as another digit in a text, or an entry less.
    """

    path: Path
    description: str
    is_of_an_offset: bool = False
    is_believable: bool = False


def files_of(directory: Path, kind: str) -> list[Path]:
    return sorted(path for path in directory.rglob(f"*{kind}") if path.is_file() and path.stat().st_size)


def damage(directory: Path, kind: str, chance: Random, *, flip: bool) -> Damage:
    """Flip a bit of a file of that kind, or cut it."""
    path = chance.choice(files_of(directory, kind))
    data = bytearray(path.read_bytes())
    position = chance.randrange(len(data))
    is_of_an_offset = False
    if flip:
        is_of_an_offset = kind == names.LOG_SUFFIX and any(
            0 <= position - start < BASE_OFFSET_BYTES for start, _ in iter_batches(data)
        )
        bit = chance.randrange(8)
        data[position] ^= 1 << bit
        what = f"bit {bit} of byte {position} flipped"
    else:
        del data[position:]
        what = f"cut to {position} bytes"
    path.write_bytes(data)
    is_believable = _is_believable(kind, bytes(data), was_cut=not flip)
    return Damage(path, f"{path.relative_to(directory)}: {what}", is_of_an_offset, is_believable)


def _is_believable(kind: str, data: bytes, *, was_cut: bool) -> bool:
    if kind == names.TXN_INDEX_SUFFIX:
        return was_cut and len(data) % ENTRY.size == 0
    decode = {
        names.LEADER_EPOCH_CHECKPOINT: decode_leader_epochs,
        names.RECOVERY_POINT_CHECKPOINT: decode_offsets,
        names.LOG_START_OFFSET_CHECKPOINT: decode_offsets,
        names.HIGH_WATERMARK_CHECKPOINT: decode_offsets,
        names.CLEANER_OFFSET_CHECKPOINT: decode_offsets,
    }.get(kind)
    if decode is None:
        return False
    try:
        decode(data, kind)
    except CorruptCheckpointError:
        return False
    return True
