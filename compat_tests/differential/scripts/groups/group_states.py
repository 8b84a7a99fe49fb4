"""What each API says of a group in each of its states: nothing there, an id promised, alone and unassigned, stable, a
second member promised, rebalancing, unassigned, assigned in part, assigned, empty, deleted.

The probes of one script are asked in all of them, and do not lead from one to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat_tests.differential.grouped import (
    COMMIT_PROBES,
    ROBIN,
    G,
    beat,
    commit,
    committed,
    describe,
    drop,
    everything,
    join,
    leave,
    part,
    state,
    sync,
)
from compat_tests.differential.script import Response, ResponseTo, Step, ask, script
from compat_tests.differential.steps import create
from compat_tests.differential.transactional import add_offsets, begin, commit_offsets, offset
from kpybroker.wire.api import ApiKey

# A consumer's subscription, version 0, to one topic; its length stands in it, so the name is the same in all scripts.
SUBSCRIBED = {"name": "range", "metadata": b"\0\0\0\0\0\1\0\4mine\xff\xff\xff\xff"}


def in_every_state(*probes: Step, protocol_type: str = "consumer", ask_promised: bool = True) -> list[Step]:
    """Members a and b; what they are called is known before they are there."""

    def joins(member: str, **options: Any) -> Step:
        return join(member, SUBSCRIBED, v=5, protocol_type=protocol_type, **options)

    def assigns(generation: int, *parts: tuple[str, bytes]) -> Step:
        return sync("{a}", generation, *parts, v=3)

    once: Sequence[Step] = probes
    return [
        join("", group="{t}-elsewhere", v=5, bind={"a": "member_id"}),
        join("", group="{t}-elsewhere", v=5, bind={"b": "member_id"}),
        *once,
        joins("", bind={"a": "member_id"}),
        *(once if ask_promised else []),
        joins("{a}"),
        *once,
        assigns(1, ("{a}", b"all")),
        *once,
        joins("", on="b", bind={"b": "member_id"}),
        *once,
        joins("{b}", on="b", response=Response.LATER),
        state("PreparingRebalance"),
        *once,
        joins("{a}"),
        ResponseTo("b"),
        *once,
        assigns(2, ("{a}", b"one"), ("{b}", b"two")),
        *once,
        sync("{b}", 2, v=3),
        *once,
        leave(("{b}", None), ("{a}", None), v=3),
        *once,
        ask(ApiKey.DELETE_GROUPS, v=2, groups_names=[G]),
        *once,
    ]


SCRIPTS = [
    script(
        "states-heartbeat",
        ApiKey.HEARTBEAT,
        "by each member and by strangers, in each generation",
        in_every_state(
            *(beat(member, generation) for member in ("{a}", "{b}") for generation in (-1, 0, 1, 2, 3)),
            beat("who", 1),
            beat("", 1),
            beat("{a}", 1, group_instance_id="none"),
        ),
    ),
    script(
        "states-sync",
        ApiKey.SYNC_GROUP,
        "wrong ones: generations, members, protocols",
        in_every_state(
            *(sync(member, generation) for member in ("{a}", "{b}") for generation in (-1, 0, 3)),
            sync("who", 1),
            sync("", 2),
            sync("{a}", 1, group_instance_id="none"),
            *(sync("{a}", generation, protocol_name="other") for generation in (1, 2)),
            *(sync("{b}", generation, protocol_type="connect") for generation in (1, 2)),
            sync("{a}", 2, protocol_name=None),
        ),
        versions=(5, 5),
    ),
    script(
        "states-sync-old",
        ApiKey.SYNC_GROUP,
        "the same before protocols were sent along",
        in_every_state(
            *(sync(member, generation) for member in ("{a}", "{b}") for generation in (-1, 0, 3)),
            sync("who", 1),
            sync("", 2),
        ),
        versions=(0, 4),
    ),
    script(
        "states-join",
        ApiKey.JOIN_GROUP,
        "of strangers, with timeouts and protocols that do not do",
        in_every_state(
            join("who"),
            join("who", ROBIN),
            join("{a}", group_instance_id="none"),
            join("{b}", session_timeout_ms=1),
            join("", session_timeout_ms=1),
            join("", protocol_type=""),
            join("", group=""),
        ),
        versions=(5, 9),
    ),
    script(
        "states-leave",
        ApiKey.LEAVE_GROUP,
        "those who are not there, by id and by name, alone and several at once; no one",
        in_every_state(
            leave(("who", None)),
            leave(("", None)),
            leave(("", "none")),
            leave(("who", "none"), ("", "other"), ("who", None)),
            leave(),
        ),
        versions=(3, 5),
    ),
    script(
        "states-describe",
        ApiKey.DESCRIBE_GROUPS,
        "as it is described",
        in_every_state(describe(), describe(G, "{t}-none")),
    ),
    script(
        "states-list",
        ApiKey.LIST_GROUPS,
        "as it is listed, by its state and others",
        in_every_state(
            *(
                ask(ApiKey.LIST_GROUPS, states_filter=states, types_filter=[], only={"groups": f"group_id={G}"})
                for states in (
                    [],
                    ["Empty"],
                    ["PreparingRebalance"],
                    ["CompletingRebalance"],
                    ["Stable"],
                    ["Dead"],
                    ["Assigning", "Reconciling"],
                )
            )
        ),
    ),
    script(
        "states-delete",
        ApiKey.DELETE_GROUPS,
        "deleting it; where it was deleted, it is founded again",
        in_every_state(
            ask(ApiKey.DELETE_GROUPS, groups_names=[G]),
            ask(ApiKey.DELETE_GROUPS, groups_names=[G, "{t}-none"]),
            ask(ApiKey.DELETE_GROUPS, groups_names=[""]),
            ask_promised=False,
        ),
    ),
    script(
        "states-commit",
        ApiKey.OFFSET_COMMIT,
        "by each member and by strangers, in each generation",
        create("{t}", partitions=2),
        in_every_state(
            *(commit(part(0, 10), member=member, generation=generation) for member, generation in COMMIT_PROBES),
            committed(0, 1, v=7),
        ),
        versions=(1, 9),
    ),
    script(
        "states-commit-static",
        ApiKey.OFFSET_COMMIT,
        "with names that no member has",
        create("{t}"),
        in_every_state(
            commit(part(0, 1), group_instance_id="none"),
            commit(part(0, 2), member="{a}", generation=1, group_instance_id="none"),
            commit(part(0, 3), member="{b}", generation=2, group_instance_id="none"),
            commit(part(0, 4), generation=2, group_instance_id="none"),
            committed(0, v=7),
        ),
        versions=(7, 9),
    ),
    script(
        "states-commit-tree",
        ApiKey.OFFSET_COMMIT,
        "version 0 looks at no group",
        create("{t}"),
        in_every_state(commit(part(0, 1)), committed(0, v=0), committed(0, v=7)),
        versions=(0, 0),
    ),
    script(
        "states-fetch",
        ApiKey.OFFSET_FETCH,
        "what was committed stays to be read, whatever its members do",
        create("{t}", partitions=2),
        commit(part(0, 5), v=8),
        commit(part(1, 6), v=0),
        in_every_state(committed(0, 1), committed(0, require_stable=True), committed(0, topic="{t}-none")),
    ),
    script(
        "states-delete-offsets",
        ApiKey.OFFSET_DELETE,
        "of a consumer group: of topics that its members read, and of others",
        create("{t}", partitions=3),
        create("mine", until={"topics.0.error_code": [0, 36]}),
        commit(part(0, 5), part(1, 6), v=8),
        in_every_state(
            drop("{t}", 0),
            drop("mine", 0),
            drop("{t}", 7),
            drop("{t}-none", 0),
            ask(ApiKey.OFFSET_DELETE, group_id=G, topics=[]),
            everything(v=7),
        ),
    ),
    script(
        "states-delete-offsets-connect",
        ApiKey.OFFSET_DELETE,
        "of a group whose members are no consumers",
        create("{t}", partitions=3),
        create("mine", until={"topics.0.error_code": [0, 36]}),
        in_every_state(
            drop("{t}", 0), drop("mine", 0), drop("{t}-none", 0), protocol_type="connect", ask_promised=False
        ),
    ),
    script(
        "states-txn-commit",
        ApiKey.TXN_OFFSET_COMMIT,
        "in a transaction: of each member and of strangers, in each generation (KIP-447)",
        create("{t}", partitions=2),
        begin(),
        add_offsets(v=3),
        in_every_state(
            *(
                commit_offsets(offset(0, 10), member_id=member, generation_id=generation)
                for member, generation in COMMIT_PROBES
            ),
            commit_offsets(offset(1, 11), member_id="{a}", generation_id=1, group_instance_id="none"),
            committed(0, 1, v=7, require_stable=True),
            ask_promised=False,
        ),
    ),
]
