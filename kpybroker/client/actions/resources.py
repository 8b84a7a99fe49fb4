"""Settings of topics, brokers, groups and client metrics as rows, and changes of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from kpybroker.client.connect.errors import usage
from kpybroker.client.show.cells import Row

SOURCES: Final = {
    1: "topic",
    2: "broker",
    3: "cluster-default",
    4: "server.properties",
    5: "default",
    7: "client-metrics",
    8: "group",
}
"""Where a value is from, by Kafka's number of its source."""

OVERRIDES: Final = frozenset({1, 2, 3, 7, 8})
"""Sources that were set with a command."""


class Change(NamedTuple):
    """A change of one key. `operation` is set, delete, append or subtract."""

    operation: str
    key: str
    value: str | None = None


OPERATIONS: Final = {"set": 0, "delete": 1, "append": 2, "subtract": 3}
"""Kafka's numbers."""


def config_rows(entries: Iterable[Any], everything: bool) -> list[Row]:
    """Settings by key: those that were set for this topic or broker, or all."""
    rows = [config_row(entry) for entry in entries if everything or entry.source in OVERRIDES]
    return sorted(rows, key=lambda row: str(row["key"]))


def config_row(entry: Any) -> Row:
    """A setting. Brokers send no value of a sensitive key."""
    return {
        "key": entry.name,
        "value": entry.value,
        "source": SOURCES.get(entry.source, f"source {entry.source}"),
        "sensitive": bool(entry.is_sensitive),
        "read_only": bool(entry.is_read_only),
    }


def parse_changes(
    set_: Sequence[str] = (), delete: Sequence[str] = (), append: Sequence[str] = (), subtract: Sequence[str] = ()
) -> list[Change]:
    """The changes of options like `--set KEY=VALUE` and `--delete KEY`. Raises CommandError."""
    changes = []
    for operation, texts in (("set", set_), ("append", append), ("subtract", subtract)):
        for text in texts:
            key, equals, value = text.partition("=")
            if not equals or not key.strip():
                raise usage(f"{text!r} has no key and value", "write KEY=VALUE, as in retention.ms=86400000")
            changes.append(Change(operation, key.strip(), value.strip()))
    changes += [Change("delete", text.strip()) for text in delete]
    keys = [change.key for change in changes]
    for key in keys:
        if keys.count(key) > 1:
            raise usage(f"{key} is changed twice", "name each key once")
    return changes


def resource(kind: Any, name: str, changes: Iterable[Change]) -> Any:
    """confluent-kafka's form of changes of one topic or broker."""
    entries = [
        ConfigEntry(change.key, change.value, incremental_operation=AlterConfigOpType(OPERATIONS[change.operation]))
        for change in changes
    ]
    return ConfigResource(kind, name, incremental_configs=entries)
