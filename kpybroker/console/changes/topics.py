"""Topics: created, with more partitions, without old records, deleted."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from kpybroker.client.actions import topic_changes
from kpybroker.client.actions.partitions import LEGAL_NAME, PARTITIONS_MAX, topics
from kpybroker.client.actions.topic_changes import NewTopicOptions, TrimOptions
from kpybroker.client.connect.errors import CommandError, usage
from kpybroker.console.changes import configs
from kpybroker.console.changes.change import (
    Ask,
    Change,
    Command,
    Field,
    InField,
    Raising,
    Rows,
    Values,
    given,
    in_field,
    lines,
    number,
)
from kpybroker.console.queries.topics import NoTopic, find

REPLICAS_MAX: Final = 32767
TOPIC: Final = Field("topic", "Topic", is_required=True)
OF_TOPIC: Final = {
    "UNKNOWN_TOPIC_OR_PARTITION": "topic",
    "INVALID_TOPIC_EXCEPTION": "topic",
    "TOPIC_ALREADY_EXISTS": "topic",
    "INVALID_PARTITIONS": "partitions",
    "INVALID_REPLICATION_FACTOR": "replicas",
    "INVALID_CONFIG": "configs",
    "POLICY_VIOLATION": "topic",
}
"""The field that an error of Kafka's is about."""
FIXES: Final = {
    "TOPIC_ALREADY_EXISTS": "choose another name",
    "INVALID_REPLICATION_FACTOR": "ask for as many replicas as there are brokers, at most",
    "INVALID_CONFIG": "the keys below have their types and meanings",
}
"""What to do in a form, where a command's fix names its options."""


def page_of(values: Values) -> str:
    """The page of the topic."""
    return f"/topics/{quote(values['topic'], safe='')}"


def existing(ask: Ask) -> None:
    """Raises CommandError for a topic that does not exist."""
    try:
        find(ask.cluster, ask.values["topic"])
    except NoTopic as error:
        raise InField("topic", error) from None


def worded(error: CommandError) -> CommandError:
    """The error with a fix for a form."""
    return CommandError(error.cause, FIXES.get(error.name, error.fix), error.exit_code, name=error.name)


# --- create


def _options(values: Values, dry_run: bool) -> NewTopicOptions:
    if not LEGAL_NAME.fullmatch(values["topic"]):
        with in_field("topic"):
            raise usage(
                f"no topic can be named {values['topic'][:50]!r}", "letters, digits, dots, - and _, 249 at most"
            )
    return NewTopicOptions(
        number(values, "partitions", 1, PARTITIONS_MAX),
        number(values, "replicas", 1, REPLICAS_MAX),
        lines(values, "configs"),
        dry_run=dry_run,
    )


def _create(ask: Ask, dry_run: bool) -> Rows:
    options = _options(ask.values, dry_run)
    with in_field("configs"):
        wanted = topic_changes.new_topic(ask.values["topic"], options)
    try:
        rows = topic_changes.create_rows(ask.cluster, [wanted], options, Raising())
    except CommandError as error:
        raise worded(error) from None
    own = {
        "partitions": options.partitions or "as the broker's num.partitions",
        "replicas": options.replicas or "as the broker's default.replication.factor",
        "configs": ", ".join(f"{key}={value}" for key, value in wanted.config.items()) or "the broker's defaults",
    }
    return [{**row, **own} for row in rows]


def _create_command(values: Values) -> Command:
    options = given(("-p", values["partitions"]), ("-r", values["replicas"]))
    options += given(*(("-c", line) for line in lines(values, "configs")))
    return ["topic", "create", *options], [values["topic"]]


CREATE: Final = Change(
    "topic-create",
    "Create a topic",
    "Create {topic}",
    (
        TOPIC._replace(placeholder="orders", hint="Letters, digits, dots, - and _, 249 at most."),
        Field("partitions", "Partitions", "number", "Empty: as the brokers' num.partitions.", "the broker's default"),
        Field("replicas", "Replicas", "number", "Empty: as default.replication.factor.", "the broker's default"),
        Field("configs", "Settings", "lines", "KEY=VALUE in each line.", "retention.ms=604800000"),
    ),
    (
        ("Topic", "topic"),
        ("#Partitions", "partitions"),
        ("#Replicas", "replicas"),
        ("Settings", "configs"),
        ("Status", "status"),
    ),
    "Create on the topic or on the cluster",
    lambda ask: _create(ask, True),
    lambda ask, _: _create(ask, False),
    _create_command,
    page_of,
    blame=OF_TOPIC,
    note="The broker has checked the name, the numbers and the settings.",
    keys=configs.keys_of_topics,
)

