"""`config list`, `describe`, `get`, `set` and `unset`: settings of topics, brokers, groups and client metrics.

A broker's name is its id, or `default` for the setting of all brokers of the cluster. confluent-kafka can name neither
the latter nor groups nor subscriptions to client metrics, so those requests go through `connect.raw_configs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka.admin import ConfigResource

from kpybroker.client.actions.partitions import matching
from kpybroker.client.actions.resources import OPERATIONS, Change, config_rows, resource
from kpybroker.client.connect import raw_configs
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures, usage
from kpybroker.client.connect.settings import Connection, Settings, load
from kpybroker.client.connect.wire import WireCluster
from kpybroker.client.show.cells import Column, Row
from kpybroker.client.show.output import Output, write

DEFAULT: Final = "default"


class RawKind(NamedTuple):
    """A kind of resource that confluent-kafka cannot name: Kafka's numbers of its type, and of the source of what was
    set for it.
    """

    type: int
    source: int


RAW: Final = {"group": RawKind(raw_configs.GROUP, 8), "client-metrics": RawKind(raw_configs.CLIENT_METRICS, 7)}
NOUNS: Final = {"client-metrics": "client metrics"}

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
    """Print what was set for topics, brokers, groups or client metrics: one row a key."""
    settings = load(connection)
    failures = Failures()
    names = _existing(settings, kind, patterns)
    found = _describe(settings, kind, names, False, failures)
    # what all brokers share is in the rows of `default`
    rows = [
        {"name": name, **row}
        for name in names
        for row in found.get(name, [])
        if name == DEFAULT or row["source"] != "cluster-default"
    ]
    output.rows(rows, LIST, empty=f"nothing is set for {NOUNS.get(kind, f'a {kind}')}")
    return failures.exit_code()


def _existing(settings: Settings, kind: str, patterns: Sequence[str]) -> list[str]:
    """The names that have settings and that match; brokers in the order of their ids, the rest by name."""
    if kind in RAW:
        with WireCluster(settings) as wire:
            return matching(raw_configs.names(wire, RAW[kind].type), patterns)
    metadata = Cluster(settings).metadata()
    if kind == "topic":
        return matching(metadata.topics, patterns)
    brokers = [*map(str, sorted(metadata.brokers)), DEFAULT]
    wanted = set(matching(brokers, patterns))
    return [name for name in brokers if name in wanted]


def show_describe(connection: Connection, kind: str, names: Sequence[str], everything: bool, output: Output) -> int:
    """Print the settings of topics, brokers, groups or client metrics: what was set, or all."""
    settings = load(connection)
    failures = Failures()
    found = _describe(settings, kind, names, everything, failures)
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
    found = _describe(settings, kind, [name], True, failures)
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
        if _raw(kind, name) is not None:
            with WireCluster(settings) as wire:
                alter(wire, kind, name, changes)
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


def alter(wire: WireCluster, kind: str, name: str, changes: Sequence[Change], *, validate_only: bool = False) -> None:
    """Change the settings of one topic, broker, group or client metrics, or have the changes checked. Raises
    CommandError, and then nothing has changed.
    """
    number, named = _raw(kind, name) or (_type(kind).value, _checked(kind, name))
    wanted = [(one.key, OPERATIONS[one.operation], one.value) for one in changes]
    raw_configs.alter(wire, number, named, wanted, validate_only=validate_only)


def entries(wire: WireCluster, kind: str, name: str) -> list[raw_configs.RawEntry]:
    """The settings, with types and the broker's words. Raises CommandError."""
    number, named = _raw(kind, name) or (_type(kind).value, _checked(kind, name))
    is_one_broker = number == raw_configs.BROKER and named != raw_configs.ALL_BROKERS
    broker = wire.broker(int(named)) if is_one_broker else wire.any()
    found = raw_configs.describe(wire, number, [named], broker)[named]
    if isinstance(found, CommandError):
        raise found
    return found


DONE: Final = {"set": "set", "delete": "unset", "append": "appended", "subtract": "subtracted"}


def _type(kind: str) -> Any:
    return ConfigResource.Type.TOPIC if kind == "topic" else ConfigResource.Type.BROKER


def _checked(kind: str, name: str) -> str:
    if kind == "broker" and not name.isdigit():
        raise usage(f"{name!r} is no broker", "name a broker by its id, or default for the setting of all of them")
    return name


def _no_broker(name: str) -> CommandError:
    return CommandError(f"the cluster has no broker {name}", "kpybroker cluster info shows the brokers")


def _raw(kind: str, name: str) -> tuple[int, str] | None:
    """Type and name as requests have them, of what confluent-kafka cannot name."""
    if kind in RAW:
        return RAW[kind].type, name
    return (raw_configs.BROKER, raw_configs.ALL_BROKERS) if kind == "broker" and name == DEFAULT else None


def _describe(
    settings: Settings, kind: str, names: Iterable[str], everything: bool, failures: Failures
) -> dict[str, list[Row]]:
    """Settings by name, in the order of the names; what cannot be described is a failure."""
    wanted = list(dict.fromkeys(names))
    found: dict[str, list[Row] | CommandError] = {}
    if kind in RAW:
        found = _raw_resources(settings, RAW[kind], wanted, everything)
    else:
        plain = [_checked(kind, name) for name in wanted if _raw(kind, name) is None]
        found = _topics_or_brokers(settings, kind, plain, everything)
        if len(plain) < len(wanted):
            found[DEFAULT] = _all_brokers(settings)
    described: dict[str, list[Row]] = {}
    for name in wanted:
        one = found[name]
        if isinstance(one, CommandError):
            failures.add(f"{kind} {name}", one)
        else:
            described[name] = one
    return described


def _topics_or_brokers(
    settings: Settings, kind: str, names: list[str], everything: bool
) -> dict[str, list[Row] | CommandError]:
    cluster = Cluster(settings)
    found: dict[str, list[Row] | CommandError] = {}
    if kind == "broker":  # a client would wait for one that does not exist
        brokers = cluster.metadata().brokers
        found = {name: _no_broker(name) for name in names if int(name) not in brokers}
    resources = [ConfigResource(_type(kind), name) for name in names if name not in found]
    # librdkafka takes one broker a call, since each is asked for its own
    calls = [[one] for one in resources] if kind == "broker" else [resources] if resources else []
    futures = [cluster.admin.describe_configs(call, **cluster.timeout) for call in calls]
    for one, entries, error in cluster.results({key: value for call in futures for key, value in call.items()}):
        found[one.name] = config_rows(entries.values(), everything) if error is None else error
    return found


def _raw_resources(
    settings: Settings, kind: RawKind, names: list[str], everything: bool
) -> dict[str, list[Row] | CommandError]:
    with WireCluster(settings) as wire:
        described = raw_configs.describe(wire, kind.type, names)
    found: dict[str, list[Row] | CommandError] = {}
    for name, entries in described.items():
        if isinstance(entries, CommandError):
            found[name] = entries
        else:  # a default of the brokers may have been set too, but not for the group
            found[name] = config_rows([one for one in entries if everything or one.source == kind.source], everything)
    return found


def _all_brokers(settings: Settings) -> list[Row] | CommandError:
    with WireCluster(settings) as wire:
        (entries,) = raw_configs.describe(wire, raw_configs.BROKER, [raw_configs.ALL_BROKERS]).values()
    return entries if isinstance(entries, CommandError) else config_rows(entries, True)
