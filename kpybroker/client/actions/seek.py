"""`group seek`: move the committed offsets, or a share group's start offsets, of a group that has no members.

Where each partition goes is decided by `target`, a pure function of its committed offset and its bounds. Nothing is
committed before the whole table is known.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from kpybroker.client.actions.groups import describe_groups, no_such_group, state_name
from kpybroker.client.actions.lag import committed
from kpybroker.client.actions.partitions import Place, bounds, parse_places, time_lookup, topics
from kpybroker.client.actions.queues import groups as queues
from kpybroker.client.actions.topic_changes import DRY_RUN
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import FIXES, CommandError, Failures, kafka_error, note, usage
from kpybroker.client.connect.settings import Connection, load
from kpybroker.client.connect.wire import GROUP
from kpybroker.client.records.offsets import TIMES, BadOffset, Bounds, parse_position, resolve, within
from kpybroker.client.show.cells import Column
from kpybroker.client.show.output import Output

COLUMNS: Final = (
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("FROM", "from"),
    Column("TO", "to", style=lambda row: "bold" if row["from"] != row["to"] else ""),
    Column("LAG", "lag", wide=True),
    Column("STATUS", "status", style=lambda row: "bold red" if row["error"] else ""),
)
WOULD_MOVE: Final = "would move"
SHIFT: Final = re.compile(r"[+-]\d+")

Target = Callable[[Place, int | None, Bounds], int | None]
"""From a partition, its committed offset and its bounds, the new offset; None leaves it as it is."""


class SeekOptions(NamedTuple):
    """What `group seek` is asked for; exactly one of `to`, `to_group` and `to_file` is given."""

    to: str | None = None
    to_group: str | None = None
    to_file: str | None = None
    topics: Sequence[str] = ()
    execute: bool = False


def seek(connection: Connection, group: str, options: SeekOptions, output: Output) -> int:
    """Show from where to where the group moves, and move it if that was asked for."""
    check_options(options)
    cluster = Cluster(load(connection))
    failures = Failures()
    require_empty(cluster, group, failures)
    rows = preview(cluster, group, options, failures)
    if options.execute:
        commit(cluster, group, rows, failures)
    output.rows(rows, COLUMNS, empty="there is nothing to move")
    if not options.execute:
        note(DRY_RUN)
    return failures.exit_code()


def check_options(options: SeekOptions) -> None:
    """Raises CommandError where they say no place, or more than one, or a bad one; before anything is asked."""
    if sum(one is not None for one in (options.to, options.to_group, options.to_file)) != 1:
        raise usage("say where to: one of --to, --to-group and --to-file", "kpybroker group seek --help has examples")
    if options.to is not None and not SHIFT.fullmatch(options.to.strip()):
        parsed_position(options.to)


def preview(cluster: Cluster, group: str, options: SeekOptions, failures: Failures) -> list[dict[str, Any]]:
    """A row for each partition that has a place to go to; nothing is committed."""
    offsets = current(cluster, group)
    places, from_elsewhere = _places(cluster, options, offsets, failures)
    if not offsets and not places and not failures.count:
        raise no_such_group(group)
    usable = _bounds(cluster, places, failures)
    target = _target(cluster, options, usable, from_elsewhere)
    rows = [row for place in sorted(usable) if (row := seek_row(place, offsets.get(place), usable[place], target))]
    if queues.is_share_group(cluster, group):
        for row in rows:
            row["status"] = status_of(row, is_shared=True)
    return rows


def status_of(row: Mapping[str, Any], *, is_shared: bool) -> str:
    """Whether a partition would move. A share group's does at the same offset too: what was done above is forgotten."""
    return WOULD_MOVE if is_shared or row["from"] != row["to"] else "stays"


def current(cluster: Cluster, group: str) -> dict[Place, int]:
    """The committed offsets, or the start offsets of a share group. Raises CommandError."""
    if queues.is_share_group(cluster, group):
        return queues.start_offsets(cluster, group)
    return committed(cluster, group)


def require_empty(cluster: Cluster, group: str, failures: Failures) -> None:
    """Raises CommandError with the members if the group has some: they would overwrite what is committed here."""
    make_coordinator(cluster, group)
    found = describe_groups(cluster, [group], failures)
    if group not in found:
        raise SystemExit(failures.exit_code())
    members = found[group].members
    if state_name(found[group]) not in ("Empty", "Dead"):
        names = ", ".join(f"{member.client_id} at {member.host.lstrip('/')}" for member in members[:5])
        more = f" and {len(members) - 5} more" if len(members) > 5 else ""
        cause = f"group {group} has members: {names or 'joining now'}{more}"
        raise CommandError(cause, FIXES["NON_EMPTY_GROUP"], name="NON_EMPTY_GROUP")


def make_coordinator(cluster: Cluster, group: str) -> None:
    """Wait until the group has a coordinator. Kafka makes the topic of groups when it is first asked for one, and
    librdkafka's admin client (2.16) does not ask again: its first request in a new cluster times out.
    """
    try:
        with cluster.wire() as wire:
            wire.coordinator(group, GROUP)
    except CommandError:
        pass  # the request that follows fails in the same way, and reports it


