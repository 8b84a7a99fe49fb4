"""`cluster info`, `health`, `log-dirs` and `api-versions`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from confluent_kafka.admin import ConfigResource

from kpybroker.client.actions.partitions import Partition, topics
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import WITHOUT_CONTROLLER, CommandError, Failures, broker_error, check, note
from kpybroker.client.connect.settings import Connection, load
from kpybroker.client.connect.versions import looks_like
from kpybroker.client.connect.wire import WireCluster
from kpybroker.client.show.cells import Column, Row, size
from kpybroker.client.show.output import Output
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.messages.describe_log_dirs import DescribeLogDirsRequest

BROKERS: Final = (
    Column("BROKER", "broker"),
    Column("HOST", "host"),
    Column("PORT", "port"),
    Column("RACK", "rack"),
    Column("CONTROLLER", "controller"),
    Column("LOOKS LIKE", lambda row: row["looks_like"] and f"Kafka {row['looks_like']}"),
)
PROBLEMS: Final = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("PROBLEM", "problem", style=lambda row: "bold red" if row["problem"] == "leaderless" else "yellow"),
    Column("LEADER", "leader"),
    Column("REPLICAS", "replicas"),
    Column("ISR", "isr"),
    Column("MIN-ISR", "min_isr"),
)
LOG_DIRS: Final = (
    Column("BROKER", "broker"),
    Column("DIRECTORY", "directory"),
    Column("REPLICAS", "replicas"),
    Column("SIZE", lambda row: size(row["size"])),
    Column("DISK", lambda row: size(row["total"]), wide=True),
    Column("FREE", lambda row: size(row["usable"]), wide=True),
    Column(
        "STATUS", lambda row: "offline" if row["error"] else "online", style=lambda r: "bold red" if r["error"] else ""
    ),
)
REPLICAS: Final = (
    Column("BROKER", "broker"),
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("SIZE", lambda row: size(row["size"])),
    Column("OFFSET-LAG", "offset_lag"),
    Column("FUTURE", "future", wide=True),
    Column("DIRECTORY", "directory"),
)
APIS: Final = (Column("KEY", "key"), Column("API", "api"), Column("OLDEST", "oldest"), Column("NEWEST", "newest"))


def info(connection: Connection, output: Output) -> int:
    """Print the cluster's id, its controller and its brokers."""
    failures = Failures()
    with WireCluster(load(connection)) as wire:
        found = overview(wire, failures)
    rows = found["brokers"]
    if output.is_table:
        head = [("CLUSTER", found["cluster_id"]), ("CONTROLLER", found["controller"]), ("BROKERS", len(rows))]
        output.sections([output.pairs(head), output.text(rows, BROKERS)])
    else:
        output.data(found)
    return failures.exit_code()


def overview(wire: WireCluster, failures: Failures) -> dict[str, Any]:
    """The cluster's id, its controller, and a row for each broker."""
    rows = []
    for node in sorted(wire.nodes.values()):
        row: dict[str, Any] = {"broker": node.node_id, "host": node.host, "port": node.port, "rack": node.rack}
        row["controller"] = node.node_id == wire.controller_id
        row["looks_like"] = None
        try:
            row["looks_like"] = looks_like(wire.broker(node.node_id).versions)
        except CommandError as error:
            failures.add(f"broker {node.node_id}", error)
        rows.append(row)
    controller = wire.controller_id if wire.controller_id >= 0 else None
    return {"cluster_id": wire.cluster_id, "controller": controller, "brokers": rows}


# --- health


def health(connection: Connection, output: Output) -> int:
    """Print the partitions that are not healthy; 1 if there are any, or no controller."""
    cluster = Cluster(load(connection))
    failures = Failures()
    metadata = cluster.metadata()
    if metadata.controller_id < 0:
        failures.add("cluster", CommandError("there is no controller", WITHOUT_CONTROLLER))
    found = topics(cluster, sorted(metadata.topics), failures)
    minimum = _min_isr(cluster, [topic.name for topic in found], failures)
    rows = [
        row
        for topic in found
        for partition in topic.partitions
        if (row := problem_row(partition, minimum.get(topic.name, 1)))
    ]
    output.rows(rows, PROBLEMS)
    count = sum(len(topic.partitions) for topic in found)
    if output.is_table and not rows:
        note(f"all {count} partitions of {len(found)} topics are healthy")
    return failures.exit_code() or int(bool(rows))


