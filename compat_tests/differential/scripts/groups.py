"""Consumer groups: finding the coordinator, joining, syncing, staying, leaving; describing and deleting."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.script import Answer, AnswerTo, Ask, Close, Step, ask, script
from kpybroker.wire.api import ApiKey

FIND = ApiKey.FIND_COORDINATOR
JOIN = ApiKey.JOIN_GROUP
SYNC = ApiKey.SYNC_GROUP
HEARTBEAT = ApiKey.HEARTBEAT
LEAVE = ApiKey.LEAVE_GROUP
DESCRIBE = ApiKey.DESCRIBE_GROUPS
LIST = ApiKey.LIST_GROUPS
DELETE = ApiKey.DELETE_GROUPS

G = "{t}-g"
# whose commits are tried in every state: members a and b, nobody, a stranger
COMMIT_PROBES = (
    *((member, generation) for member in ("{a}", "{b}") for generation in (-1, 0, 1, 2, 3)),
    ("", -1),
    ("", 1),
    ("who", 1),
    ("who", -1),
)
RANGE = {"name": "range", "metadata": b"r"}
ROBIN = {"name": "roundrobin", "metadata": b"rr"}


def find(*keys: str, key_type: int = 0, **options: Any) -> Ask:
    return ask(FIND, key=keys[0] if keys else "", coordinator_keys=list(keys), key_type=key_type, **options)


def join(member_id: str = "", *protocols: dict[str, Any], group: str = G, **options: Any) -> Ask:
    fields: dict[str, Any] = {
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer",
        **options,
    }
    return ask(JOIN, group_id=group, member_id=member_id, protocols=list(protocols or [RANGE]), **fields)


def sync(member_id: str, generation: Any, assigned: dict[str, bytes] | None = None, **options: Any) -> Ask:
    fields: dict[str, Any] = {"protocol_type": "consumer", "protocol_name": "range", "group_id": G, **options}
    assignments = [{"member_id": to, "assignment": part} for to, part in (assigned or {}).items()]
    return ask(SYNC, member_id=member_id, generation_id=generation, assignments=assignments, **fields)


def sync_all(member_id: str, generation: Any, *assigned: tuple[str, bytes], **options: Any) -> Ask:
    """As a leader. Ids of members that are bound names cannot be keys of a dict."""
    fields: dict[str, Any] = {"protocol_type": "consumer", "protocol_name": "range", "group_id": G, **options}
    assignments = [{"member_id": to, "assignment": part} for to, part in assigned]
    return ask(SYNC, member_id=member_id, generation_id=generation, assignments=assignments, **fields)


def beat(member_id: str, generation: Any, group: str = G, **options: Any) -> Ask:
    return ask(HEARTBEAT, group_id=group, member_id=member_id, generation_id=generation, **options)


def leave(*members: tuple[str, str | None], group: str = G, **options: Any) -> Ask:
    first = members[0][0] if members else ""
    identities = [{"member_id": member, "group_instance_id": instance} for member, instance in members]
    return ask(LEAVE, group_id=group, member_id=first, members=identities, **options)


def describe(*groups: str, **options: Any) -> Ask:
    return ask(DESCRIBE, groups=list(groups or [G]), **options)


def joined(name: str, group: str = G, *protocols: dict[str, Any], **options: Any) -> list[Step]:
    """A lone member `name` (its id is bound to it) with generation 1, stable."""
    return [
        join("", *protocols, group=group, v=5, bind={name: "member_id"}, **options),
        join(f"{{{name}}}", *protocols, group=group, v=5, bind={f"{name}_gen": "generation_id"}, **options),
        sync_all(f"{{{name}}}", f"{{{name}_gen}}", (f"{{{name}}}", b"all"), v=3, group_id=group),
    ]


def state(expected: str) -> Ask:
    """Wait until the group has a state: what other connections sent has arrived."""
    return describe(v=5, until={"groups.0.group_state": expected})


SCRIPTS = [
    script(
        "find-coordinator",
        FIND,
        "of groups and transactions, several at once, kinds that there are not",
        find(G),
        find("{t}-a", "{t}-b"),
        find(""),
        find(),
        find(G, key_type=2),
        find(G, key_type=-1),
    ),
    script(
        "join-alone",
        JOIN,
        "one member: id, generation, assignment, again, changed, gone",
        join(bind={"m": "member_id"}),
        join("{m}", bind={"g": "generation_id"}),
        sync_all("{m}", "{g}", ("{m}", b"all")),
        beat("{m}", "{g}"),
        join("{m}", bind={"g": "generation_id"}),
        join("{m}", RANGE, ROBIN, bind={"g": "generation_id"}),
        sync_all("{m}", "{g}", ("{m}", b"more")),
        sync("{m}", "{g}"),
        describe(),
        leave(("{m}", None)),
        describe(),
    ),
    script(
        "join-mistakes",
        JOIN,
        "group ids, timeouts, protocols, members that are not known",
        join(group=""),
        join(session_timeout_ms=1),
        join(session_timeout_ms=10_000_000),
        join("who"),
        join("who", group="{t}-new"),
        join("", protocol_type=""),
        ask(
            JOIN,
            group_id="{t}-empty",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id="",
            protocol_type="consumer",
            protocols=[],
        ),
        joined("m"),
        join("", protocol_type="connect"),
        join("", ROBIN),
        join("{m}", ROBIN, bind={"g": "generation_id"}),
        join("{m}", protocol_type="connect"),
        join("who"),
        join("", group_instance_id="", group="{t}-i"),
        join("", group_instance_id="bad id!", group="{t}-j"),
        join("", group_instance_id="{t}-static", group="{t}-static", bind={"s": "member_id"}),
        leave(("{m}", None)),
    ),
    script(
        "join-two",
        JOIN,
        "a second member: the first learns from its heartbeat, both join, the leader assigns",
        join("", RANGE, ROBIN, v=5, bind={"a": "member_id"}),
        join("{a}", RANGE, ROBIN, v=5, bind={"g": "generation_id"}),
        sync_all("{a}", "{g}", ("{a}", b"all")),
        join("", ROBIN, RANGE, v=5, on="b", bind={"b": "member_id"}),
        join("{b}", ROBIN, RANGE, on="b", answer=Answer.LATER),
        state("PreparingRebalance"),
        beat("{a}", "{g}"),
        sync("{a}", "{g}"),
        join("{a}", RANGE, ROBIN, bind={"g": "generation_id"}),
        AnswerTo("b"),
        describe(v=5),
        beat("{a}", "{g}"),
        sync("{b}", "{g}", on="b", answer=Answer.LATER),
        beat("{b}", "{g}"),
        sync_all("{a}", "{g}", ("{a}", b"first"), ("{b}", b"second")),
        AnswerTo("b"),
        describe(v=5),
        sync("{b}", "{g}"),
        join("{b}", ROBIN, RANGE, on="b"),
        beat("{b}", "{g}"),
        leave(("{b}", None)),
        state("PreparingRebalance"),
        beat("{a}", "{g}"),
        join("{a}", RANGE, bind={"g": "generation_id"}),
        describe(v=5),
        leave(("{a}", None)),
        describe(v=5),
        Close("b"),
    ),
    script(
        "join-slow",
        JOIN,
        "who does not join again within the rebalance timeout is out, and the rest go on",
        join("", v=5, bind={"a": "member_id"}),
        join("{a}", v=5, rebalance_timeout_ms=300, bind={"g": "generation_id"}),
        sync_all("{a}", "{g}", ("{a}", b"all")),
        join("", v=5, on="b", bind={"b": "member_id"}),
        join("{b}", on="b", rebalance_timeout_ms=300, session_timeout_ms=6000),
        describe(v=5),
        beat("{a}", "{g}"),
        sync_all("{b}", 2, ("{b}", b"all")),
        describe(v=5),
        versions=(1, 9),
    ),
    script(
        "join-expires",
        JOIN,
        "a member that says nothing for its session timeout is out",
        join("", v=5, bind={"a": "member_id"}),
        join("{a}", session_timeout_ms=1000, rebalance_timeout_ms=1000, bind={"g": "generation_id"}),
        sync_all("{a}", "{g}", ("{a}", b"all")),
        state("Empty"),
        beat("{a}", "{g}"),
        versions=(9, 9),
    ),
    script(
        "join-static-two",
        JOIN,
        "two instances, one comes back while the other leads; batched leave by instance",
        join("", group_instance_id="one", bind={"a": "member_id", "g": "generation_id"}),
        sync_all("{a}", "{g}", ("{a}", b"all"), group_instance_id="one"),
        join("", group_instance_id="two", on="b", answer=Answer.LATER),
        state("PreparingRebalance"),
        join("{a}", group_instance_id="one", bind={"g": "generation_id"}),
        AnswerTo("b", {"b": "member_id"}),
        sync("{b}", "{g}", group_instance_id="two", on="b", answer=Answer.LATER),
        sync_all("{a}", "{g}", ("{a}", b"first"), ("{b}", b"second"), group_instance_id="one"),
        AnswerTo("b"),
        # the follower comes back: same generation, same assignment
        join("", group_instance_id="two", on="b", bind={"c": "member_id"}),
        sync("{c}", "{g}", group_instance_id="two", on="b"),
        beat("{b}", "{g}", group_instance_id="two"),
        # the leader comes back
        join("", group_instance_id="one", bind={"d": "member_id"}),
        sync("{d}", "{g}", group_instance_id="one"),
        describe(v=5),
        leave(("", "one"), ("", "two"), v=5),
        describe(v=5),
        versions=(5, 9),
    ),
    script(
        "join-static",
        JOIN,
        "KIP-345: an instance comes back under a new id, the old one is fenced",
        join("", group_instance_id="one", bind={"m": "member_id", "g": "generation_id"}),
        sync_all("{m}", "{g}", ("{m}", b"all"), group_instance_id="one"),
        describe(v=5),
        join("", group_instance_id="one", bind={"n": "member_id", "g": "generation_id"}),
        join("{m}", group_instance_id="one"),
        beat("{m}", "{g}", group_instance_id="one"),
        beat("{n}", "{g}", group_instance_id="one"),
        beat("{n}", "{g}", group_instance_id="two"),
        beat("{n}", "{g}"),
        sync("{m}", "{g}", group_instance_id="one"),
        sync("{n}", "{g}", group_instance_id="one"),
        join("{n}", RANGE, ROBIN, group_instance_id="one", bind={"g": "generation_id"}),
        sync_all("{n}", "{g}", ("{n}", b"new"), group_instance_id="one"),
        join("", RANGE, group_instance_id="one", bind={"o": "member_id", "g": "generation_id"}),
        describe(v=5),
        leave(("", "two"), ("{n}", "one"), ("who", None), v=5),
        leave(("", "one"), v=5),
        describe(v=5),
        leave(("", "one"), v=5),
        versions=(5, 9),
    ),
    script(
        "sync",
        SYNC,
        "generations, members, protocols, groups that are wrong",
        joined("m"),
        sync("{m}", "{m_gen}"),
        sync_all("{m}", "{m_gen}", ("{m}", b"again")),
        sync("{m}", 99),
        sync("{m}", -1),
        sync("who", "{m_gen}"),
        sync("", "{m_gen}"),
        sync("{m}", "{m_gen}", protocol_name="other"),
        sync("{m}", "{m_gen}", protocol_type="connect"),
        sync("{m}", "{m_gen}", protocol_name=None, protocol_type=None),
        sync("{m}", "{m_gen}", group_id="{t}-none"),
        sync("{m}", "{m_gen}", group_id=""),
        sync("{m}", "{m_gen}", group_instance_id="none"),
        join("{m}", RANGE, v=5, bind={"g": "generation_id"}),
        sync_all("{m}", "{g}", ("{m}", b"1"), ("who", b"2")),
        join("{m}", RANGE, v=5, bind={"g": "generation_id"}),
        sync_all("{m}", "{g}"),
        describe(v=5),
    ),
    script(
        "heartbeat",
        HEARTBEAT,
        "of members that are there or not, in the right generation or not",
        beat("who", 1),
        joined("m"),
        beat("{m}", "{m_gen}"),
        beat("{m}", 0),
        beat("{m}", 99),
        beat("who", "{m_gen}"),
        beat("", "{m_gen}"),
        beat("{m}", "{m_gen}", group="{t}-none"),
        beat("{m}", "{m_gen}", group=""),
        beat("{m}", "{m_gen}", group_instance_id="none"),
        join("{m}", RANGE, v=5, bind={"g": "generation_id"}),
        beat("{m}", "{g}"),
        leave(("{m}", None), v=5),
        beat("{m}", "{g}"),
    ),
    script(
        "leave",
        LEAVE,
        "known, unknown and pending members, several at once",
        leave(("who", None)),
        leave(("who", None), group=""),
        joined("m"),
        leave(("who", None)),
        join("", v=5, bind={"pending": "member_id"}),
        leave(("{pending}", None)),
        leave(("{m}", "none")),
        leave(("{m}", None)),
        leave(("{m}", None)),
        leave(),
        describe(v=5),
        joined("a", "{t}-h"),
        leave(("who", None), ("{a}", None), ("{a}", None), group="{t}-h"),
        describe("{t}-h", v=5),
    ),
    script(
        "describe-groups",
        DESCRIBE,
        "stable, rebalancing, empty, unknown",
        describe(),
        describe(""),
        joined("m", G, {"name": "range", "metadata": b"r"}),
        describe(),
        describe(include_authorized_operations=True),
        describe(G, "{t}-none", G),
        ask(DESCRIBE, groups=[]),
        join("{m}", RANGE, v=5),
        describe(),
        leave(("{m}", None), v=5),
        describe(),
        joined("c", "{t}-connect", RANGE, protocol_type="connect"),
        describe("{t}-connect"),
    ),
    script(
        "list-groups",
        LIST,
        "by state and by type",
        joined("m"),
        joined("n", "{t}-h"),
        leave(("{n}", None), group="{t}-h", v=5),
        *(
            ask(LIST, states_filter=states, types_filter=types, only={"groups": "group_id={t}"})
            for states, types in (
                ([], []),
                (["Stable"], []),
                (["stable"], []),
                (["Empty", "Dead"], []),
                (["Nonsense"], []),
                ([], ["classic"]),
                ([], ["Classic"]),
                ([], ["consumer"]),
                ([], ["nonsense"]),
                (["Stable"], ["classic"]),
            )
        ),
    ),
    script(
        "delete-groups",
        DELETE,
        "empty ones only",
        joined("m"),
        joined("n", "{t}-h"),
        leave(("{n}", None), group="{t}-h", v=5),
        ask(DELETE, groups_names=[G]),
        ask(DELETE, groups_names=["{t}-none"]),
        ask(DELETE, groups_names=[""]),
        ask(DELETE, groups_names=[G, "{t}-h", "{t}-none"]),
        ask(DELETE, groups_names=["{t}-h", "{t}-h"]),
        ask(DELETE, groups_names=[]),
        describe("{t}-h", v=5),
        leave(("{m}", None), v=5),
        ask(DELETE, groups_names=[G]),
    ),
]
