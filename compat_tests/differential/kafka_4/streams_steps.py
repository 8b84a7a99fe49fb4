"""Steps of scripts about streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from compat_tests.differential.grouped import G
from compat_tests.differential.kafka_4.share_steps import sets
from compat_tests.differential.kafka_4.steps import delete, topic
from compat_tests.differential.script import Ask, Step, ask
from kpybroker.wire.api import ApiKey

HEARTBEAT, DESCRIBE = ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_DESCRIBE
STANDBYS: Final = "streams.num.standby.replicas"
INTERNAL: Final = ("{t}-by-key", "{t}-store")
"""What the topology that counts needs."""
JOINS_UNASSIGNED: Final[Mapping[str, Any]] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
HAS_NO_STATUS: Final[Mapping[str, Any]] = {"status": [[]]}

Topology = dict[str, Any]


def info(name: str, partitions: int = 0, *configs: tuple[str, str], replicas: int = 1) -> dict[str, Any]:
    """An internal topic."""
    pairs = [{"key": key, "value": value} for key, value in configs]
    return {"name": name, "partitions": partitions, "replication_factor": replicas, "topic_configs": pairs}


def part(name: str, *sources: str, **fields: Any) -> dict[str, Any]:
    """A subtopology."""
    return {"subtopology_id": name, "source_topics": list(sources), **fields}


def topology(*parts: dict[str, Any], epoch: int = 0) -> Topology:
    return {"epoch": epoch, "subtopologies": list(parts)}


def tasks(**partitions: Sequence[int]) -> list[dict[str, Any]]:
    """`s0=[0, 1]`: of subtopology 0."""
    return [{"subtopology_id": name[1:], "partitions": list(indexes)} for name, indexes in partitions.items()]


STORE: Final = info("{t}-store", 0, ("cleanup.policy", "compact"))
PLAIN: Final = topology(part("0", "{t}"))
STATEFUL: Final = topology(part("0", "{t}", state_changelog_topics=[STORE]))
COUNTING: Final = topology(
    part("0", "{t}", repartition_sink_topics=["{t}-by-key"]),
    part(
        "1",
        repartition_source_topics=[info("{t}-by-key")],
        state_changelog_topics=[STORE],
        copartition_groups=[{"source_topics": [], "source_topic_regex": [], "repartition_source_topics": [0]}],
    ),
)
MISSING: Final = topology(part("0", "{t}-none"))


def beat(member: str = "a", epoch: Any = 1, *, group: str = G, **options: Any) -> Ask:
    return ask(HEARTBEAT, **{"v": 0, **options}, group_id=group, member_id=member, member_epoch=epoch)


def runs(member: str, epoch: Any, active: Sequence[Any] = (), standby: Sequence[Any] = (), **options: Any) -> Ask:
    """A heartbeat that says which tasks the member runs."""
    return beat(member, epoch, active_tasks=list(active), standby_tasks=list(standby), warmup_tasks=[], **options)


def joins(member: str, sent: Topology | None = PLAIN, **options: Any) -> Ask:
    """The first heartbeat, of a process of its own."""
    fields: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "process_id": f"p-{member}", **JOINS_UNASSIGNED}
    return beat(member, 0, **{**fields, "topology": sent, **options})


def leaves(member: str = "a", **options: Any) -> Ask:
    return beat(member, -1, **options)


def view(*groups: str, **options: Any) -> Ask:
    return ask(DESCRIBE, **{"v": 0, **options}, group_ids=list(groups or [G]))


def seen(state: str) -> Ask:
    """Describe the group once it is in a state."""
    return view(until={"groups.0.group_state": state})


def known(partitions: int = 2) -> list[Step]:
    """A topic that the group coordinator knows; its id is bound."""
    return topic(partitions=partitions)


def a_streams_group(sent: Topology = PLAIN, *, made: Sequence[str] = ()) -> list[Step]:
    """A topic, and a group of one member that runs all tasks; `made` are internal topics that are there before it."""
    there = [step for name in made for step in topic(name, 2, id_as="other", probe=name[-1])]
    return [*known(), *there, joins("a", sent)]


def settled(sent: Topology) -> list[Step]:
    """The same where the coordinator makes an internal topic: one, since ours makes several one after the other."""
    return [*a_streams_group(sent), beat("a", 2, until={"member_epoch": 3})]


REVOKING: list[Step] = [
    *a_streams_group(),
    runs("a", 2, tasks(s0=[0, 1])),
    joins("b"),
]
"""Two members; the first is to give a task up, and the other waits for it."""
SHARED: list[Step] = [
    *REVOKING,
    runs("a", 2, tasks(s0=[0, 1])),
    runs("a", 2, tasks(s0=[0])),
    runs("b", 3),
]
"""Then each has one."""
STANDING_BY: list[Step] = [*sets((STANDBYS, "1")), *settled(STATEFUL), joins("b", STATEFUL)]
EMPTIED: list[Step] = [leaves(), seen("Empty")]
DELETED: list[Step] = [*EMPTIED, delete()]
