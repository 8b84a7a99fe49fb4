"""Which protocol a group speaks, of which type; groups of Connect, Streams and schema registries; how many may join."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat_tests.differential.grouped import (
    RANGE,
    G,
    beat,
    commit,
    committed,
    describe,
    drop,
    join,
    joined,
    leave,
    part,
    state,
    sync,
)
from compat_tests.differential.script import Ask, Response, ResponseTo, Step, ask, script
from compat_tests.differential.steps import create
from kpybroker.wire.api import ApiKey


def protocols(*names: str) -> list[dict[str, Any]]:
    """Each with metadata of its own, too short to be taken for a subscription: Kafka stumbles over longer ones."""
    return [{"name": name, "metadata": name[:3].encode()} for name in names]


def elect(*members: Sequence[str]) -> list[Step]:
    """Members, each with a list of protocols, form one generation; its first member learns the choice."""
    first, *others = [protocols(*names) for names in members]
    steps: list[Step] = [
        join("", *first, v=5, bind={"m0": "member_id"}),
        join("{m0}", *first, v=5, bind={"g": "generation_id"}),
        sync("{m0}", "{g}", ("{m0}", b"all"), v=3),
    ]
    for number, names in enumerate(others, 1):
        one = f"m{number}"
        steps += [
            join("", *names, v=5, on=one, bind={one: "member_id"}),
            join(f"{{{one}}}", *names, v=5, on=one, response=Response.LATER),
            has_members(number + 1),
        ]
    return [*steps, join("{m0}", *first), *(ResponseTo(f"m{number}") for number in range(1, len(members)))]


def has_members(count: int) -> Ask:
    """Wait until the group has so many: the join of a new one has arrived."""
    return describe(v=5, until={f"groups.0.members.{count - 1}.client_id": "differential"})


def of_type(protocol_type: str, group: str, *names: str) -> list[Step]:
    """A group of that kind, from its foundation to its end."""
    mine = protocols(*names)
    assigned: dict[str, Any] = {"group_id": group, "protocol_type": protocol_type, "protocol_name": names[0]}
    return [
        join("", *mine, group=group, v=5, protocol_type=protocol_type, bind={"m": "member_id"}),
        join("{m}", *mine, group=group, protocol_type=protocol_type, bind={"g": "generation_id"}),
        sync("{m}", "{g}", v=5, **{**assigned, "protocol_type": "consumer"}),
        sync("{m}", "{g}", v=5, **{**assigned, "protocol_name": "other"}),
        sync("{m}", "{g}", ("{m}", b"tasks"), v=5, **assigned),
        beat("{m}", "{g}", group=group),
        describe(group, v=5),
        ask(ApiKey.LIST_GROUPS, v=5, states_filter=[], types_filter=[], only={"groups": f"group_id={group}"}),
        join("", RANGE, group=group),
        join("{m}", RANGE, group=group),
        join("", *mine, group=group, protocol_type="other"),
        commit(part(0, 7), member="{m}", generation="{g}", group_id=group, v=8),
        commit(part(0, 8), group_id=group, v=8),
        drop("{t}", 0, group=group),
        ask(ApiKey.DELETE_GROUPS, v=2, groups_names=[group]),
        leave(("{m}", None), group=group, v=5),
        describe(group, v=5),
        committed(0, group=group, v=7),
        join("", RANGE, group=group, v=5, bind={"c": "member_id"}),
        join("{c}", RANGE, group=group, bind={"g": "generation_id"}),
        describe(group, v=5),
        leave(("{c}", None), group=group, v=5),
        drop("{t}", 0, group=group),
        describe(group, v=5),
    ]


def more(name: str, **options: Any) -> Ask:
    """One more member wants in: its id, if it was promised one."""
    return join("", v=5, on=name, bind={name: "member_id"}, **options)


SCRIPTS = [
    script(
        "type-connect",
        ApiKey.JOIN_GROUP,
        "workers of Connect",
        create("{t}"),
        of_type("connect", G, "sessioned", "compatible"),
    ),
    script("type-stream", ApiKey.JOIN_GROUP, "a group of another kind", create("{t}"), of_type("stream", G, "stream")),
    script(
        "type-sr", ApiKey.JOIN_GROUP, "schema registries electing their leader", create("{t}"), of_type("sr", G, "v0")
    ),
    *(
        script(f"elect-{number}", ApiKey.JOIN_GROUP, f"the protocol of members with {members}", elect(*members))
        for number, members in enumerate(
            (
                (("range", "roundrobin"), ("roundrobin", "range")),
                (("cooperative-sticky", "range"), ("range", "cooperative-sticky")),
                (("a", "b", "c"), ("b", "c", "a"), ("c", "a", "b")),
                (("sticky", "range", "own"), ("range", "sticky"), ("range", "other", "sticky")),
                (("x", "common"), ("y", "common"), ("z", "common")),
                (("d", "c", "b", "a", "e", "f"), ("f", "e", "d", "c", "b", "a")),
            )
        )
    ),
    script(
        "protocols-in-common",
        ApiKey.JOIN_GROUP,
        "nothing in common with the rest, or less than before",
        elect(("range", "sticky"), ("sticky", "range", "own")),
        join("", *protocols("own")),
        join("", *protocols("own", "range"), v=5, on="late", bind={"late": "member_id"}),
        join("{m1}", *protocols("own"), on="m1"),
        join("{m0}", *protocols("other")),
        join("{m1}", *protocols("sticky"), on="m1", response=Response.LATER),
        state("PreparingRebalance"),
        join("{late}", *protocols("range"), on="late"),
        join("{late}", *protocols("sticky"), on="late", response=Response.LATER),
        beat("{m0}", 2),
        join("{m0}", *protocols("range")),
        join("{m0}", *protocols("range", "sticky")),
        ResponseTo("m1"),
        ResponseTo("late"),
        describe(v=5),
    ),
    script(
        "protocols-odd",
        ApiKey.JOIN_GROUP,
        "empty metadata, long ones, a name twice, an empty name",
        join("", {"name": "range", "metadata": b""}, group="{t}-1", v=5, bind={"m": "member_id"}),
        join("{m}", {"name": "range", "metadata": b""}, group="{t}-1"),
        join("", {"name": "", "metadata": b"x"}, group="{t}-2", v=5, bind={"m": "member_id"}),
        join("{m}", {"name": "", "metadata": b"x"}, group="{t}-2"),
        join("", {"name": "range", "metadata": b"\0" * 50_000}, group="{t}-3", v=5, bind={"m": "member_id"}),
        join("{m}", {"name": "range", "metadata": b"\0" * 50_000}, group="{t}-3", bind={"g": "generation_id"}),
        describe("{t}-1", "{t}-2", "{t}-3", v=5),
    ),
    script(
        "sync-too-large",
        ApiKey.SYNC_GROUP,
        "an assignment that does not fit into a record: refused, and everybody is to join again",
        joined("m"),
        join("{m}", RANGE, v=5, bind={"g": "generation_id"}),
        sync("{m}", "{g}", ("{m}", b"x" * 200_000)),
        describe(v=5),
        beat("{m}", "{g}"),
        join("{m}", RANGE, v=5, bind={"g": "generation_id"}),
        sync("{m}", "{g}", ("{m}", b"x")),
        describe(v=5),
    ),
    script(
        "sync-several",
        ApiKey.SYNC_GROUP,
        "followers that wait: ended by their leader, by a newcomer, by their own leaving",
        elect(("range",), ("range",)),
        sync("{m1}", 2, on="m1", response=Response.LATER),
        sync("{m0}", 2, ("{m0}", b"one"), ("{m1}", b"two"), ("who", b"three")),
        ResponseTo("m1"),
        join("{m0}", *protocols("range"), v=5, on="m0", response=Response.LATER),
        state("PreparingRebalance"),
        sync("{m1}", 2),
        join("{m1}", *protocols("range"), v=5, on="m1"),
        ResponseTo("m0"),
        sync("{m1}", 3, on="m1", response=Response.LATER),
        beat("{m1}", 3),
        join("", v=5, on="c", bind={"c": "member_id"}),
        join("{c}", v=5, on="c", response=Response.LATER),
        ResponseTo("m1"),
        sync("{m0}", 3, ("{m0}", b"late")),
        beat("{m0}", 3),
        leave(("{c}", None), v=5),
        ResponseTo("c"),
        join("{m0}", *protocols("range"), v=5, on="m0", response=Response.LATER),
        beat("{m1}", 3),
        leave(("{m1}", None), v=5),
        ResponseTo("m0"),
        sync("{m0}", 4),
        sync("{m0}", 4),
        describe(v=5),
    ),
    script(
        "max-size",
        ApiKey.JOIN_GROUP,
        "group.max.size is four here: who joins last is turned away, and if he was the leader",
        joined("a"),
        *(more(name) for name in "bcde"),
        *(
            step
            for count, name in enumerate("bcde", 2)
            for step in (join(f"{{{name}}}", v=5, on=name, response=Response.LATER), has_members(count))
        ),
        beat("{a}", 1),
        join("{a}"),
        describe(v=5),
        beat("{a}", 1),
        beat("{b}", 2),
        join(""),
        join("{a}"),
        join("", group_instance_id="static", v=5),
        leave(("{b}", None), v=5),
        join("", v=5, on="f", bind={"f": "member_id"}),
        describe(v=5),
    ),
    script(
        "consumer-group-heartbeat",
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        "the consumer group protocol is refused to members that join, stay and leave, in a group that is there or not",
        ask(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            group_id="{t}",
            rebalance_timeout_ms=30_000,
            subscribed_topic_names=["{t}"],
            topic_partitions=[],
        ),
        joined("m"),
        ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, group_id="{t}", member_id="{m}", member_epoch=1),
        ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, group_id="", member_id="who", member_epoch=-1),
        describe(),
        versions=(0, 0),
    ),
]
