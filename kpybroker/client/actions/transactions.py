"""`transaction list`, `describe`, `hanging` and `abort`.

confluent-kafka has none of the requests, so all of them go through `connect.wire`. There are two ways to abort:

- by transactional id: a producer that initializes with it makes the coordinator abort the open transaction, and fences
  the producer that had it;
- by partition and start offset, for a transaction that its coordinator has forgotten: a marker is written into that
  partition (KIP-664).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from kpybroker.client.actions.topic_changes import DRY_RUN
from kpybroker.client.connect.errors import CommandError, Failures, broker_error, check, note, usage
from kpybroker.client.connect.settings import Connection, Settings, load
from kpybroker.client.connect.wire import TRANSACTION, WireCluster
from kpybroker.client.show.cells import Column, Row, moment
from kpybroker.client.show.output import Output
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.describe_producers import DescribeProducersRequest
from kpybroker.wire.messages.describe_transactions import DescribeTransactionsRequest
from kpybroker.wire.messages.list_transactions import ListTransactionsRequest
from kpybroker.wire.messages.write_txn_markers import WriteTxnMarkersRequest

OPEN: Final = frozenset({"Ongoing", "PrepareAbort", "PrepareEpochFence"})
"""States in which an abort does something. (A prepared commit ends as a commit.)"""

LIST: Final = (
    Column("TRANSACTIONAL-ID", "transactional_id"),
    Column("STATE", "state"),
    Column("PRODUCER-ID", "producer_id"),
    Column("COORDINATOR", "coordinator"),
    Column("STARTED", lambda row: moment(row.get("start_time_ms")), wide=True),
    Column("TIMEOUT-MS", "timeout_ms", wide=True),
    Column("PARTITIONS", lambda row: places(row), wide=True),
)
DESCRIBE: Final = (
    Column("TRANSACTIONAL-ID", "transactional_id"),
    Column("STATE", "state"),
    Column("PRODUCER-ID", "producer_id"),
    Column("EPOCH", "producer_epoch"),
    Column("STARTED", lambda row: moment(row.get("start_time_ms"))),
    Column("TIMEOUT-MS", "timeout_ms", wide=True),
    Column("COORDINATOR", "coordinator", wide=True),
    Column("PARTITIONS", lambda row: places(row)),
)
ABORT: Final = (
    *DESCRIBE[:2],
    Column("PARTITIONS", lambda row: places(row)),
    Column("STATUS", "status", style=lambda row: "bold red" if row["error"] else ""),
)
HANGING: Final = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("START-OFFSET", "start_offset"),
    Column("PRODUCER-ID", "producer_id"),
    Column("EPOCH", "producer_epoch"),
    Column("COORDINATOR-EPOCH", "coordinator_epoch", wide=True),
    Column("LAST-WRITE", lambda row: moment(row["last_timestamp_ms"])),
)
MARKER: Final = (*HANGING, Column("STATUS", "status", style=lambda row: "bold red" if row["error"] else ""))


class AbortOptions(NamedTuple):
    """Transactional ids, or a place in a log."""

    ids: Sequence[str] = ()
    topic: str | None = None
    partition: int | None = None
    start_offset: int | None = None
    execute: bool = False


def places(row: Row) -> list[str]:
    """A transaction's partitions as `topic:partition`."""
    return [f"{one['topic']}:{one['partition']}" for one in row.get("partitions") or ()]


# --- look


def show_list(connection: Connection, states: Sequence[str], output: Output) -> int:
    """Print the transactional ids that the coordinators know."""
    failures = Failures()
    with WireCluster(load(connection)) as wire:
        rows = list_rows(wire, failures, states=list(states))
        if output.is_detailed:
            rows = [{**row, **described(wire, row["transactional_id"], failures)} for row in rows]
    output.rows(rows, LIST, empty="there is no such transaction")
    return failures.exit_code()


def show_describe(connection: Connection, ids: Sequence[str], output: Output) -> int:
    """Print the state of transactions."""
    failures = Failures()
    with WireCluster(load(connection)) as wire:
        rows = [row for one in dict.fromkeys(ids) if (row := described(wire, one, failures))]
    output.rows(rows, DESCRIBE)
    return failures.exit_code()


