"""Transactions that coordinators know, and the producers of a topic that its leaders remember.

Only the transactions of the page that is shown are described.
"""

from __future__ import annotations

import time
from operator import itemgetter
from typing import Any, Final, NamedTuple

from kpybroker.client.actions import transactions
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import Failures, usage
from kpybroker.console.queries.pages import Page, sorted_by
from kpybroker.console.queries.topics import PLACES_MAX, find

Rows = list[dict[str, Any]]


class Listed(NamedTuple):
    """One page of the transactional ids."""

    rows: Rows
    page: Page


COLUMNS: Final = ("transactional_id", "state", "producer_id", "coordinator")
"""What coordinators list of each, so that all can be sorted by them."""


def listed(cluster: Cluster, text: str, page_number: int, failures: Failures, sort: str = COLUMNS[0]) -> Listed:
    """The transactions of one page; `sort` is one of COLUMNS, with `-` before it for the largest first. Raises
    CommandError.
    """
    with cluster.wire() as wire:
        everything = transactions.list_rows(wire, failures)
        chosen = [row for row in everything if text.lower() in str(row["transactional_id"]).lower()]
        chosen = sorted_by(chosen, sort, {one: itemgetter(one) for one in COLUMNS})
        page = Page.of(len(chosen), page_number)
        rows = [
            {**row, **transactions.described(wire, str(row["transactional_id"]), failures)}
            for row in chosen[page.first : page.last]
        ]
    return Listed(rows, page)


HANGING_S: Final = 900.0
"""Kafka's ``transaction.max.timeout.ms``: no transaction is open for longer by its producer's will."""


def hanging(cluster: Cluster, failures: Failures) -> Rows:
    """Open transactions that no coordinator knows, the oldest first, with their age. Raises CommandError."""
    now_ms = time.time_ns() // 1_000_000
    with cluster.wire() as wire:
        found = transactions.hanging_rows(wire, None, HANGING_S, failures)
    rows = [{**row, "age_ms": now_ms - row["last_timestamp_ms"]} for row in found]
    return sorted(rows, key=lambda row: -row["age_ms"])


def producers(cluster: Cluster, topic: str, failures: Failures) -> Rows:
    """The idempotent and transactional producers, those with an open transaction first. Raises CommandError."""
    if len(find(cluster, topic).partitions) > PLACES_MAX:
        raise usage(f"{topic} has more than {PLACES_MAX} partitions", "use kpybroker transaction hanging")
    with cluster.wire() as wire:
        found = transactions.producers(wire, [topic], failures)
    return sorted(found, key=lambda row: (row["start_offset"] is None, row["partition"], -row["last_timestamp_ms"]))
