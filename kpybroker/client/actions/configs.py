"""`config list`, `describe`, `get`, `set` and `unset`: settings of topics and brokers.

A broker's name is its id, or `default` for the setting of all brokers of the cluster. confluent-kafka cannot name the
latter, so those requests go through `connect.wire`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from confluent_kafka.admin import ConfigResource

from kpybroker.client.actions.partitions import matching
from kpybroker.client.actions.resources import OPERATIONS, Change, config_rows, resource
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures, check, usage
from kpybroker.client.connect.settings import Connection, Settings, load
from kpybroker.client.connect.wire import WireCluster
from kpybroker.client.show.cells import Column, Row
from kpybroker.client.show.output import Output, write
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.describe_configs import DescribeConfigsRequest
from kpybroker.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

DEFAULT: Final = "default"
BROKER: Final = 4
"""Kafka's number of the resource type."""

CONFIGS: Final = (
    Column("KEY", "key"),
    Column("VALUE", lambda row: "(sensitive)" if row["sensitive"] else row["value"]),
    Column("SOURCE", "source"),
    Column("READ-ONLY", "read_only", wide=True),
)
LIST: Final = (Column("NAME", "name"), *CONFIGS)
STATUS: Final = (
    Column("NAME", "name"),
    Column("KEY", "key"),
    Column("VALUE", "value"),
    Column("STATUS", "status", style=lambda row: "bold red" if row["error"] else ""),
)


def show_list(connection: Connection, kind: str, patterns: Sequence[str], output: Output) -> int:
    """Print what was set for topics or brokers: one row a key."""
    settings = load(connection)
    cluster = Cluster(settings)
    metadata = cluster.metadata()
    existing = metadata.topics if kind == "topic" else [*map(str, sorted(metadata.brokers)), DEFAULT]
    failures = Failures()
    names = (
        matching(existing, patterns) if kind == "topic" else [n for n in existing if n in matching(existing, patterns)]
    )
    found = _describe(settings, cluster, kind, names, False, failures)
    # what all brokers share is in the rows of `default`
    rows = [
        {"name": name, **row}
        for name in names
        for row in found.get(name, [])
        if name == DEFAULT or row["source"] != "cluster-default"
    ]
    output.rows(rows, LIST, empty=f"nothing is set for a {kind}")
    return failures.exit_code()


def show_describe(connection: Connection, kind: str, names: Sequence[str], everything: bool, output: Output) -> int:
    """Print the settings of topics or brokers: what was set, or all."""
    settings = load(connection)
    failures = Failures()
    found = _describe(settings, Cluster(settings), kind, names, everything, failures)
    if not output.is_table:
        output.data([{"type": kind, "name": name, "configs": rows} for name, rows in found.items()])
        return failures.exit_code()
    parts = [
        (output.heading(name) if len(names) > 1 else "") + output.text(rows, CONFIGS)
        for name, rows in found.items()
        if rows
    ]
    if parts:
        output.sections(parts)
    elif found:
        output.rows([], CONFIGS, empty="nothing is set; --all shows the defaults")
    return failures.exit_code()


def get(connection: Connection, kind: str, name: str, keys: Sequence[str], output: Output) -> int:
    """Print the value of a key alone; of several keys, a table."""
    settings = load(connection)
    failures = Failures()
    found = _describe(settings, Cluster(settings), kind, [name], True, failures)
    if name not in found:
        return failures.exit_code()
    by_key = {row["key"]: row for row in found[name]}
    rows = []
    for key in keys:
        if key in by_key:
            rows.append(by_key[key])
        else:
            fix = f"kpybroker config describe {kind} {name} --all shows its keys"
            failures.add(f"{kind} {name}", CommandError(f"it has no key {key}", fix))
    if output.is_table and len(keys) == 1:
        write("".join(f"{'' if row['value'] is None else row['value']}\n" for row in rows))
    else:
        output.rows(rows, CONFIGS)
    return failures.exit_code()