def list_rows(
    wire: WireCluster, failures: Failures, *, states: Sequence[str] = (), producer_ids: Sequence[int] = ()
) -> list[dict[str, Any]]:
    """The transactional ids that the coordinators know, by name."""
    request = ListTransactionsRequest(state_filters=list(states), producer_id_filters=list(producer_ids))
    rows = []
    for node_id in sorted(wire.nodes):
        try:
            response = wire.broker(node_id).request(ApiKey.LIST_TRANSACTIONS, request)
            check(response.error_code)
        except CommandError as error:
            failures.add(f"broker {node_id}", error)
            continue
        rows += [
            {
                "transactional_id": one.transactional_id,
                "state": one.transaction_state,
                "producer_id": one.producer_id,
                "coordinator": node_id,
            }
            for one in response.transaction_states
        ]
    return sorted(rows, key=lambda row: str(row["transactional_id"]))


def described(wire: WireCluster, transactional_id: str, failures: Failures) -> dict[str, Any]:
    """One transaction; empty if it is a failure."""
    try:
        coordinator = wire.coordinator(transactional_id, TRANSACTION)
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        (found,) = coordinator.request(ApiKey.DESCRIBE_TRANSACTIONS, request).transaction_states
        check(found.error_code)
    except CommandError as error:
        failures.add(f"transactional id {transactional_id}", error)
        return {}
    parts = sorted((topic.topic, partition) for topic in found.topics for partition in topic.partitions)
    return {
        "transactional_id": transactional_id,
        "state": found.transaction_state,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "coordinator": coordinator.node_id,
        "start_time_ms": found.transaction_start_time_ms if found.transaction_start_time_ms >= 0 else None,
        "timeout_ms": found.transaction_timeout_ms,
        "partitions": [{"topic": topic, "partition": partition} for topic, partition in parts],
    }


# --- hanging


def hanging(connection: Connection, names: Sequence[str], older_than_s: float, output: Output) -> int:
    """Print transactions that hold a partition's last stable offset back, and that no coordinator knows."""
    failures = Failures()
    with WireCluster(load(connection)) as wire:
        rows = hanging_rows(wire, list(names) or None, older_than_s, failures)
    output.rows(rows, HANGING)
    if output.is_table and not rows:
        note("no transaction hangs")
    return failures.exit_code()


def hanging_rows(
    wire: WireCluster, names: list[str] | None, older_than_s: float, failures: Failures
) -> list[dict[str, Any]]:
    """Open transactions without a write for so long that no coordinator knows; of these topics, or of all."""
    opened = open_producers(wire, names, failures)
    limit_ms = time.time() * 1000 - older_than_s * 1000
    suspects = [row for row in opened if row["last_timestamp_ms"] <= limit_ms]
    return [row for row in suspects if not _is_known(wire, row, failures)]


def open_producers(wire: WireCluster, names: list[str] | None, failures: Failures) -> list[dict[str, Any]]:
    """Producers with an open transaction in a partition, from its leader."""
    return [row for row in producers(wire, names, failures) if row["start_offset"] is not None]


def producers(wire: WireCluster, names: list[str] | None, failures: Failures) -> list[dict[str, Any]]:
    """Idempotent and transactional producers that leaders remember; `start_offset` is of an open transaction."""
    by_leader: dict[int, dict[str, list[int]]] = {}
    for topic in wire.topics(names):
        error = broker_error(topic.error_code)
        if error is not None:
            failures.add(f"topic {topic.name}", error)
        for partition in topic.partitions:
            if partition.leader_id >= 0:
                by_leader.setdefault(partition.leader_id, {}).setdefault(topic.name, []).append(
                    partition.partition_index
                )
    rows = []
    for leader, wanted in sorted(by_leader.items()):
        topics = [
            DescribeProducersRequest.TopicRequest(name=name, partition_indexes=sorted(numbers))
            for name, numbers in sorted(wanted.items())
        ]
        try:
            response = wire.broker(leader).request(ApiKey.DESCRIBE_PRODUCERS, DescribeProducersRequest(topics=topics))
        except CommandError as error:
            failures.add(f"broker {leader}", error)
            continue
        rows += _producer_rows(leader, response, failures)
    return rows


def _producer_rows(leader: int, response: Any, failures: Failures) -> list[dict[str, Any]]:
    rows = []
    for topic in response.topics:
        for partition in topic.partitions:
            error = broker_error(partition.error_code, partition.error_message)
            if error is not None:
                failures.add(f"{topic.name}-{partition.partition_index}", error)
            rows += [
                {
                    "topic": topic.name,
                    "partition": partition.partition_index,
                    "start_offset": start if (start := producer.current_txn_start_offset) >= 0 else None,
                    "producer_id": producer.producer_id,
                    "producer_epoch": producer.producer_epoch,
                    "last_sequence": producer.last_sequence,
                    "coordinator_epoch": producer.coordinator_epoch,
                    "last_timestamp_ms": producer.last_timestamp,
                    "leader": leader,
                }
                for producer in partition.active_producers
            ]
    return rows