# --- more partitions


def _more(ask: Ask) -> int:
    found = number(ask.values, "partitions", 1, PARTITIONS_MAX)
    assert found is not None, "the field is required"
    return found


def _plan_partitions(ask: Ask) -> Rows:
    wanted = _more(ask)
    existing(ask)
    now = len(find(ask.cluster, ask.values["topic"]).partitions)
    if wanted <= now:
        fix = f"write more than {now}: a topic cannot have fewer than before"
        raise InField("partitions", usage(f"{ask.values['topic']} has {now} partitions", fix))
    return [{"topic": ask.values["topic"], "from": now, "to": wanted, "status": "would be added", "error": None}]


def _add_partitions(ask: Ask, rows: Rows) -> Rows:
    (row,) = topic_changes.alter_rows(ask.cluster, [ask.values["topic"]], rows[0]["to"], (), Raising())
    return [{**rows[0], **row, "status": "added"}]


PARTITIONS: Final = Change(
    "topic-partitions",
    "Add partitions to {topic}",
    "Add partitions",
    (TOPIC, Field("partitions", "Partitions in all", "number", "More than the topic has now.", is_required=True)),
    (("Topic", "topic"), ("#From", "from"), ("#To", "to"), ("Status", "status")),
    "Alter on the topic",
    _plan_partitions,
    _add_partitions,
    lambda values: (["topic", "alter", "--partitions", values["partitions"]], [values["topic"]]),
    page_of,
    same=("topic", "from"),
    blame=OF_TOPIC,
    note="A record with a key may go to another partition than records of this key did before.",
)

# --- fewer records


def _trim_options(values: Values) -> TrimOptions:
    with in_field("to"):
        topic_changes.trim_position(values["to"])
    return TrimOptions(values["to"], [values["partitions"]] if values["partitions"] else [])


def _plan_trim(ask: Ask) -> Rows:
    options = _trim_options(ask.values)
    existing(ask)
    with in_field("partitions"):
        return topic_changes.trim_preview(ask.cluster, ask.values["topic"], options, ask.failures)


def _trim(ask: Ask, rows: Rows) -> Rows:
    done = [dict(row) for row in rows]
    topic_changes.trim_rows(ask.cluster, done, ask.failures)
    return done


TRIM: Final = Change(
    "topic-trim",
    "Delete records of {topic}",
    "Delete these records",
    (
        TOPIC,
        Field(
            "to",
            "Up to",
            hint="Where the records that stay begin: end, an offset, -5 (before the end), @2026-01-31T12:00, @-7d.",
            placeholder="@-7d",
            is_required=True,
        ),
        Field("partitions", "Partitions", placeholder="all, or 0,2 or 0-3"),
    ),
    (
        ("#Partition", "partition"),
        ("#First offset", "from"),
        ("#Records stay from", "to"),
        ("#Records deleted", "records"),
        ("Status", "status"),
    ),
    "Delete on the topic, and Describe on it",
    _plan_trim,
    _trim,
    lambda values: (
        ["topic", "trim", *given(("--to", values["to"]), ("-p", values["partitions"])), "--execute"],
        [values["topic"]],
    ),
    page_of,
    same=("topic", "partition", "from"),
    typed_again=("topic",),
    blame=OF_TOPIC,
    note="Exactly these offsets are deleted, whatever is written in between. They do not come back.",
)

# --- none


def _plan_delete(ask: Ask) -> Rows:
    existing(ask)
    found = topics(ask.cluster, [ask.values["topic"]], Raising())
    return [
        {
            "topic": one.name,
            "id": one.topic_id,
            "partitions": len(one.partitions),
            "status": "would be deleted",
            "error": None,
        }
        for one in found
    ]


def _delete(ask: Ask, rows: Rows) -> Rows:
    done = topic_changes.delete_rows(ask.cluster, [row["topic"] for row in rows], Raising())
    return [{**row, **found} for row, found in zip(rows, done, strict=True)]


DELETE: Final = Change(
    "topic-delete",
    "Delete topic {topic}",
    "Delete {topic}",
    (TOPIC,),
    (("Topic", "topic"), ("Id", "id"), ("#Partitions", "partitions"), ("Status", "status")),
    "Delete on the topic, and Describe on it",
    _plan_delete,
    _delete,
    lambda values: (["topic", "delete", "--execute"], [values["topic"]]),
    lambda _: "/topics",
    same=("topic", "id"),
    typed_again=("topic",),
    blame=OF_TOPIC,
    note="The topic is deleted with all its records, and they do not come back.",
)
