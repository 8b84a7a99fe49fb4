"""`verify-replicas`: read the log of every replica up to the high watermark, and compare.

As Kafka's ReplicaVerificationTool it fetches from followers too, as a debugging consumer (replica id -2), but it ends:
at the high watermark as it is at the start. Batches must be equal: offsets, and the checksum of their bytes, which is
computed here. In a compacted topic each replica is cleaned in its own time, so there records are compared, and only
those that all replicas still have.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kpybroker.client.actions.partitions import Partition, Topic, bounds, matching, topics
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures, check, note
from kpybroker.client.connect.settings import Connection, load
from kpybroker.client.connect.wire import WireBroker, WireCluster
from kpybroker.client.records.offsets import Bounds
from kpybroker.client.show.cells import Column, Row
from kpybroker.client.show.output import Output
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.describe_configs import DescribeConfigsRequest
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.records.batch import computed_crc, iter_batches
from kpybroker.wire.records.record import iter_records

DEBUGGING_CONSUMER: Final = -2
BY_NAME: Final = 12
"""The last version of Fetch that names topics."""
FETCH_BYTES: Final = 1 << 20
WAIT_MS: Final = 500
INTERRUPTED: Final = 130
TOPIC: Final = 2
"""The resource type of DescribeConfigs."""
FIX: Final = (
    "compare the files: kpybroker log dump; a replica that is wrong is deleted and fetched again by reassigning it"
)
COLUMNS: Final = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("REPLICAS", "replicas"),
    Column("FROM", "from"),
    Column("TO", "to"),
    Column("STATUS", "status", style=lambda row: "bold red" if row["error"] else ""),
)


class Part(NamedTuple):
    """A batch, or a record of a compacted topic: its offsets, and what must be equal."""

    first: int
    last: int
    contents: object


class Chunk(NamedTuple):
    """What a replica returned: its parts, and the offset after them."""

    parts: list[Part]
    next_offset: int


class Task(NamedTuple):
    """A partition to compare, up to `end`."""

    partition: Partition
    bounds: Bounds
    is_compacted: bool
    timeout_s: float


def verify(connection: Connection, patterns: Sequence[str], output: Output) -> int:
    """Print a row for each partition of the topics that a pattern matches; exit code 1 unless all are equal."""
    settings = load(connection)
    cluster = Cluster(settings)
    failures = Failures()
    names = matching(cluster.metadata().topics, patterns)
    if not names:
        raise CommandError(f"no topic matches {' or '.join(patterns)}", "kpybroker topic list shows the topics")
    found = topics(cluster, names, failures)
    edges = bounds(cluster, [one.place for topic in found for one in topic.partitions if one.leader is not None])
    partitions = [one for topic in found for one in topic.partitions]
    rows: list[Row] = []
    is_whole = True
    with WireCluster(settings) as wire:
        try:
            compacted = compacted_topics(wire, found)
            for one in partitions:
                known = edges.get(one.place, CommandError("it has no leader", "kpybroker cluster health shows why"))
                rows.append(_row(wire, one, known, settings.timeout_s, one.topic in compacted, failures))
        except KeyboardInterrupt:  # it changes nothing, so it may end anywhere
            is_whole = False
    output.rows(rows, COLUMNS)
    code = failures.exit_code()
    if is_whole:
        return code
    note(f"interrupted: {len(rows)} of {len(partitions)} partitions were compared")
    return INTERRUPTED


def _row(
    wire: WireCluster,
    partition: Partition,
    known: Bounds | CommandError,
    timeout_s: float,
    is_compacted: bool,
    failures: Failures,
) -> dict[str, Any]:
    """What is said of a partition."""
    row: dict[str, Any] = {"topic": partition.topic, "partition": partition.number, "replicas": partition.replicas}
    try:
        if isinstance(known, CommandError):
            raise known
        row |= {"from": known.start, "to": known.end}
        compare(wire, Task(partition, known, is_compacted, timeout_s))
    except CommandError as error:
        reported = failures.add(f"{partition.topic}-{partition.number}", error)
        return {"from": None, "to": None, **row, "status": "failed", "error": reported}
    return row | {"status": "equal", "error": None}


def compacted_topics(wire: WireCluster, found: Sequence[Topic]) -> set[str]:
    """Those whose cleanup.policy has compact. Raises CommandError."""
    resource = DescribeConfigsRequest.DescribeConfigsResource
    wanted = [
        resource(resource_type=TOPIC, resource_name=topic.name, configuration_keys=["cleanup.policy"])
        for topic in found
    ]
    response = wire.any().request(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=wanted))
    names = set()
    for result in response.results:
        check(result.error_code, result.error_message)
        if any("compact" in (entry.value or "") for entry in result.configs):
            names.add(result.resource_name)
    return names


def compare(wire: WireCluster, task: Task) -> None:
    """Raises CommandError with the first offset at which replicas differ, or with the replica that lags."""
    brokers = {node_id: wire.broker(node_id) for node_id in task.partition.replicas}
    position = task.bounds.start
    progress = time.monotonic()
    while position < task.bounds.end:
        chunks = {}
        for node_id, broker in brokers.items():
            chunks[node_id], start = fetch(broker, task, position)
            if start > position:  # retention was quicker
                position = start
                break
        else:
            end = min(chunk.next_offset for chunk in chunks.values())
            if end > position:
                differs(chunks, end, is_compacted=task.is_compacted)
                position, progress = end, time.monotonic()
            elif time.monotonic() - progress > task.timeout_s:
                behind = ", ".join(str(one) for one, chunk in chunks.items() if chunk.next_offset <= position)
                raise CommandError(
                    f"replica {behind} has nothing at offset {position}, and the high watermark is {task.bounds.end}",
                    "kpybroker cluster health shows replicas that are not in sync",
                )


def fetch(broker: WireBroker, task: Task, position: int) -> tuple[Chunk, int]:
    """A replica's batches from an offset, and the first offset that it has. Raises CommandError."""
    wanted = FetchRequest.FetchPartition(
        partition=task.partition.number, fetch_offset=position, partition_max_bytes=FETCH_BYTES
    )
    request = FetchRequest(
        replica_id=DEBUGGING_CONSUMER,
        max_wait_ms=WAIT_MS,
        min_bytes=1,
        max_bytes=FETCH_BYTES,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic=task.partition.topic, partitions=[wanted])],
    )
    version = min(BY_NAME, broker.version_of(ApiKey.FETCH))
    response = broker.request_in(ApiKey.FETCH, request, version)
    check(response.error_code)
    (partition,) = response.responses[0].partitions
    if partition.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and partition.log_start_offset > position:
        return Chunk([], position), partition.log_start_offset
    try:
        check(partition.error_code)
        parts = list(parts_of(bytes(partition.records or b""), is_compacted=task.is_compacted))
    except CommandError as error:
        raise CommandError(f"replica {broker.node_id}: {error.cause}", error.fix) from None
    except KafkaError as error:
        raise CommandError(f"replica {broker.node_id} after offset {position}: {error}", FIX) from None
    batches = [header.next_offset for _, header in iter_batches(bytes(partition.records or b""))]
    return Chunk(parts, max([position, *batches])), position


