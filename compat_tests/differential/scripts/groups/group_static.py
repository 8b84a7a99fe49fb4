"""Static members (KIP-345): who is fenced, wherever the old incarnation waits, and what ends a static membership."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.grouped import (
    RANGE,
    ROBIN,
    SLOW_MS,
    G,
    beat,
    commit,
    committed,
    describe,
    join,
    leave,
    part,
    state,
    sync,
)
from compat_tests.differential.script import Ask, Response, ResponseTo, Step, script
from compat_tests.differential.steps import create
from compat_tests.differential.transactional import add_offsets, begin, commit_offsets, offset
from kpybroker.wire.api import ApiKey

STATIC_FROM = 5  # JoinGroup


def static(instance: str, member: str = "", *protocols: dict[str, Any], **options: Any) -> Ask:
    return join(member, *protocols, group_instance_id=instance, **{"v": STATIC_FROM, **options})


def one_instance(**options: Any) -> list[Step]:
    """`one` (id a) alone, stable in generation 1."""
    return [
        static("one", bind={"a": "member_id"}, **options),
        sync("{a}", 1, ("{a}", b"all"), group_instance_id="one", v=3),
    ]


def a_second_waits() -> list[Step]:
    """`two` wants in as well, and the group rebalances."""
    return [*one_instance(), static("two", on="b", response=Response.LATER), state("PreparingRebalance")]


def two_joined() -> list[Step]:
    """`two` (id b) is in, and no one knows its part yet."""
    return [*a_second_waits(), static("one", "{a}"), ResponseTo("b", {"b": "member_id"})]


def replaced() -> list[Step]:
    """`one` led, `two` followed, stable in generation 2; `two` has come back as c, and b is fenced."""
    return [
        *two_joined(),
        sync("{a}", 2, ("{a}", b"first"), ("{b}", b"second"), group_instance_id="one", v=3),
        sync("{b}", 2, group_instance_id="two", v=3),
        static("two", on="b", bind={"c": "member_id"}),
    ]


# (member id, instance id): right, fenced, of somebody else, unknown
IDENTITIES = (
    ("{a}", "one"),
    ("{c}", "two"),
    ("{b}", "two"),
    ("{a}", "two"),
    ("{c}", "one"),
    ("who", "two"),
    ("", "two"),
    ("{a}", "three"),
    ("who", "three"),
    ("{b}", None),
    ("{c}", None),
)

SCRIPTS = [
    script(
        "static-heartbeat",
        ApiKey.HEARTBEAT,
        "of either incarnation, under either name",
        replaced(),
        *(beat(member, 2, group_instance_id=instance) for member, instance in IDENTITIES),
        *(beat("{c}", generation, group_instance_id="two") for generation in (-1, 1, 3)),
        *(beat("{b}", generation, group_instance_id="two") for generation in (-1, 1, 3)),
        versions=(3, 4),
    ),
    script(
        "static-sync",
        ApiKey.SYNC_GROUP,
        "of either incarnation, under either name",
        replaced(),
        *(sync(member, 2, group_instance_id=instance) for member, instance in IDENTITIES),
        *(sync("{b}", generation, group_instance_id="two") for generation in (-1, 1, 3)),
        describe(v=5),
        versions=(3, 5),
    ),
    script(
        "static-commit",
        ApiKey.OFFSET_COMMIT,
        "of either incarnation, under either name",
        create("{t}"),
        replaced(),
        *(
            commit(part(0, number), member=member, generation=2, group_instance_id=instance)
            for number, (member, instance) in enumerate(IDENTITIES)
        ),
        *(commit(part(0, 50), member="{b}", generation=g, group_instance_id="two") for g in (-1, 1, 3)),
        committed(0, v=7),
        versions=(7, 9),
    ),
    script(
        "static-txn-commit",
        ApiKey.TXN_OFFSET_COMMIT,
        "of either incarnation, under either name",
        create("{t}"),
        replaced(),
        begin(),
        add_offsets(v=3),
        *(
            commit_offsets(offset(0, number), member_id=member, generation_id=2, group_instance_id=instance)
            for number, (member, instance) in enumerate(IDENTITIES)
        ),
        commit_offsets(offset(0, 50), member_id="{b}", generation_id=1, group_instance_id="two"),
        versions=(3, 4),
    ),
    script(
        "static-join",
        ApiKey.JOIN_GROUP,
        "of the fenced and the mistaken; the rest of the group hears nothing",
        replaced(),
        *(
            join(member, group_instance_id=instance)
            for member, instance in IDENTITIES
            if (member, instance) not in (("", "two"), ("{a}", "one"), ("{c}", "two"), ("{c}", None))
        ),
        join("{c}", group_instance_id="two"),
        join("{c}"),
        beat("{a}", 2, group_instance_id="one"),
        describe(v=5),
        versions=(5, 9),
    ),
    script(
        "static-join-fences-join",
        ApiKey.JOIN_GROUP,
        "the next incarnation ends the join in which the last one waits",
        one_instance(),
        join("", group_instance_id="two", on="b", response=Response.LATER),
        state("PreparingRebalance"),
        join("", group_instance_id="two", on="c", response=Response.LATER),
        ResponseTo("b", {"b": "member_id"}),
        beat("{a}", 1, group_instance_id="one"),
        join("{a}", group_instance_id="one"),
        ResponseTo("c", {"c": "member_id"}),
        join("{b}", group_instance_id="two"),
        describe(v=5),
        versions=(5, 9),
    ),
    script(
        "static-join-fences-sync",
        ApiKey.JOIN_GROUP,
        "the next incarnation ends the sync in which the last one waits, and the rebalance begins again",
        two_joined(),
        sync("{b}", 2, group_instance_id="two", v=3, on="b", response=Response.LATER),
        beat("{b}", 2, group_instance_id="two"),
        join("", group_instance_id="two", on="c", response=Response.LATER),
        ResponseTo("b"),
        state("PreparingRebalance"),
        sync("{a}", 2, ("{a}", b"first"), group_instance_id="one", v=3),
        join("{a}", group_instance_id="one"),
        ResponseTo("c", {"c": "member_id"}),
        sync("{a}", 3, ("{a}", b"first"), ("{c}", b"second"), group_instance_id="one", v=3),
        sync("{c}", 3, group_instance_id="two", v=3),
        describe(v=5),
        versions=(5, 9),
    ),
    script(
        "static-join-other-protocols",
        ApiKey.JOIN_GROUP,
        "an incarnation that knows other protocols: no rebalance as long as the same one is chosen",
        static("one", "", RANGE, ROBIN, bind={"a": "member_id"}),
        sync("{a}", 1, ("{a}", b"all"), group_instance_id="one", v=3),
        join("", RANGE, group_instance_id="one", bind={"b": "member_id", "g": "generation_id"}),
        sync("{b}", "{g}", group_instance_id="one", v=3),
        describe(v=5),
        join("", ROBIN, group_instance_id="one"),
        join("", {"name": "range", "metadata": b"changed"}, group_instance_id="one", bind={"c": "member_id"}),
        describe(v=5),
        join("", RANGE, group_instance_id="one", protocol_type="connect"),
        join("{b}", RANGE, group_instance_id="one"),
        join("{c}", RANGE, ROBIN, group_instance_id="one", bind={"g": "generation_id"}),
        beat("{c}", "{g}", group_instance_id="one"),
        versions=(5, 9),
    ),
    script(
        "static-leave",
        ApiKey.LEAVE_GROUP,
        "by id, by name, by both; twice in one request; under somebody else's name",
        replaced(),
        leave(("{b}", "two")),
        leave(("{a}", "two"), ("", "three"), ("who", "one")),
        leave(("{b}", None)),
        describe(v=5),
        leave(("{c}", "two"), ("", "two"), ("{c}", "two")),
        state("PreparingRebalance"),
        beat("{a}", 2, group_instance_id="one"),
        join("{a}", v=5, group_instance_id="one"),
        leave(("{a}", None)),
        describe(v=5),
        static("one", bind={"d": "member_id"}),
        leave(("", "one")),
        describe(v=5),
        versions=(3, 5),
    ),
    script(
        "static-leave-waiting",
        ApiKey.LEAVE_GROUP,
        "an administrator removes a member that waits in its join",
        a_second_waits(),
        leave(("", "two")),
        ResponseTo("b"),
        state("PreparingRebalance"),
        static("one", "{a}"),
        describe(v=5),
        versions=(3, 5),
    ),
    script(
        "static-slow",
        ApiKey.JOIN_GROUP,
        "static members that do not rejoin stay until their session ends",
        one_instance(rebalance_timeout_ms=SLOW_MS),
        join("", v=5, on="b", bind={"b": "member_id"}),
        join("{b}", on="b", rebalance_timeout_ms=SLOW_MS, bind={"g": "generation_id"}),
        describe(v=5),
        beat("{a}", 1, group_instance_id="one"),
        beat("{a}", 2, group_instance_id="one"),
        sync("{b}", "{g}", ("{b}", b"all"), v=3),
        versions=(5, 9),
    ),
    script(
        "static-expires",
        ApiKey.HEARTBEAT,
        "a static member that says nothing for its session timeout is gone, and its name is free",
        one_instance(session_timeout_ms=SLOW_MS, rebalance_timeout_ms=SLOW_MS),
        state("Empty"),
        beat("{a}", 1, group_instance_id="one"),
        static("one", bind={"b": "member_id"}),
        beat("{a}", 3, group_instance_id="one"),
        beat("{b}", 3, group_instance_id="one"),
        describe(G, v=5),
        versions=(4, 4),
    ),
]
