"""What a share group holds, of a development broker: no request of Kafka's asks for it, the control channel does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kpybroker.client.connect.errors import CommandError, Failures
from kpybroker.console.queries.control import Control

ROWS_MAX: Final = 200
"""Rows of each table on a page."""
REASONS: Final = {
    "rejected": "rejected by its member",
    "delivery_limit": "delivered as often as the limit allows",
    "below_start": "deleted from the log before it was finished",
    "no_record": "no record: compacted, or of an aborted transaction",
}
UNKNOWN: Final = "not known: before the leader was started or elected, or too long ago"


class Held(NamedTuple):
    """Rows have topic, partition, first and last offset, deliveries and member; `left_out`: rows that are not shown."""

    in_flight: list[dict[str, Any]]
    archived: list[dict[str, Any]]
    left_out: int


def held(control: Control, name: str, failures: Failures) -> Held | None:
    """What members hold, and what was archived and why; None if there is no such group, or the channel fails."""
    try:
        found = control.call("share_group", group=name)
    except CommandError as error:
        failures.add("what the group holds is not known", error)
        return None
    if found is None:
        return None
    in_flight, archived = [], []
    for partition in found["partitions"]:
        place = {"topic": partition["topic"], "partition": partition["partition"]}
        in_flight += [{**place, **run} for run in partition["records"] if run["state"] == "acquired"]
        archived += [{**place, **row} for row in _archived(partition)]
    left_out = sum(max(0, len(rows) - ROWS_MAX) for rows in (in_flight, archived))
    return Held(in_flight[:ROWS_MAX], archived[:ROWS_MAX], left_out)


def _archived(partition: dict[str, Any]) -> list[dict[str, Any]]:
    """By offset: what has a reason, and what is archived above the start without one that is kept."""
    rows = [{**row, "reason": REASONS.get(row["reason"], row["reason"])} for row in partition["archived"]]
    for run in partition["records"]:
        if run["state"] == "archived":
            rows += _without_reason(run, partition["archived"])
    return sorted(rows, key=lambda row: row["first"])


def _without_reason(run: dict[str, Any], known: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    first = run["first"]
    for row in known:  # they are in order
        if row["last"] < first or row["first"] > run["last"]:
            continue
        if row["first"] > first:
            yield {**run, "first": first, "last": row["first"] - 1, "reason": UNKNOWN}
        first = row["last"] + 1
    if first <= run["last"]:
        yield {**run, "first": first, "reason": UNKNOWN}
