"""`topic create`, `alter`, `delete` and `trim`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import TopicPartition
from confluent_kafka.admin import ConfigResource, NewPartitions, NewTopic

from kpybroker.client.actions.partitions import (
    Place,
    Topic,
    bounds,
    parse_partitions,
    time_lookup,
    topics,
)
from kpybroker.client.actions.producing.room import own_settings
from kpybroker.client.actions.resources import Change, resource
from kpybroker.client.actions.topics import expanded
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures, note, usage
from kpybroker.client.connect.settings import Connection, load
from kpybroker.client.records.offsets import FORMS, BadOffset, Bounds, Position, parse_position, resolve, within
from kpybroker.client.show.cells import Column, Row
from kpybroker.client.show.output import Output

DRY_RUN = "dry run: nothing was changed; add --execute to do it"

STATUS = (Column("TOPIC", "topic"), Column("STATUS", "status", style=lambda row: "bold red" if row["error"] else ""))
TRIM = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("FROM", "from"),
    Column("TO", "to"),
    Column("RECORDS", "records"),
    Column("STATUS", "status", style=lambda row: "bold red" if row["error"] else ""),
)


class NewTopicOptions(NamedTuple):
    """What `topic create` is asked for. None leaves the choice to the broker."""

    partitions: int | None = None
    replicas: int | None = None
    configs: Sequence[str] = ()
    assignment: str | None = None
    if_not_exists: bool = False
    dry_run: bool = False
    like: str | None = None


def create(connection: Connection, names: Sequence[str], options: NewTopicOptions, output: Output) -> int:
    """Create the topics."""
    configs = _configs(options.configs)
    assignment = parse_assignment(options.assignment)
    others = (options.partitions, options.replicas, options.like)
    if assignment is not None and any(other is not None for other in others):
        raise usage("--replica-assignment says how many partitions and replicas there are", "leave the others out")
    cluster, failures = Cluster(load(connection)), Failures()
    if options.like is not None:
        options, configs = _as(cluster, options.like, options, configs)
    wanted = [_new_topic(name, options, configs, assignment) for name in names]
    output.rows(create_rows(cluster, wanted, options, failures), STATUS)
    return failures.exit_code()


def new_topic(name: str, options: NewTopicOptions) -> Any:
    """confluent-kafka's form of a topic. Raises CommandError for options that cannot be used."""
    return _new_topic(name, options, _configs(options.configs), parse_assignment(options.assignment))


def create_rows(cluster: Cluster, wanted: Sequence[Any], options: NewTopicOptions, failures: Failures) -> list[Row]:
    """Create the topics, or have them checked for a dry run: what became of each."""
    rows = []
    done = "would be created" if options.dry_run else "created"
    created = cluster.results(cluster.admin.create_topics(wanted, validate_only=options.dry_run, **cluster.timeouts))
    for name, _, error in created:
        if error is not None and options.if_not_exists and "TOPIC_ALREADY_EXISTS" in error.cause:
            rows.append(status_row(name, "exists"))
        else:
            rows.append(status_row(name, done, failures, error))
    return rows


def _as(
    cluster: Cluster, source: str, options: NewTopicOptions, configs: Mapping[str, str]
) -> tuple[NewTopicOptions, dict[str, str]]:
    """The options with what they leave open as another topic has it. Raises CommandError, or SystemExit."""
    failures = Failures()
    found = topics(cluster, [source], failures)
    if failures.exit_code():
        raise SystemExit(1)
    (topic,) = found
    asked = ConfigResource(ConfigResource.Type.TOPIC, source)
    described = cluster.admin.describe_configs([asked], **cluster.timeout)
    own = own_settings(cluster.result(described[asked]), everything=True)
    made = options._replace(
        partitions=options.partitions or len(topic.partitions),
        replicas=options.replicas or max(len(partition.replicas) for partition in topic.partitions),
    )
    return made, {**own, **configs}


def _new_topic(
    name: str, options: NewTopicOptions, configs: Mapping[str, str], assignment: list[list[int]] | None
) -> Any:
    if assignment is not None:
        return NewTopic(name, len(assignment), replica_assignment=assignment, config=dict(configs))
    return NewTopic(name, options.partitions or -1, options.replicas or -1, config=dict(configs))


def parse_assignment(text: str | None) -> list[list[int]] | None:
    """`0:1,1:2` as Kafka's tools have it: the brokers of each partition. Raises CommandError."""
    if text is None:
        return None
    try:
        return [[int(broker) for broker in part.split(":")] for part in text.split(",")]
    except ValueError:
        raise usage(f"{text!r} assigns no replicas", "write the brokers of each partition: 0:1,1:2") from None


def _configs(texts: Iterable[str]) -> dict[str, str]:
    configs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise usage(f"{text!r} has no key and value", "write -c KEY=VALUE, as in -c retention.ms=86400000")
        configs[key.strip()] = value.strip()
    return configs


def status_row(topic: str, done: str, failures: Failures | None = None, error: CommandError | None = None) -> Row:
    """What became of a topic; a failure is reported."""
    if failures is None or error is None:
        return {"topic": topic, "status": done, "error": None}
    return {"topic": topic, "status": "failed", "error": failures.add(f"topic {topic}", error)}


def alter(
    connection: Connection, names: Sequence[str], partitions: int | None, changes: Sequence[Change], output: Output
) -> int:
    """Change settings, and add partitions."""
    if partitions is None and not changes:
        raise usage("there is nothing to change", "name --partitions N, --set KEY=VALUE or --delete KEY")
    cluster, failures = Cluster(load(connection)), Failures()
    output.rows(alter_rows(cluster, expanded(cluster, names), partitions, changes, failures), STATUS)
    return failures.exit_code()