def parts_of(data: bytes, *, is_compacted: bool) -> Iterator[Part]:
    """What must be equal, of whole batches. Raises KafkaError where a batch is damaged."""
    for at, header in iter_batches(data):
        computed = computed_crc(data, at, header)
        if computed != header.crc:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"the batch at offset {header.base_offset} is corrupt (stored crc {header.crc}, computed {computed})",
            )
        if not is_compacted:
            yield Part(header.base_offset, header.last_offset, computed)
            continue
        for record in iter_records(data, header, at):
            contents = (record.key, record.value, record.timestamp, record.headers, record.headers_left_out)
            yield Part(record.offset, record.offset, contents)


def differs(chunks: Mapping[int, Chunk], end: int, *, is_compacted: bool) -> None:
    """Raises CommandError with the first part below `end` that replicas do not share."""
    by_replica = {one: {part.first: part for part in chunk.parts if part.last < end} for one, chunk in chunks.items()}
    (first, reference), *others = by_replica.items()
    for node_id, parts in others:
        for offset in sorted({*reference, *parts}):
            mine, theirs = reference.get(offset), parts.get(offset)
            if mine == theirs or (is_compacted and (mine is None or theirs is None)):
                continue
            if mine is None or theirs is None:
                lacking = first if mine is None else node_id
                raise CommandError(f"replica {lacking} has no batch that begins at offset {offset}", FIX)
            raise CommandError(f"replicas {first} and {node_id} differ at offset {offset}", FIX)
