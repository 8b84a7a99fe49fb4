"""`partition elect`: the preferred leader, or without any replica in sync another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kpybroker.client.actions.partitions import Partition, Place
from kpybroker.client.actions.placement import asking
from kpybroker.client.connect.errors import CommandError, Failures, broker_error, check, note, usage
from kpybroker.client.connect.settings import Connection, load
from kpybroker.client.connect.wire import WireCluster
from kpybroker.client.show.cells import Column
from kpybroker.client.show.output import Output
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.elect_leaders import ElectLeadersRequest

PREFERRED, UNCLEAN = 0, 1
DRY_RUN: Final = "dry run: nothing was changed; add --execute to do it"
ELECTIONS: Final = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("LEADER", "leader"),
    Column("REPLICAS", "replicas"),
    Column("ISR", "isr"),
    Column("STATUS", "status", style=lambda row: "bold red" if row["error"] else ""),
)


def elect(connection: Connection, places: Sequence[str], unclean: bool, execute: bool, output: Output) -> int:
    """Elect leaders of partitions that need one, or show which need one."""
    if unclean and not places:
        raise usage("an unclean election loses records, and no topic is named", "name TOPIC or TOPIC:0,2")
    failures = Failures()
    with WireCluster(load(connection)) as wire:
        rows = election_rows(wire, places, unclean)
        if execute:
            elect_rows(wire, rows, unclean, failures)
        kind = "has no leader" if unclean else "is led by another replica than its first"
        output.rows(rows, ELECTIONS, empty=f"no such partition {kind}")
    if not execute and rows:
        note(DRY_RUN)
    return failures.exit_code()


def election_rows(wire: WireCluster, places: Sequence[str], unclean: bool) -> list[dict[str, Any]]:
    """The partitions of which a leader would be elected. Raises CommandError."""
    return [_row(one) for one in asking.partitions(wire, places).values() if needs_election(one, unclean)]


def elect_rows(wire: WireCluster, rows: Sequence[dict[str, Any]], unclean: bool, failures: Failures) -> None:
    """Elect the leaders of these partitions, and set each row's status. Raises CommandError."""
    if not rows:
        return
    by_place = {(row["topic"], row["partition"]): row for row in rows}
    errors = _ask(wire, list(by_place), UNCLEAN if unclean else PREFERRED)
    after = asking.partitions(wire, sorted({topic for topic, _ in by_place}))
    for place, row in by_place.items():
        _settle(place, row, errors.get(place), after, failures)


def needs_election(partition: Partition, unclean: bool) -> bool:
    """Whether it has no leader; or, for a preferred one, another than its first replica."""
    if unclean:
        return partition.leader is None
    return bool(partition.replicas) and partition.leader != partition.replicas[0]


def _row(partition: Partition) -> dict[str, Any]:
    return {
        "topic": partition.topic,
        "partition": partition.number,
        "leader": partition.leader,
        "replicas": partition.replicas,
        "isr": partition.isr,
        "status": "would be elected",
        "error": None,
    }


def _ask(wire: WireCluster, places: Sequence[Place], kind: int) -> dict[Place, CommandError | None]:
    topics = [
        ElectLeadersRequest.TopicPartitions(topic=topic, partitions=numbers)
        for topic, numbers in asking.by_topic(places).items()
    ]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=topics, timeout_ms=int(wire.timeout_s * 1000))
    response = asking.controller(wire).request(ApiKey.ELECT_LEADERS, request)
    check(response.error_code)
    return {
        (topic.topic, one.partition_id): None
        if one.error_code == ErrorCode.ELECTION_NOT_NEEDED
        else broker_error(one.error_code, one.error_message)
        for topic in response.replica_election_results
        for one in topic.partition_result
    }


def _settle(
    place: Place,
    row: dict[str, Any],
    error: CommandError | None,
    after: Mapping[Place, Partition],
    failures: Failures,
) -> None:
    row["status"] = "failed" if error else "elected"
    if error is not None:
        row["error"] = failures.add(f"{place[0]}-{place[1]}", error)
    elif place in after:
        row["leader"], row["isr"] = after[place].leader, after[place].isr
