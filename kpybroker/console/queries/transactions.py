"""Transactions that coordinators know, and the producers of a topic that its leaders remember.

Only the transactions of the page that is shown are described.
"""

from __future__ import annotations

import time
from typing import Any, Final, NamedTuple

from kpybroker.client.actions import transactions
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import Failures, usage
from kpybroker.console.queries.pages import Page, Query, by_keys
from kpybroker.console.queries.topics import PLACES_MAX, find

Rows = list[dict[str, Any]]


class Listed(NamedTuple):
    """One page of the transactional ids."""

    rows: Rows
    page: Page


COLUMNS: Final = ("transactional_id", "state", "producer_id", "coordinator")
"""What coordinators list of each, so that all can be sorted by them."""


def listed(cluster: Cluster, wanted: Query, page_number: int, failures: Failures) -> Listed:
    """The transactions of one page. Raises CommandError."""
    with cluster.wire() as wire:
        everything = transactions.list_rows(wire, failures)
        chosen = [row for row in everything if wanted.text in str(row["transactional_id"]).lower()]
        chosen.sort(key=lambda row: str(row["transactional_id"]))
        chosen = wanted.sorted("sort", chosen, by_keys(*COLUMNS))
        page = Page.of(len(chosen), page_number)
        rows = [
            {**row, **transactions.described(wire, str(row["transactional_id"]), failures)}
            for row in chosen[page.first : page.last]
        ]
    return Listed(rows, page)


HANGING_S: Final = 900.0
"""Kafka's ``transaction.max.timeout.ms``: no transaction is open for longer by its producer's will."""


OF_PRODUCERS: Final = (
    *("partition", "producer_id", "producer_epoch", "last_sequence"),
    *("last_timestamp_ms", "start_offset"),
)
OF_HANGING: Final = (
    *("topic", "partition", "start_offset", "producer_id"),
    *("producer_epoch", "last_timestamp_ms", "age_ms"),
)


def hanging(cluster: Cluster, wanted: Query, failures: Failures) -> Rows:
    """Open transactions that no coordinator knows, the oldest first, with their age. Raises CommandError."""
    now_ms = time.time_ns() // 1_000_000
    with cluster.wire() as wire:
        found = transactions.hanging_rows(wire, None, HANGING_S, failures)
    rows = [{**row, "age_ms": now_ms - row["last_timestamp_ms"]} for row in found]
    return wanted.sorted("sort_hanging", sorted(rows, key=lambda row: -row["age_ms"]), by_keys(*OF_HANGING))


def producers(cluster: Cluster, topic: str, wanted: Query, failures: Failures) -> Rows:
    """The idempotent and transactional producers, those with an open transaction first. Raises CommandError."""
    if len(find(cluster, topic).partitions) > PLACES_MAX:
        raise usage(f"{topic} has more than {PLACES_MAX} partitions", "use kpybroker transaction hanging")
    with cluster.wire() as wire:
        found = transactions.producers(wire, [topic], failures)
    found.sort(key=lambda row: (row["start_offset"] is None, row["partition"], -row["last_timestamp_ms"]))
    return wanted.sorted("sort_producers", found, by_keys(*OF_PRODUCERS))