def problem_row(partition: Partition, min_isr: int) -> Row | None:
    """What is wrong with a partition, the worst first; None for nothing."""
    if partition.leader is None:
        problem = "leaderless"
    elif len(partition.isr) < min_isr:
        problem = "under-min-isr"
    elif len(partition.isr) < len(partition.replicas):
        problem = "under-replicated"
    else:
        return None
    return {
        "topic": partition.topic,
        "partition": partition.number,
        "problem": problem,
        "leader": partition.leader,
        "replicas": partition.replicas,
        "isr": partition.isr,
        "min_isr": min_isr,
    }


def _min_isr(cluster: Cluster, names: Sequence[str], failures: Failures) -> Mapping[str, int]:
    if not names:
        return {}
    resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
    minimum = {}
    for resource, entries, error in cluster.results(cluster.admin.describe_configs(resources, **cluster.timeout)):
        if error is not None:
            failures.add(f"settings of topic {resource.name}", error)
        elif "min.insync.replicas" in entries:
            minimum[resource.name] = int(entries["min.insync.replicas"].value)
    return minimum


# --- what confluent-kafka does not offer


def log_dirs(connection: Connection, brokers: Sequence[int], each: bool, output: Output) -> int:
    """Print the log directories of brokers, or each replica in them."""
    failures = Failures()
    with WireCluster(load(connection)) as wire:
        rows, replicas = log_dir_rows(wire, brokers or sorted(wire.nodes), failures)
    if each:
        output.rows(sorted(replicas, key=lambda row: -row["size"]), REPLICAS, empty="there are no replicas")
    else:
        output.rows(rows, LOG_DIRS)
    return failures.exit_code()


def log_dir_rows(
    wire: WireCluster, brokers: Sequence[int], failures: Failures
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A row for each log directory of these brokers, and one for each replica in them."""
    rows: list[dict[str, Any]] = []
    replicas: list[dict[str, Any]] = []
    for broker in brokers:
        try:
            response = wire.broker(broker).request(ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=None))
            check(response.error_code)
        except CommandError as error:
            failures.add(f"broker {broker}", error)
            continue
        for result in response.results:
            rows.append(_directory(broker, result, failures))
            replicas += _replicas(broker, result)
    return rows, replicas


def _directory(broker: int, result: Any, failures: Failures) -> dict[str, Any]:
    error = broker_error(result.error_code)
    partitions = [partition for topic in result.topics for partition in topic.partitions]
    return {
        "broker": broker,
        "directory": result.log_dir,
        "replicas": len(partitions),
        "size": sum(partition.partition_size for partition in partitions),
        "total": result.total_bytes if result.total_bytes >= 0 else None,
        "usable": result.usable_bytes if result.usable_bytes >= 0 else None,
        "error": failures.add(f"broker {broker}, {result.log_dir}", error) if error else None,
    }


def _replicas(broker: int, result: Any) -> list[dict[str, Any]]:
    return [
        {
            "broker": broker,
            "directory": result.log_dir,
            "topic": topic.name,
            "partition": partition.partition_index,
            "size": partition.partition_size,
            "offset_lag": partition.offset_lag,
            "future": partition.is_future_key,
        }
        for topic in result.topics
        for partition in topic.partitions
    ]


def api_versions(connection: Connection, broker: int | None, output: Output) -> int:
    """Print the APIs that a broker serves, and their versions."""
    with WireCluster(load(connection)) as wire:
        chosen = wire.any() if broker is None else wire.broker(broker)
        ranges = dict(chosen.versions)
    names = {int(key): info.name for key, info in API_INFO.items()}
    rows = [
        {"key": key, "api": names.get(key), "oldest": low, "newest": high}
        for key, (low, high) in sorted(ranges.items())
    ]
    output.rows(rows, APIS)
    if output.is_table:
        note(f"looks like Kafka {looks_like(ranges)}")
    return 0
