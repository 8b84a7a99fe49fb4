"""`offsets export` and `offsets import`: the committed offsets of groups as a file, and back.

Import commits as a group that has no members, as `group seek` does. Nothing is committed before all of the file has
been checked; an offset outside of its partition becomes the nearest that it has.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from kpybroker.client.actions.groups import is_wanted, list_groups, no_such_group, type_name
from kpybroker.client.actions.lag import committed
from kpybroker.client.actions.partitions import Place, bounds, matching, parse_places
from kpybroker.client.actions.seek import require_empty, seek_row
from kpybroker.client.actions.topic_changes import DRY_RUN
from kpybroker.client.connect import sasl
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures, kafka_error, note, usage
from kpybroker.client.connect.groups import raw_groups
from kpybroker.client.connect.groups.listing import SHARE
from kpybroker.client.connect.settings import Connection, load
from kpybroker.client.records.offset_files import BadFile, CommittedOffset, dump, parse
from kpybroker.client.show.cells import Column
from kpybroker.client.show.output import Output, write

FORMS: Final = "kpybroker offsets export writes such a file; CSV has topic,partition,offset a line"
COLUMNS: Final = (
    Column("GROUP", "group"),
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition"),
    Column("FROM", "from"),
    Column("TO", "to", style=lambda row: "bold" if row["from"] != row["to"] else ""),
    Column("LAG", "lag", wide=True),
    Column("STATUS", "status", style=lambda row: "bold red" if row["error"] else ""),
)


class ExportOptions(NamedTuple):
    """What `offsets export` is asked for; `format_name` None follows the name of the file."""

    patterns: Sequence[str]
    file: str | None = None
    format_name: str | None = None
    topics: Sequence[str] = ()


class ImportOptions(NamedTuple):
    """What `offsets import` is asked for."""

    file: str
    group: str | None = None
    execute: bool = False


# --- export


def export(connection: Connection, options: ExportOptions) -> int:
    """Write the offsets of the groups to the file or to standard output; the exit code."""
    wanted = parse_places(options.topics)
    cluster = Cluster(load(connection))
    failures = Failures()
    rows: list[CommittedOffset] = []
    for group in _groups(cluster, options.patterns, failures):
        try:
            found = [row for row in committed_rows(cluster, group) if not wanted or is_wanted(row[1:3], wanted)]
            if not found:
                raise (
                    no_such_group(group)
                    if not wanted
                    else CommandError(
                        "it has no committed offset of these topics", "kpybroker group describe shows the offsets"
                    )
                )
        except CommandError as error:
            failures.add(f"group {group}", error)
            continue
        rows += found
    if failures.count:
        return failures.exit_code()  # a file that lacks something is worse than none
    name = options.format_name or ("csv" if (options.file or "").endswith(".csv") else "json")
    _write(options.file, dump(rows, name))
    note(f"exported {len(rows)} offset{'s' if len(rows) != 1 else ''}")
    return 0


def _groups(cluster: Cluster, patterns: Sequence[str], failures: Failures) -> list[str]:
    """Names as they are, and the groups that a pattern matches."""
    named = [pattern for pattern in patterns if not set("*?[") & set(pattern)]
    shapes = [pattern for pattern in patterns if pattern not in named]
    listed = list_groups(cluster, failures) if shapes else {}
    found = matching([name for name, group in listed.items() if type_name(group) != SHARE], shapes)
    if shapes and not found and not failures.count:
        failures.add("groups", CommandError(f"none matches {' or '.join(shapes)}", "kpybroker group list shows them"))
    return list(dict.fromkeys([*named, *found]))


def committed_rows(cluster: Cluster, group: str) -> list[CommittedOffset]:
    """What the group has committed, sorted. Raises CommandError.

    Asked by ourselves: librdkafka reads beyond the end of an offset's metadata.
    """
    settings = cluster.settings
    if settings.protocol.startswith("SASL") and not sasl.is_known(settings.properties):
        note(f"note: with sasl.mechanism={sasl.mechanism(settings.properties)} the metadata of offsets are not read")
        offsets = committed(cluster, group)
        return [CommittedOffset(group, *place, offset) for place, offset in sorted(offsets.items())]
    return [CommittedOffset(group, *found) for found in raw_groups.committed(settings, group)]


def _write(path: str | None, text: str) -> None:
    """All of it or nothing: a file of that name stays as it was until the new one is whole."""
    if path is None or path == "-":
        write(text)
        return
    fresh = f"{path}.{os.getpid()}.part"
    try:
        Path(fresh).write_text(text, encoding="utf-8")
        os.replace(fresh, path)
    except OSError as error:
        Path(fresh).unlink(missing_ok=True)
        raise usage(f"{path} cannot be written: {error.strerror}", "name a file that this user may write") from None


# --- import


def import_offsets(connection: Connection, options: ImportOptions, output: Output) -> int:
    """Show where each group would move, and move it if that was asked for; the exit code."""
    by_group = _by_group(_read(options.file), options)
    cluster = Cluster(load(connection))
    failures = Failures()
    rows: list[dict[str, Any]] = []
    for group, offsets in by_group.items():
        require_empty(cluster, group, failures)
        rows += _preview(cluster, group, offsets, failures)
    if options.execute and not failures.count:
        for group, offsets in by_group.items():
            _commit(cluster, group, offsets, [row for row in rows if row["group"] == group], failures)
    output.rows(rows, COLUMNS, empty="there is nothing to move")
    if not options.execute:
        note(DRY_RUN)
    elif any(row["status"] == "would move" for row in rows):
        note("nothing was changed")
    return failures.exit_code()


def _read(path: str) -> list[CommittedOffset]:
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        rows = parse(data.decode("utf-8-sig"))
    except OSError as error:
        raise usage(f"{path} cannot be read: {error.strerror}", FORMS) from None
    except UnicodeDecodeError:
        raise usage(f"{path} is no text in UTF-8", FORMS) from None
    except BadFile as error:
        raise usage(f"{path}: {error}", FORMS) from None
    if not rows:
        raise usage(f"{path} has no offsets", FORMS)
    return rows


def _by_group(rows: Sequence[CommittedOffset], options: ImportOptions) -> dict[str, dict[Place, CommittedOffset]]:
    """By group and partition; `--group` names the group of a file that has one, or none."""
    named = {row.group for row in rows}
    if options.group is not None and len(named) > 1:
        raise usage(f"{options.file} has {len(named)} groups, and --group names one", "leave out --group")
    if options.group is None and None in named:
        raise usage(f"{options.file} does not say of which group the offsets are", "name it: --group GROUP")
    found: dict[str, dict[Place, CommittedOffset]] = {}
    for row in rows:
        group = options.group or row.group
        assert group is not None, "checked above"
        found.setdefault(group, {})[row.topic, row.partition] = row
    return found


def _preview(
    cluster: Cluster, group: str, offsets: Mapping[Place, CommittedOffset], failures: Failures
) -> list[dict[str, Any]]:
    present = {(row.topic, row.partition): row.offset for row in committed_rows(cluster, group)}
    rows = []
    for place, edges in bounds(cluster, offsets).items():
        if isinstance(edges, CommandError):
            failures.add(f"{place[0]}-{place[1]}", edges)
            continue
        row = seek_row(place, present.get(place), edges, lambda where, current, found: offsets[where].offset)
        assert row is not None, "each has an offset"
        rows.append({"group": group, **row})
    return rows


def _commit(
    cluster: Cluster,
    group: str,
    offsets: Mapping[Place, CommittedOffset],
    rows: Sequence[dict[str, Any]],
    failures: Failures,
) -> None:
    """All of the group's rows, with the metadata of the file; each row gets its status.

    A group may get a member after it was found empty: then its rows fail, and other groups are moved.
    """
    by_place = {(row["topic"], row["partition"]): row for row in rows}
    try:
        errors = _committed(
            cluster, group, [offsets[place]._replace(offset=row["to"]) for place, row in by_place.items()]
        )
    except CommandError as error:
        reported = failures.add(f"group {group}", error)
        for row in by_place.values():
            row |= {"status": "failed", "error": reported}
        return
    for place, row in by_place.items():
        refused = errors.get(place)
        row["status"] = "failed" if refused else ("stays" if row["from"] == row["to"] else "moved")
        if refused:
            row["error"] = failures.add(f"{place[0]}-{place[1]}", refused)


def _committed(cluster: Cluster, group: str, offsets: Sequence[CommittedOffset]) -> Mapping[Place, CommandError | None]:
    """By partition why it was not committed. librdkafka adds a zero byte to metadata. Raises CommandError."""
    if any(one.metadata for one in offsets):
        found = [raw_groups.Committed(one.topic, one.partition, one.offset, None, one.metadata) for one in offsets]
        return raw_groups.commit(cluster.settings, group, found)
    request = [ConsumerGroupTopicPartitions(group, [TopicPartition(*one[1:4]) for one in offsets])]
    result = cluster.result(cluster.admin.alter_consumer_group_offsets(request, **cluster.timeout)[group])
    return {
        (one.topic, one.partition): kafka_error(one.error) if one.error else None for one in result.topic_partitions
    }