def _places(
    cluster: Cluster, options: SeekOptions, offsets: Mapping[Place, int], failures: Failures
) -> tuple[list[Place], Mapping[Place, int]]:
    """The partitions to move, and the offsets that --to-group or --to-file give them."""
    elsewhere: Mapping[Place, int] = {}
    if options.to_group is not None:
        elsewhere = current(cluster, options.to_group)
        if not elsewhere:
            raise no_such_group(options.to_group)
    if options.to_file is not None:
        elsewhere = read_offsets(options.to_file)
    wanted = parse_places(options.topics)
    if not wanted:
        return (list(elsewhere) if options.to is None else list(offsets)), elsewhere
    found = topics(cluster, list(wanted), failures)
    places = []
    for topic in found:
        numbers = wanted[topic.name]
        existing = [partition.number for partition in topic.partitions]
        missing = sorted(set(numbers or []) - set(existing))
        if missing:
            raise usage(f"topic {topic.name} has no partition {missing[0]}", "kpybroker topic describe shows them")
        places += [(topic.name, number) for number in (existing if numbers is None else numbers)]
    return [place for place in places if options.to is not None or place in elsewhere], elsewhere


def read_offsets(path: str) -> dict[Place, int]:
    """Lines of topic, partition and offset, with spaces or commas between them; `-` is stdin. Raises CommandError."""
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise usage(
            f"{path} cannot be read: {error}", "write a line for each partition: TOPIC PARTITION OFFSET"
        ) from None
    return parse_offsets(text, path)


def parse_offsets(text: str, path: str) -> dict[Place, int]:
    """The offsets of a text; `path` is what an error names. Raises CommandError."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = re.split(r"[\s,]+", line.strip())
        if words == [""] or words[0].startswith("#"):
            continue
        if len(words) != 3 or not (words[1].isdigit() and words[2].isdigit()):
            raise usage(f"{path}:{number}: {line!r} is not TOPIC PARTITION OFFSET", "correct this line")
        found[words[0], int(words[1])] = int(words[2])
    return found


def _bounds(cluster: Cluster, places: Sequence[Place], failures: Failures) -> dict[Place, Bounds]:
    usable = {}
    for place, found in bounds(cluster, places).items():
        if isinstance(found, CommandError):
            failures.add(f"{place[0]}-{place[1]}", found)
        else:
            usable[place] = found
    return usable


def _target(
    cluster: Cluster, options: SeekOptions, usable: Mapping[Place, Bounds], elsewhere: Mapping[Place, int]
) -> Target:
    if options.to is None:
        return lambda place, current, edges: elsewhere.get(place)
    text = options.to.strip()
    if SHIFT.fullmatch(text):
        return shifted(int(text))
    position = parsed_position(text)
    at_time = time_lookup(cluster, usable)
    return lambda place, current, edges: resolve(position, edges, lambda timestamp: at_time(place, timestamp))


def shifted(by: int) -> Target:
    """Relative to the committed offset; a partition without one stays without."""
    return lambda place, current, edges: None if current is None else current + by


def parsed_position(text: str) -> Any:
    """A position; CommandError for a text that is none."""
    try:
        return parse_position(text, time.time_ns() // 1_000_000)
    except BadOffset as error:
        raise usage(str(error), f"write --to start, end, 5, +5 or -5 (from where it is), {TIMES}") from None


def seek_row(place: Place, current: int | None, edges: Bounds, target: Target) -> dict[str, Any] | None:
    """What happens to a partition; None if nothing can be said of it. Never outside of its bounds."""
    wanted = target(place, current, edges)
    if wanted is None:
        return None
    to = within(wanted, edges)
    row: dict[str, Any] = {"topic": place[0], "partition": place[1], "from": current, "to": to}
    return {**row, "lag": edges.end - to, "status": status_of(row, is_shared=False), "error": None}


def commit(cluster: Cluster, group: str, rows: Sequence[dict[str, Any]], failures: Failures) -> None:
    """Commit what `preview` returned; each row gets its status."""
    moving = {(row["topic"], row["partition"]): row for row in rows if row["status"] == WOULD_MOVE}
    if not moving:
        return
    to = {place: row["to"] for place, row in moving.items()}
    is_shared = queues.is_share_group(cluster, group)
    errors = queues.move(cluster, group, to) if is_shared else _committed(cluster, group, to)
    for place, error in errors.items():
        row = moving[place]
        row["status"] = "failed" if error else "moved"
        if error:
            row["error"] = failures.add(f"{place[0]}-{place[1]}", error)


def _committed(cluster: Cluster, group: str, to: Mapping[Place, int]) -> dict[Place, CommandError | None]:
    parts = [TopicPartition(topic, partition, offset) for (topic, partition), offset in to.items()]
    request = [ConsumerGroupTopicPartitions(group, parts)]
    result = cluster.result(cluster.admin.alter_consumer_group_offsets(request, **cluster.timeout)[group])
    return {
        (part.topic, part.partition): kafka_error(part.error) if part.error else None
        for part in result.topic_partitions
    }
