"""Connectors and tasks restarted, paused, resumed, stopped, deleted, and begun again from their first record."""

from __future__ import annotations

from typing import Final

from kpybroker.client.connect.errors import usage
from kpybroker.console.changes.change import Ask, Call, Change, Field, InField, Rows, Values, number
from kpybroker.console.changes.connect.places import CONNECT, NAME, NEEDS, OF_CONNECTOR, asking, no_command, page
from kpybroker.console.queries.connect import connectors
from kpybroker.console.queries.connect.rest import path_of
from kpybroker.console.queries.connect.secrets import knowledge

FAILED, EVERYTHING, ALONE = "what has failed", "everything", "the connector without its tasks"
COLUMNS: Final = (("Connector", "name"), ("Part", "instance"), ("State", "state"), ("Status", "status"))
TASK_MAX: Final = 10_000


def _instances(ask: Ask) -> Rows:
    found = connectors.instances(asking(ask), ask.values["name"])
    return [{"name": ask.values["name"], **row, "status": "stays", "error": None} for row in found]


def _do(ask: Ask, calls: list[Call], rows: Rows, status: str) -> Rows:
    asked = asking(ask)
    for one in calls:
        asked.ask(one.method, one.path, None, one.body)
    return [{**row, "status": status} if str(row["status"]).startswith("would") else row for row in rows]


# --- restart


def _plan_restart(ask: Ask) -> Rows:
    rows, what = _instances(ask), ask.values["what"]
    for row in rows:
        is_chosen = row["task"] is None if what == ALONE else what == EVERYTHING or row["state"] == connectors.FAILED
        row["status"] = "would be restarted" if is_chosen else "stays"
    return rows


def _restart_calls(values: Values, _: Rows) -> list[Call]:
    query = {FAILED: "?includeTasks=true&onlyFailed=true", EVERYTHING: "?includeTasks=true", ALONE: ""}
    return [Call("POST", f"{path_of(values['name'])}/restart{query.get(values['what'], '')}")]


RESTART: Final = Change(
    "connector-restart",
    "Restart {name}",
    "Restart",
    (CONNECT, NAME, Field("what", "What", "choice", choices=(FAILED, EVERYTHING, ALONE), default=FAILED)),
    COLUMNS,
    NEEDS,
    _plan_restart,
    lambda ask, rows: _do(ask, _restart_calls(ask.values, rows), rows, "is being restarted"),
    no_command,
    page,
    same=("instance", "state"),
    blame=OF_CONNECTOR,
    calls=_restart_calls,
)


def _plan_task(ask: Ask) -> Rows:
    wanted = number(ask.values, "task", 0, TASK_MAX)
    rows = [row for row in _instances(ask) if row["task"] == wanted]
    if not rows:
        raise InField("task", usage(f"there is no task {wanted}", "the connector's page shows its tasks"))
    return [{**row, "status": "would be restarted"} for row in rows]


def _task_calls(values: Values, _: Rows) -> list[Call]:
    return [Call("POST", f"{path_of(values['name'])}/tasks/{values['task'] or 0}/restart")]


RESTART_TASK: Final = Change(
    "connector-task-restart",
    "Restart a task of {name}",
    "Restart the task",
    (CONNECT, NAME, Field("task", "Task", "number", is_required=True)),
    COLUMNS,
    NEEDS,
    _plan_task,
    lambda ask, rows: _do(ask, _task_calls(ask.values, rows), rows, "is being restarted"),
    no_command,
    page,
    same=("instance", "state"),
    blame=OF_CONNECTOR,
    calls=_task_calls,
)


# --- pause, resume, stop


def _state_change(verb: str, done: str, already: str, note: str) -> Change:
    def plan(ask: Ask) -> Rows:
        rows = _instances(ask)
        is_so = rows[0]["state"] == already
        for row in rows:
            row["status"] = f"is {done} already" if is_so else f"would be {done}"
        return rows

    def calls(values: Values, _: Rows) -> list[Call]:
        return [Call("PUT", f"{path_of(values['name'])}/{verb}")]

    return Change(
        f"connector-{verb}",
        f"{verb.capitalize()} {{name}}",
        verb.capitalize(),
        (CONNECT, NAME),
        COLUMNS,
        NEEDS,
        plan,
        lambda ask, rows: _do(ask, calls(ask.values, rows), rows, f"is being {done}"),
        no_command,
        page,
        same=("instance", "state"),
        blame=OF_CONNECTOR,
        note=note,
        calls=calls,
    )


PAUSE: Final = _state_change("pause", "paused", "PAUSED", "Its tasks wait, and keep what they hold, until it resumes.")
RESUME: Final = _state_change("resume", "resumed", "RUNNING", "")
STOP: Final = _state_change(
    "stop", "stopped", "STOPPED", "Its tasks end and free what they hold. It keeps its configuration and offsets."
)


# --- delete, and begin again


def _plan_delete(ask: Ask) -> Rows:
    return [{**row, "status": "would be deleted"} for row in _instances(ask)]


def _delete_calls(values: Values, _: Rows) -> list[Call]:
    return [Call("DELETE", path_of(values["name"]))]


DELETE: Final = Change(
    "connector-delete",
    "Delete {name}",
    "Delete the connector",
    (CONNECT, NAME),
    COLUMNS,
    NEEDS,
    _plan_delete,
    lambda ask, rows: _do(ask, _delete_calls(ask.values, rows), rows, "is being deleted"),
    no_command,
    lambda _: "/connect",
    same=("instance",),
    typed_again=("name",),
    blame=OF_CONNECTOR,
    note="Its configuration is gone. Its offsets stay: a connector of this name goes on where it was.",
    calls=_delete_calls,
)


def _plan_forget(ask: Ask) -> Rows:
    asked, name = asking(ask), ask.values["name"]
    first = connectors.instances(asked, name)[0]
    if first["state"] != connectors.STOPPED:
        raise InField("name", usage(f"{name} is {first['state']}", "stop it first: its page has a button"))
    config = asked.config(name)
    found = connectors.offset_rows(asked, name, list(knowledge(asked, config).hidden(config).values()))
    if found is None:
        raise usage("this Kafka Connect has no offsets to reset", "use one of Kafka 3.6 or later")
    return [{"name": name, **row, "status": "would be forgotten", "error": None} for row in found]


def _forget_calls(values: Values, _: Rows) -> list[Call]:
    return [Call("DELETE", f"{path_of(values['name'])}/offsets")]


RESET_OFFSETS: Final = Change(
    "connector-offsets-reset",
    "Reset the offsets of {name}",
    "Forget its offsets",
    (CONNECT, NAME),
    (("Connector", "name"), ("Partition", "partition"), ("Offset", "offset"), ("Status", "status")),
    NEEDS,
    _plan_forget,
    lambda ask, rows: _do(ask, _forget_calls(ask.values, rows), rows, "forgotten"),
    no_command,
    page,
    same=("partition", "offset"),
    typed_again=("name",),
    blame=OF_CONNECTOR,
    note="When it resumes it begins again: a source writes everything once more, a sink reads everything once more.",
    calls=_forget_calls,
)
