"""`replay`: a topic's records from chosen offsets, once more, into another topic of the same cluster.

The end is fixed at the start, so a topic may be replayed into itself.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from kpybroker.client.actions.consume import ConsumeOptions, PlannedReader, plans
from kpybroker.client.actions.partitions import parse_partitions, topics
from kpybroker.client.actions.producing.room import Room, TargetTopic
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import Failures, usage
from kpybroker.client.connect.settings import Connection, Settings, load
from kpybroker.client.records.offsets import FORMS, BadOffset, parse_span
from kpybroker.client.records.record import Record
from kpybroker.client.transfer.copying import Target, copy


class ReplayOptions(NamedTuple):
    """What `replay` is asked for."""

    source: str
    target: str
    offset: str = "start"
    num: int | None = None
    partitions: Sequence[str] = ()
    by_key: bool = False
    create: bool = False


def replay(connection: Connection, options: ReplayOptions) -> int:
    """Copy the records; the exit code. Raises CommandError."""
    try:
        span = parse_span(options.offset, time.time_ns() // 1_000_000)
    except BadOffset as error:
        raise usage(str(error), f"write -o {FORMS}, or a range of two") from None
    parse_partitions(options.partitions)  # before anything is asked
    settings = load(connection)
    room = _room(settings, options)
    wanted = ConsumeOptions([options.source], exit_at_end=True, partitions=options.partitions)
    planned = plans(settings, wanted, span)
    reader = PlannedReader(settings, planned, exit_at_end=True)

    def where(record: Record) -> tuple[str, int]:
        return options.target, -1 if options.by_key or record.partition is None else record.partition

    return copy(reader, Target(settings, where, room), options.num)


def _room(settings: Settings, options: ReplayOptions) -> Room:
    """Both topics exist, and there is a place for each partition. Raises CommandError, or SystemExit when reported."""
    failures = Failures()
    cluster = Cluster(settings)
    found = topics(cluster, [options.source], failures)
    if failures.exit_code():
        raise SystemExit(1)
    chosen = parse_partitions(options.partitions)
    needed = max(chosen) + 1 if chosen else len(found[0].partitions)
    room = Room(cluster, settings.bootstrap, creates=options.create)
    room.prepare(cluster, [TargetTopic(found[0], options.target, needed)], by_key=options.by_key)
    return room
