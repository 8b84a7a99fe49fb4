"""`mirror`: topics of one cluster into topics of the same name in another, as a member of a group.

The group's offsets are in the source, and they are committed after the target has acknowledged the records: at least
once, and a mirror that is started again goes on where it was. Several mirrors of one group share the partitions.

It copies records and nothing else: no settings, ACLs or offsets of groups, and it finds no new topics. MirrorMaker 2
does that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kpybroker.client.actions.consume import ConsumeOptions, GroupReader
from kpybroker.client.actions.partitions import topics
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import Failures, usage
from kpybroker.client.connect.settings import Connection, Settings, load
from kpybroker.client.records.offsets import START, Span
from kpybroker.client.transfer.copying import Target, copy, same_partition


class MirrorOptions(NamedTuple):
    """What `mirror` is asked for."""

    topics: Sequence[str]
    to: str | None = None
    to_config: str | None = None
    to_options: Sequence[str] = ()
    group: str = "kpybroker-mirror"
    num: int | None = None
    exit_at_end: bool = False
    by_key: bool = False


def mirror(connection: Connection, options: MirrorOptions) -> int:
    """Copy until Ctrl-C, -n or -e; the exit code. Raises CommandError."""
    if options.to is None and options.to_config is None:
        raise usage("the target cluster is not named", "name it: --to HOST:PORT, or --to-config FILE")
    settings = load(connection)
    to = load(Connection(options.to, options.to_config, tuple(options.to_options), connection.timeout_s))
    _check(settings, to, options)
    wanted = ConsumeOptions(options.topics, group=options.group, exit_at_end=options.exit_at_end)
    reader = GroupReader(settings, wanted, Span(START))

    def where(message: Any) -> tuple[str, int]:
        return message.topic(), -1 if options.by_key else message.partition()

    return copy(reader, Target(to, where), options.num)


def _check(settings: Settings, to: Settings, options: MirrorOptions) -> None:
    """Two clusters, and each topic is in both of them."""
    source, target = Cluster(settings), Cluster(to)
    ids = source.metadata().cluster_id, target.metadata().cluster_id
    if ids[0] == ids[1] and ids[0]:
        raise usage("source and target are the same cluster", "name two: -b and --to; kpybroker replay copies a topic")
    failures = Failures()
    there = {topic.name: topic for topic in topics(target, options.topics, failures)}
    here = topics(source, options.topics, failures)
    if failures.exit_code():
        raise SystemExit(1)
    if not options.by_key:
        for topic in here:
            same_partition(there[topic.name], len(topic.partitions), "--by-key")