def change(connection: Connection, kind: str, name: str, changes: Sequence[Change], output: Output) -> int:
    """Set or unset keys; the broker checks all of them before it changes one."""
    settings = load(connection)
    failures = Failures()
    error: CommandError | None = None
    try:
        if kind == "broker" and name == DEFAULT:
            with WireCluster(settings) as wire:
                _change_default(wire, changes)
        else:
            cluster = Cluster(settings)
            request = [resource(_type(kind), _checked(kind, name), changes)]
            if kind == "broker" and int(name) not in cluster.metadata().brokers:
                raise _no_broker(name)
            futures = cluster.admin.incremental_alter_configs(request, **cluster.timeout)
            (_, _, error) = cluster.results(futures)[0]
    except CommandError as raised:
        if raised.exit_code != 1:
            raise
        error = raised
    reported = failures.add(f"{kind} {name}", error) if error else None
    status = "failed" if error else None
    rows = [
        {"name": name, "key": one.key, "value": one.value, "status": status or DONE[one.operation], "error": reported}
        for one in changes
    ]
    output.rows(rows, STATUS)
    return failures.exit_code()


DONE: Final = {"set": "set", "delete": "unset", "append": "appended", "subtract": "subtracted"}


def _type(kind: str) -> Any:
    return ConfigResource.Type.TOPIC if kind == "topic" else ConfigResource.Type.BROKER


def _checked(kind: str, name: str) -> str:
    if kind == "broker" and not name.isdigit():
        raise usage(f"{name!r} is no broker", "name a broker by its id, or default for the setting of all of them")
    return name


def _no_broker(name: str) -> CommandError:
    return CommandError(f"the cluster has no broker {name}", "kpybroker cluster info shows the brokers")


def _describe(
    settings: Settings, cluster: Cluster, kind: str, names: Iterable[str], everything: bool, failures: Failures
) -> dict[str, list[Row]]:
    """Settings by name, in the order of the names; what cannot be described is a failure."""
    found: dict[str, list[Row]] = {}
    wanted = list(dict.fromkeys(names))
    asked = [_checked(kind, name) for name in wanted if kind == "topic" or name != DEFAULT]
    if kind == "broker":  # a client would wait for one that does not exist
        brokers = cluster.metadata().brokers
        for name in asked:
            if int(name) not in brokers:
                failures.add(f"{kind} {name}", _no_broker(name))
        asked = [name for name in asked if int(name) in brokers]
    resources = [ConfigResource(_type(kind), name) for name in asked]
    described = cluster.results(cluster.admin.describe_configs(resources, **cluster.timeout)) if resources else []
    for one, entries, error in described:
        if error is not None:
            failures.add(f"{kind} {one.name}", error)
        else:
            found[one.name] = config_rows(entries.values(), everything)
    if kind == "broker" and DEFAULT in wanted:
        with WireCluster(settings) as wire:
            found[DEFAULT] = _describe_default(wire)
    return {name: found[name] for name in wanted if name in found}


# --- the setting of all brokers


def _describe_default(wire: WireCluster) -> list[Row]:
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsRequest.DescribeConfigsResource(resource_type=BROKER, configuration_keys=None)]
    )
    (result,) = wire.any().request(ApiKey.DESCRIBE_CONFIGS, request).results
    check(result.error_code, result.error_message)
    rows = [
        {
            "key": entry.name,
            "value": entry.value,
            "source": "cluster-default",
            "sensitive": entry.is_sensitive,
            "read_only": entry.read_only,
        }
        for entry in result.configs
    ]
    return sorted(rows, key=lambda row: str(row["key"]))


def _change_default(wire: WireCluster, changes: Sequence[Change]) -> None:
    configs = [
        IncrementalAlterConfigsRequest.AlterableConfig(
            name=one.key, config_operation=OPERATIONS[one.operation], value=one.value
        )
        for one in changes
    ]
    request = IncrementalAlterConfigsRequest(
        resources=[IncrementalAlterConfigsRequest.AlterConfigsResource(resource_type=BROKER, configs=configs)]
    )
    broker = wire.broker(wire.controller_id) if wire.controller_id in wire.nodes else wire.any()
    (result,) = broker.request(ApiKey.INCREMENTAL_ALTER_CONFIGS, request).responses
    check(result.error_code, result.error_message)