def alter_rows(
    cluster: Cluster, chosen: Sequence[str], partitions: int | None, changes: Sequence[Change], failures: Failures
) -> list[Row]:
    """Change the settings, then add partitions: what became of each topic."""
    failed: dict[str, Row] = {}
    if changes:
        resources = [resource(ConfigResource.Type.TOPIC, name, changes) for name in chosen]
        altered = cluster.admin.incremental_alter_configs(resources, **cluster.timeout)
        for one, _, error in cluster.results(altered):
            if error is not None:
                failed[one.name] = status_row(one.name, "", failures, error)
    more = [name for name in chosen if name not in failed]
    if partitions is not None and more:
        wanted = [NewPartitions(name, partitions) for name in more]
        for name, _, error in cluster.results(cluster.admin.create_partitions(wanted, **cluster.timeouts)):
            if error is not None:
                failed[name] = status_row(name, "", failures, error)
    return [failed.get(name, status_row(name, "altered")) for name in chosen]


def delete(connection: Connection, names: Sequence[str], execute: bool, output: Output) -> int:
    """Delete the topics, or show which ones would be deleted."""
    cluster = Cluster(load(connection))
    failures = Failures()
    chosen = [topic.name for topic in topics(cluster, expanded(cluster, names), failures)]
    if not execute:
        output.rows([status_row(name, "would be deleted") for name in chosen], STATUS)
        note(DRY_RUN)
        return failures.exit_code()
    output.rows(delete_rows(cluster, chosen, failures), STATUS)
    return failures.exit_code()


def delete_rows(cluster: Cluster, names: Sequence[str], failures: Failures) -> list[Row]:
    """Delete the topics: what became of each."""
    if not names:
        return []
    deleted = cluster.results(cluster.admin.delete_topics(list(names), **cluster.timeouts))
    return [status_row(name, "deleted", failures, error) for name, _, error in deleted]


# --- trim


class TrimOptions(NamedTuple):
    """`to` is a position as `topic consume -o` has it."""

    to: str
    partitions: Sequence[str] = ()
    execute: bool = False


def trim(connection: Connection, names: Sequence[str], options: TrimOptions, output: Output) -> int:
    """Delete the records below an offset of each partition, or show which."""
    position = trim_position(options.to)
    cluster = Cluster(load(connection))
    failures = Failures()
    chosen = _places(topics(cluster, expanded(cluster, names), failures), parse_partitions(options.partitions))
    rows = _trim_rows(cluster, chosen, position, failures)
    if options.execute:
        trim_rows(cluster, rows, failures)
    output.rows(rows, TRIM)
    if not options.execute:
        note(DRY_RUN)
    return failures.exit_code()


def trim_position(text: str) -> Position:
    """Where the records that stay begin. Raises CommandError."""
    try:
        return parse_position(text, time.time_ns() // 1_000_000)
    except BadOffset as error:
        raise usage(str(error), f"write --to {FORMS}") from None


def trim_preview(cluster: Cluster, name: str, options: TrimOptions, failures: Failures) -> list[dict[str, Any]]:
    """What would be deleted of each partition of a topic. Raises CommandError."""
    position, numbers = trim_position(options.to), parse_partitions(options.partitions)
    return _trim_rows(cluster, _places(topics(cluster, [name], failures), numbers), position, failures)


def _places(found: Sequence[Topic], numbers: Sequence[int]) -> list[Place]:
    places = []
    for topic in found:
        existing = {partition.number for partition in topic.partitions}
        missing = sorted(set(numbers) - existing)
        if missing:
            raise usage(f"topic {topic.name} has no partition {missing[0]}", "kpybroker topic describe shows them")
        places += [(topic.name, number) for number in sorted(existing) if not numbers or number in numbers]
    return places


def _trim_rows(
    cluster: Cluster, chosen: Sequence[Place], position: Position, failures: Failures
) -> list[dict[str, Any]]:
    found = bounds(cluster, chosen)
    for place, one in found.items():
        if isinstance(one, CommandError):
            failures.add(f"{place[0]}-{place[1]}", one)
    usable = {place: one for place, one in found.items() if isinstance(one, Bounds)}
    at_time = time_lookup(cluster, usable)
    rows: list[dict[str, Any]] = []
    for place, one in usable.items():
        target = within(resolve(position, one, lambda timestamp, place=place: at_time(place, timestamp)), one)  # type: ignore[misc]
        topic, partition = place
        row = {"topic": topic, "partition": partition, "from": one.start, "to": target, "records": target - one.start}
        rows.append({**row, "status": "would be trimmed" if target > one.start else "nothing to trim", "error": None})
    return rows


def trim_rows(cluster: Cluster, rows: Sequence[dict[str, Any]], failures: Failures) -> None:
    """Delete the records that the rows name, and set each row's status."""
    by_place = {(row["topic"], row["partition"]): row for row in rows if row["records"]}
    if not by_place:
        return
    request = [TopicPartition(*place, row["to"]) for place, row in by_place.items()]
    for part, _, error in cluster.results(cluster.admin.delete_records(request, **cluster.timeouts)):
        row = by_place[part.topic, part.partition]
        row["status"] = "failed" if error else "trimmed"
        row["error"] = failures.add(f"{part.topic}-{part.partition}", error) if error else None
