"""`topic list` and `topic describe`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka.admin import ConfigResource

from kpybroker.client.actions.partitions import Partition, Place, Topic, bounds, known, matching, topics
from kpybroker.client.actions.resources import config_rows
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures
from kpybroker.client.connect.settings import Connection, load
from kpybroker.client.records.offsets import Bounds
from kpybroker.client.show.cells import Column, Row
from kpybroker.client.show.output import Output

Offsets = Mapping[Place, Bounds]


def bad_if(key: str) -> Any:
    """A style that marks a row whose `key` is not zero or empty."""
    return lambda row: "bold red" if row[key] else ""


LIST = (
    Column("NAME", "name"),
    Column("PARTITIONS", "partitions"),
    Column("REPLICAS", "replicas"),
    Column("UNDER-REPLICATED", "under_replicated", wide=True, style=bad_if("under_replicated")),
    Column("LEADERLESS", "leaderless", wide=True, style=bad_if("leaderless")),
    Column("RECORDS", "records", wide=True),
    Column("INTERNAL", "internal", wide=True),
    Column("ID", "id", wide=True),
)
PARTITIONS = (
    Column("PARTITION", "partition"),
    Column("LEADER", "leader", style=lambda row: "bold red" if row["leader"] is None else ""),
    Column("REPLICAS", "replicas"),
    Column("ISR", "isr", style=lambda row: "bold red" if len(row["isr"]) < len(row["replicas"]) else ""),
    Column("LOG-START-OFFSET", "log_start_offset"),
    Column("LOG-END-OFFSET", "log_end_offset"),
    Column("RECORDS", "records", wide=True),
)
CONFIGS = (Column("KEY", "key"), Column("VALUE", "value"), Column("SOURCE", "source"))


def show_list(connection: Connection, patterns: Sequence[str], internal: bool, output: Output) -> int:
    """Print the topics that a pattern matches; internal ones if asked for, or named by a pattern."""
    cluster = Cluster(load(connection))
    failures = Failures()
    names = matching(cluster.metadata().topics, patterns)
    found = [t for t in topics(cluster, names, failures) if internal or patterns or not t.is_internal]
    offsets = _offsets(cluster, found) if output.is_detailed else {}
    output.rows([list_row(topic, offsets, output.is_detailed) for topic in found], LIST, empty="there is no such topic")
    return failures.exit_code()


def list_row(topic: Topic, offsets: Offsets, detailed: bool = True) -> Row:
    """A topic as `topic list` prints it. `records` counts offsets: also markers, and what compaction removed."""
    row: dict[str, Any] = {
        "name": topic.name,
        "id": topic.topic_id,
        "internal": topic.is_internal,
        "partitions": len(topic.partitions),
        "replicas": max((len(p.replicas) for p in topic.partitions), default=0),
        "under_replicated": sum(len(p.isr) < len(p.replicas) for p in topic.partitions),
        "leaderless": sum(p.leader is None for p in topic.partitions),
    }
    if detailed:
        sizes = [offsets[p.place].end - offsets[p.place].start for p in topic.partitions if p.place in offsets]
        row["records"] = sum(sizes) if len(sizes) == len(topic.partitions) else None
    return row


def show_describe(connection: Connection, patterns: Sequence[str], all_configs: bool, output: Output) -> int:
    """Print each topic's partitions and settings: those that differ from the defaults, or all."""
    cluster = Cluster(load(connection))
    failures = Failures()
    found = topics(cluster, expanded(cluster, patterns), failures)
    offsets = _offsets(cluster, found)
    configs = _configs(cluster, found, all_configs, failures)
    rows: list[dict[str, Any]] = []
    for topic in found:
        partitions = [partition_row(partition, offsets) for partition in topic.partitions]
        rows.append({**list_row(topic, offsets), "partitions": partitions, "configs": configs.get(topic.name, [])})
    if not output.is_table:
        output.data(rows)
    else:
        output.sections(part for row in rows for part in _sections(row, output))
    return failures.exit_code()


def is_pattern(name: str) -> bool:
    """Whether it is no name but a pattern."""
    return bool(set(name) & set("*?["))


def expanded(cluster: Cluster, patterns: Sequence[str]) -> list[str]:
    """Names as they are, and the topics that a pattern with `*`, `?` or `[` matches."""
    if not any(map(is_pattern, patterns)):
        return list(patterns)
    existing = cluster.metadata().topics
    names: dict[str, None] = {}
    for pattern in patterns:
        names |= dict.fromkeys(matching(existing, [pattern]) if is_pattern(pattern) else [pattern])
    return list(names)


def matched(cluster: Cluster, patterns: Sequence[str]) -> list[str]:
    """As `expanded`, without internal topics that only a pattern names. Raises CommandError if nothing is left."""
    names = [name for name in expanded(cluster, patterns) if name in patterns or not name.startswith("__")]
    if not names:
        raise CommandError(f"no topic matches {' or '.join(patterns)}", "kpybroker topic list shows the topics")
    return names


def partition_row(partition: Partition, offsets: Offsets) -> Row:
    """A partition as `topic describe` prints it."""
    found = offsets.get(partition.place)
    return {
        "partition": partition.number,
        "leader": partition.leader,
        "replicas": partition.replicas,
        "isr": partition.isr,
        "log_start_offset": found.start if found else None,
        "log_end_offset": found.end if found else None,
        "records": found.end - found.start if found else None,
    }


def _sections(row: Row, output: Output) -> list[str]:
    summary = [
        ("NAME", row["name"]),
        ("ID", row["id"]),
        ("INTERNAL", row["internal"]),
        ("PARTITIONS", len(row["partitions"])),
        ("REPLICAS", row["replicas"]),
        ("RECORDS", row["records"]),
    ]
    configs = output.text(row["configs"], CONFIGS) if row["configs"] else ""
    return [output.pairs(summary), output.text(row["partitions"], PARTITIONS), configs]


def _offsets(cluster: Cluster, found: Sequence[Topic]) -> Offsets:
    """Of partitions with a leader; for one without, librdkafka would wait until the deadline."""
    return known(bounds(cluster, [p.place for topic in found for p in topic.partitions if p.leader is not None]))


def _configs(cluster: Cluster, found: Sequence[Topic], everything: bool, failures: Failures) -> dict[str, list[Row]]:
    if not found:
        return {}
    resources = [ConfigResource(ConfigResource.Type.TOPIC, topic.name) for topic in found]
    rows = {}
    for resource, entries, error in cluster.results(cluster.admin.describe_configs(resources, **cluster.timeout)):
        if error is not None:
            failures.add(f"settings of topic {resource.name}", error)
        else:
            rows[resource.name] = config_rows(entries.values(), everything)
    return rows
