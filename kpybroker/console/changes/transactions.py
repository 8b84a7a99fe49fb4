"""Transactions aborted: by their id, or where no coordinator knows them, by their place in a log."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from kpybroker.client.actions import transactions
from kpybroker.client.actions.transactions import AbortOptions
from kpybroker.client.show.cells import moment
from kpybroker.console.changes.abilities import PRODUCERS, TRANSACTIONS, needing
from kpybroker.console.changes.change import Ask, Change, Field, Raising, Rows, Values, given, number

OFFSET_MAX: Final = 2**63 - 1
PARTITION_MAX: Final = 2**31 - 1


def _abort_id(ask: Ask, execute: bool) -> Rows:
    options = AbortOptions([ask.values["id"]], execute=execute)
    with ask.cluster.wire() as wire:
        rows = transactions.abort_ids(wire, ask.cluster.settings, options, Raising())
    return [{**row, "partitions": transactions.places(row), "started": moment(row["start_time_ms"])} for row in rows]


ABORT: Final = Change(
    "transaction-abort",
    "Abort the transaction of {id}",
    "Abort it",
    (Field("id", "Transactional id", is_required=True),),
    (
        ("Transactional id", "transactional_id"),
        ("State", "state"),
        ("#Producer id", "producer_id"),
        ("#Epoch", "producer_epoch"),
        ("Started", "started"),
        ("Partitions", "partitions"),
        ("Status", "status"),
    ),
    "Describe and Write on the transactional id",
    lambda ask: _abort_id(ask, False),
    lambda ask, _: _abort_id(ask, True),
    lambda values: (["transaction", "abort", "--execute"], [values["id"]]),
    lambda values: f"/transactions?q={quote(values['id'], safe='')}",
    same=("transactional_id", "producer_id", "producer_epoch", "state"),
    typed_again=("id",),
    blame={"TRANSACTIONAL_ID_NOT_FOUND": "id"},
    note="Its producer is fenced: its next request fails, and what it has written in the transaction is not read.",
    missing=needing(TRANSACTIONS),
)


def _abort_hanging(ask: Ask, execute: bool) -> Rows:
    values = ask.values
    place = number(values, "partition", 0, PARTITION_MAX), number(values, "start_offset", 0, OFFSET_MAX)
    with ask.cluster.wire() as wire:
        rows: list[dict[str, Any]] = transactions.abort_hanging(
            wire, AbortOptions((), values["topic"], *place, execute=execute), Raising()
        )
    return [{**row, "last_write": moment(row["last_timestamp_ms"])} for row in rows]


def _hanging_page(values: Values) -> str:
    return f"/transactions?topic={quote(values['topic'], safe='')}"


ABORT_HANGING: Final = Change(
    "transaction-abort-hanging",
    "Abort a transaction that hangs in {topic}",
    "Abort it",
    (
        Field("topic", "Topic", is_required=True),
        Field("partition", "Partition", "number", is_required=True),
        Field("start_offset", "Its first offset", "number", is_required=True),
    ),
    (
        ("Topic", "topic"),
        ("#Partition", "partition"),
        ("#First offset", "start_offset"),
        ("#Producer id", "producer_id"),
        ("#Epoch", "producer_epoch"),
        ("Last write", "last_write"),
        ("Status", "status"),
    ),
    "ClusterAction on the cluster (Alter from Kafka 4 on), and Read on the topic",
    lambda ask: _abort_hanging(ask, False),
    lambda ask, _: _abort_hanging(ask, True),
    lambda values: (
        [
            *("transaction", "abort"),
            *given(
                ("--topic", values["topic"]),
                ("--partition", values["partition"]),
                ("--start-offset", values["start_offset"]),
            ),
            "--execute",
        ],
        [],
    ),
    _hanging_page,
    same=("topic", "partition", "start_offset", "producer_id", "producer_epoch"),
    typed_again=("topic",),
    blame={"UNKNOWN_TOPIC_OR_PARTITION": "topic"},
    note="A marker is written into the partition. Do this only for a transaction that no coordinator knows.",
    missing=needing(PRODUCERS),
)
