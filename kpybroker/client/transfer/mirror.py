"""`mirror`: topics of one cluster into topics of the same name in another, as a member of a group.

The group's offsets are in the source. They are committed when the target has acknowledged the records, batch by batch,
so it is at least once, and a mirror that is started again goes on where it was. Several mirrors of one group share the
partitions. The default group has the target's cluster id in its name: two targets do not share.

It copies records; with `--create` it also makes topics and partitions that the target lacks. It does not follow
settings, ACLs or offsets of groups, and finds no new topics. MirrorMaker 2 does that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kpybroker.client.actions.consume import ConsumeOptions
from kpybroker.client.actions.partitions import Place, Topic, bounds, topics
from kpybroker.client.actions.producing.room import Room, TargetTopic, in_target
from kpybroker.client.actions.topics import matched
from kpybroker.client.connect import profiles
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures, note, usage
from kpybroker.client.connect.settings import Connection, Settings, load
from kpybroker.client.records.offsets import Bounds
from kpybroker.client.records.record import Record
from kpybroker.client.transfer.copying import Target, copy
from kpybroker.client.transfer.member import MirrorReader


class MirrorOptions(NamedTuple):
    """What `mirror` is asked for; `group` None has the target's cluster id in its name."""

    topics: Sequence[str]
    to: str | None = None
    to_config: str | None = None
    to_options: Sequence[str] = ()
    to_profile: str | None = None
    group: str | None = None
    num: int | None = None
    exit_at_end: bool = False
    by_key: bool = False
    create: bool = False


def mirror(connection: Connection, options: MirrorOptions) -> int:
    """Copy until Ctrl-C, -n or -e; the exit code. Raises CommandError."""
    if options.to is None and options.to_config is None and options.to_profile is None:
        raise usage("the target cluster is not named", "name it: --to HOST:PORT, --to-config FILE or --to-profile NAME")
    settings = load(connection)
    to = load(_target(connection, options))
    source, target = Cluster(settings), Cluster(to)
    target_id = _check_two(source, target)
    group = options.group or f"kpybroker-mirror-{target_id}"
    found = _topics(source, options)
    room = Room(target, to.bootstrap, creates=options.create, errors=lambda: in_target(to.bootstrap))
    room.prepare(source, [TargetTopic(one, one.name, len(one.partitions)) for one in found], by_key=options.by_key)
    names = [one.name for one in found]
    wanted = ConsumeOptions(names, group=group, exit_at_end=options.exit_at_end)
    reader = MirrorReader(settings, wanted, _ends(source, settings, found) if options.exit_at_end else {})
    has_end = options.exit_at_end or options.num is not None
    if not has_end:
        ways = f"from {settings.bootstrap} to {to.bootstrap}"
        note(f"mirroring {', '.join(names)} {ways} as group {group}; Ctrl-C ends it")

    def where(record: Record) -> tuple[str, int]:
        return record.topic or "", -1 if options.by_key or record.partition is None else record.partition

    return copy(reader, Target(to, where, room), options.num, group=group, has_end=has_end)


def _target(connection: Connection, options: MirrorOptions) -> Connection:
    """How the target is reached. The environment names the source, so the address of a profile overrides it."""
    address, name = options.to, options.to_profile
    if name is not None and address is None:
        address = profiles.load(name).get("bootstrap.servers")
    return Connection(address, options.to_config, tuple(options.to_options), connection.timeout_s, name)


def _check_two(source: Cluster, target: Cluster) -> str:
    """The target's id. Raises CommandError if it is the source, or if one of them cannot be reached."""
    here = source.metadata().cluster_id
    with in_target(target.settings.bootstrap):
        there = target.metadata().cluster_id
    if here == there and here:
        raise usage("source and target are the same cluster", "name two: -b and --to; kpybroker replay copies a topic")
    return str(there)


def _topics(source: Cluster, options: MirrorOptions) -> list[Topic]:
    """Those of the names and patterns. Raises CommandError or, where failures are reported, SystemExit."""
    failures = Failures()
    found = topics(source, matched(source, options.topics), failures)
    if failures.exit_code():
        raise SystemExit(1)
    return found


def _ends(source: Cluster, settings: Settings, found: Sequence[Topic]) -> dict[Place, Bounds]:
    """Where a reader's partitions end now. Raises CommandError."""
    is_committed = settings.properties.get("isolation.level", "read_committed") == "read_committed"
    places = [one.place for topic in found for one in topic.partitions]
    ends = {}
    for place, edges in bounds(source, places, committed_only=is_committed).items():
        if isinstance(edges, CommandError):
            raise CommandError(f"{place[0]}-{place[1]}: {edges.cause}", edges.fix)
        ends[place] = edges
    return ends
