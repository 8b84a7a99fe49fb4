"""Connectors with their states, tasks and traces; and the plugins that a worker has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from kpybroker.client.connect.errors import CommandError, Failures
from kpybroker.client.connect.visible import visible
from kpybroker.console.queries.connect.rest import Asking, Connect, path_of
from kpybroker.console.queries.connect.secrets import Knowledge, knowledge, redacted
from kpybroker.console.queries.pages import by_keys
from kpybroker.console.queries.settings import words

TRACE_MAX: Final = 20_000
"""Characters of a task's trace."""
OFFSETS_MAX: Final = 200
FAILED: Final = "FAILED"
STOPPED: Final = "STOPPED"
Rows = list[dict[str, Any]]


OF_CONNECTORS: Final = by_keys("name", "state", "type", "tasks", "running", "failed", "worker", "class")
OF_PLUGINS: Final = {**by_keys("type", "version", "class"), "name": lambda row: row["class"].rpartition(".")[2]}
"""What lists are sorted by."""


class Listed(NamedTuple):
    """One Connect cluster: which version its worker has, and a row for each connector."""

    connect: Connect
    version: str
    rows: Rows


def listed(connect: Connect) -> Listed:
    """All connectors, those that failed first. Raises CommandError."""
    asking = connect.asking()
    root = asking.ask("GET", "/", dict)
    given = asking.ask("GET", "/connectors?expand=status&expand=info", dict)
    try:
        rows = [_row(name, one) for name, one in given.items()]
    except (KeyError, TypeError, AttributeError):
        raise connect.strange() from None
    rows.sort(key=lambda row: (not (row["state"] == FAILED or row["failed"]), row["name"]))
    return Listed(connect, str(root.get("version") or ""), rows)


def names(connect: Connect) -> list[str]:
    """The names of all connectors. Raises CommandError."""
    return list(map(str, connect.asking().ask("GET", "/connectors", list)))


def _row(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    status, info = given.get("status") or {}, given.get("info") or {}
    tasks = [str(one["state"]) for one in status.get("tasks") or ()]
    return {
        "name": str(name),
        "type": str(status.get("type") or info.get("type") or ""),
        "class": str((info.get("config") or {}).get("connector.class") or ""),
        "state": (status.get("connector") or {}).get("state"),
        "worker": (status.get("connector") or {}).get("worker_id"),
        "tasks": len(tasks),
        "running": tasks.count("RUNNING"),
        "failed": tasks.count(FAILED),
    }


class Described(NamedTuple):
    """One connector. `config` is without secrets; `offsets` and `topics` are None where Connect does not say."""

    type: str
    state: str
    worker: str
    trace: str
    tasks: Rows
    config: Rows
    topics: list[str] | None
    offsets: Rows | None


def described(connect: Connect, name: str, failures: Failures) -> Described:
    """A connector with its tasks, configuration, topics and offsets. Raises CommandError."""
    asking = connect.asking()
    status = asking.ask("GET", f"{path_of(name)}/status", dict)
    config = asking.config(name)
    known = knowledge(asking, config)
    secrets = list(known.hidden(config).values())
    topics, offsets = None, None
    try:
        topics = _topics(asking, name)
        offsets = offset_rows(asking, name, secrets)
    except CommandError as error:
        failures.add("topics and offsets", error)
    try:
        own = status["connector"]
        tasks = [_instance(one, secrets, int(one["id"])) for one in status["tasks"]]
        first = _instance(own, secrets)
    except (KeyError, TypeError, ValueError):
        raise connect.strange() from None
    tasks.sort(key=lambda row: row["task"])
    kind = str(status.get("type") or "")
    return Described(
        kind, first["state"], first["worker"], first["trace"], tasks, config_rows(config, known), topics, offsets
    )


def _instance(given: Mapping[str, Any], secrets: list[str], task: int | None = None) -> dict[str, Any]:
    lines = str(given.get("trace") or "").expandtabs(4).splitlines()
    trace = redacted("\n".join(map(visible, lines)), secrets)[:TRACE_MAX]
    return {"task": task, "state": str(given["state"]), "worker": str(given.get("worker_id") or ""), "trace": trace}


def config_rows(config: Mapping[str, str], known: Knowledge) -> Rows:
    """A row for each key, without secrets: `hidden` says that there is one."""
    rows = []
    for name, value in sorted(config.items()):
        key, is_hidden = known.key(name), known.is_hidden(name, value)
        shown = None if is_hidden else visible(value)
        meaning = words(key.meaning) if key is not None else ""
        rows.append({"key": name, "value": shown, "hidden": is_hidden, "meaning": meaning})
    return rows


def _topics(asking: Asking, name: str) -> list[str] | None:
    found = asking.optional(f"{path_of(name)}/topics", dict)
    inner = None if found is None else found.get(name)
    return sorted(map(str, inner.get("topics") or ())) if isinstance(inner, dict) else None


def offset_rows(asking: Asking, name: str, secrets: list[str]) -> Rows | None:
    """How far a connector is, as it says; None before Kafka 3.6. Raises CommandError."""
    found = asking.optional(f"{path_of(name)}/offsets", dict)
    if found is None:
        return None
    rows = []
    for one in list(found.get("offsets") or ())[:OFFSETS_MAX]:
        partition, offset = (
            redacted(visible(", ".join(f"{key}={value}" for key, value in (one.get(part) or {}).items())), secrets)
            for part in ("partition", "offset")
        )
        rows.append({"partition": partition, "offset": offset})
    return rows


def instances(asking: Asking, name: str) -> Rows:
    """The connector and its tasks, with their states. Raises CommandError."""
    status = asking.ask("GET", f"{path_of(name)}/status", dict)
    try:
        own = {"instance": "connector", "task": None, "state": str(status["connector"]["state"])}
        tasks = sorted((int(one["id"]), str(one["state"])) for one in status["tasks"])
    except (KeyError, TypeError, ValueError):
        raise asking.connect.strange() from None
    return [own, *({"instance": f"task {task}", "task": task, "state": state} for task, state in tasks)]


def plugins(connect: Connect) -> Rows:
    """The connectors that can be made. Raises CommandError."""
    given = connect.asking().ask("GET", "/connector-plugins", list)
    try:
        rows = [{name: str(one.get(name) or "") for name in ("class", "type", "version")} for one in given]
    except AttributeError:
        raise connect.strange() from None
    return sorted(rows, key=lambda row: row["class"].rpartition(".")[2])


def problems(asking: Asking, java_class: str, config: Mapping[str, str]) -> dict[str, str]:
    """What the plugin says is wrong, by key. Raises CommandError."""
    found = asking.ask("PUT", f"/connector-plugins/{quote(java_class, safe='')}/config/validate", dict, dict(config))
    try:
        values = [one["value"] for one in found["configs"]]
        return {str(one["name"]): visible("; ".join(map(str, one["errors"]))) for one in values if one.get("errors")}
    except (KeyError, TypeError, AttributeError):
        raise asking.connect.strange() from None