def _is_known(wire: WireCluster, row: Row, failures: Failures) -> bool:
    """Whether a coordinator has this producer's transaction open with this partition in it."""
    place = {"topic": row["topic"], "partition": row["partition"]}
    for one in list_rows(wire, failures, producer_ids=[row["producer_id"]]):
        found = described(wire, one["transactional_id"], failures)
        if not found or (place in found["partitions"] and found["producer_epoch"] <= row["producer_epoch"] + 1):
            return True  # what cannot be described is no proof either
    return False


# --- abort


def abort(connection: Connection, options: AbortOptions, output: Output) -> int:
    """Abort transactions, or show which."""
    place = (options.topic, options.partition, options.start_offset)
    if bool(options.ids) == any(one is not None for one in place) or (not options.ids and None in place):
        fix = "kpybroker transaction abort --help has an example of each"
        raise usage("name transactional ids, or --topic, --partition and --start-offset", fix)
    settings = load(connection)
    failures = Failures()
    with WireCluster(settings) as wire:
        if options.ids:
            rows = abort_ids(wire, settings, options, failures)
            output.rows(rows, ABORT)
        else:
            output.rows(abort_hanging(wire, options, failures), MARKER)
    if not options.execute:
        note(DRY_RUN)
    return failures.exit_code()


def abort_ids(wire: WireCluster, settings: Settings, options: AbortOptions, failures: Failures) -> list[dict[str, Any]]:
    """Abort transactions by their ids, or show which: a row for each."""
    rows = []
    for one in dict.fromkeys(options.ids):
        found = described(wire, one, failures)
        if not found:
            continue
        row = {**found, "status": "would be aborted", "error": None}
        if found["state"] not in OPEN:
            row["status"] = "nothing to abort"
        elif options.execute:
            try:
                fence(settings, one)
                row["status"] = "aborted"
            except CommandError as error:
                row |= {"status": "failed", "error": failures.add(f"transactional id {one}", error)}
        rows.append(row)
    return rows


def fence(settings: Settings, transactional_id: str) -> None:
    """Initialize as the transactional id's producer. Raises CommandError."""
    from confluent_kafka import KafkaException, Producer

    from kpybroker.client.connect.admin import ErrorWatch, make
    from kpybroker.client.connect.errors import kafka_error

    producer = make(Producer, settings, ErrorWatch(), transactional_id=transactional_id)
    try:
        producer.init_transactions(settings.timeout_s)
    except KafkaException as error:
        raise kafka_error(error) from None


def abort_hanging(wire: WireCluster, options: AbortOptions, failures: Failures) -> list[dict[str, Any]]:
    """Abort the transaction that begins at a place of a log, or show it: a row for each."""
    assert options.topic is not None
    rows = [
        row
        for row in open_producers(wire, [options.topic], failures)
        if (row["partition"], row["start_offset"]) == (options.partition, options.start_offset)
    ]
    if not rows and not failures.count:
        where = f"{options.topic}-{options.partition}"
        fix = "kpybroker transaction hanging lists those that hang"
        failures.add(where, CommandError(f"no open transaction begins at offset {options.start_offset}", fix))
    for row in rows:
        row |= {"status": "would be aborted", "error": None}
        if options.execute:
            error = _write_marker(wire, row)
            row["status"] = "failed" if error else "aborted"
            row["error"] = failures.add(f"{row['topic']}-{row['partition']}", error) if error else None
    return rows


def _write_marker(wire: WireCluster, row: Row) -> CommandError | None:
    topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=row["topic"], partition_indexes=[row["partition"]])
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=row["producer_id"],
        producer_epoch=row["producer_epoch"],
        transaction_result=False,
        topics=[topic],
        coordinator_epoch=max(row["coordinator_epoch"], 0),
    )
    request = WriteTxnMarkersRequest(markers=[marker])
    response = wire.broker(row["leader"]).request(ApiKey.WRITE_TXN_MARKERS, request)
    return next(_marker_errors(response.markers), None)


def _marker_errors(markers: Iterable[Any]) -> Iterator[CommandError]:
    for marker in markers:
        for topic in marker.topics:
            for partition in topic.partitions:
                error = broker_error(partition.error_code)
                if error is not None:
                    yield error
