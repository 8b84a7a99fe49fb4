"""What each API says of a consumer group in each of its states: nothing there, one member, a second one that waits,
partitions that are given up, stable, a member gone, a static member away, empty, deleted, with classic members.

The probes of one script are asked in all of them, and do not lead from one to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat_tests.differential.grouped import (
    COMMIT_PROBES,
    G,
    commit,
    committed,
    describe,
    drop,
    everything,
    leave,
    part,
)
from compat_tests.differential.kafka_4.steps import (
    DESCRIBE,
    HEARTBEAT,
    beat,
    classic_beats,
    classic_joins,
    classic_syncs,
    delete,
    full,
    joins,
    leaves,
    listed,
    next_to_4,
    protocol,
    seen,
    topic,
    view,
)
from compat_tests.differential.script import Step, ask
from compat_tests.differential.transactional import add_offsets, begin, commit_offsets, offset
from kpybroker.wire.api import ApiKey

STATIC: dict[str, Any] = {"instance_id": "two"}


def in_every_state(*probes: Step, first: bool = True) -> list[Step]:
    """Members a, and b which is static; c is the classic one. `first`: also before there is a group."""
    once: Sequence[Step] = probes
    return [
        *topic(),
        *(once if first else []),
        joins("a", "{t}"),
        *once,
        joins("b", "{t}", **STATIC),
        *once,
        beat("a", 2),
        *once,
        beat("a", 2, {"id": [0, 1]}),
        *once,
        beat("b", 3, **STATIC),
        seen("Stable", v=0),
        *once,
        leaves("b", -2, **STATIC),
        *once,
        classic_joins("", group_instance_id="two", bind={"c": "member_id"}),
        *once,
        classic_syncs("{c}", 3, group_instance_id="two"),
        *once,
        leave(("", "two"), v=5),
        *once,
        leaves("a"),
        seen("Empty", v=0),
        *once,
        delete(),
        *once,
    ]


SCRIPTS = [
    next_to_4(
        "cg-states-heartbeat",
        HEARTBEAT,
        "wrong ones: strangers, instances, epochs, expressions, assignors, one member too many",
        in_every_state(
            beat("who", 1),
            beat("who", -1),
            beat("who", 1, **STATIC),
            beat("a", 1),
            beat("a", 9),
            beat("b", 9, {"id": [0]}, **STATIC),
            beat("a", 2, **STATIC),
            beat("a", -2),
            beat("a", -1, instance_id="none"),
            joins("who", subscribed_topic_regex="("),
            joins("who", server_assignor="none"),
            full("who", 3, "{t}"),
        ),
    ),
    next_to_4(
        "cg-states-describe",
        DESCRIBE,
        "as it is described, and again with others",
        in_every_state(view(v=None), view(G, "{t}-none", "", G, v=None)),
    ),
    next_to_4(
        "cg-states-describe-rights",
        DESCRIBE,
        "with what the client may do",
        in_every_state(view(v=None, include_authorized_operations=True)),
        versions=(1, 1),
    ),
    next_to_4(
        "cg-states-describe-classic",
        ApiKey.DESCRIBE_GROUPS,
        "as it is described to those who know classic groups only",
        in_every_state(describe(), describe(include_authorized_operations=True)),
    ),
    next_to_4(
        "cg-states-list",
        ApiKey.LIST_GROUPS,
        "as it is listed, by its state and its type",
        in_every_state(
            *(
                listed(states, types)
                for states, types in (
                    ([], []),
                    (["Empty"], []),
                    (["Assigning"], []),
                    (["reconciling"], ["consumer"]),
                    (["Stable"], ["CONSUMER"]),
                    (["Dead", "PreparingRebalance", "CompletingRebalance"], []),
                    ([], ["classic"]),
                    ([], ["Consumer", "share"]),
                    (["STABLE", "Assigning"], ["streams"]),
                )
            )
        ),
        versions=(5, 5),
    ),
    next_to_4(
        "cg-states-list-old",
        ApiKey.LIST_GROUPS,
        "before types, and before states",
        in_every_state(listed(), listed(["Stable", "Reconciling"])),
        versions=(0, 4),
    ),
    next_to_4(
        "cg-states-delete",
        ApiKey.DELETE_GROUPS,
        "deleting it; where it was deleted, it begins again",
        in_every_state(
            ask(ApiKey.DELETE_GROUPS, groups_names=[G]),
            ask(ApiKey.DELETE_GROUPS, groups_names=[G, "{t}-none", ""]),
        ),
        versions=(2, 2),
    ),
    next_to_4(
        "cg-states-join",
        ApiKey.JOIN_GROUP,
        "classic joins that do not do: strangers, protocols, timeouts",
        in_every_state(
            classic_joins("who", group_instance_id="two"),
            classic_joins("", protocol(), protocol_type="connect"),
            classic_joins("a", protocol(), protocol_type="connect"),
            classic_joins("", session_timeout_ms=1),
            classic_joins("", protocol_type=""),
            first=False,
        ),
        versions=(5, 9),
    ),
    next_to_4(
        "cg-states-sync",
        ApiKey.SYNC_GROUP,
        "by members of the new protocol, strangers, and with what does not fit",
        in_every_state(
            *(classic_syncs(member, epoch, v=None) for member in ("a", "b") for epoch in (-1, 2, 3)),
            classic_syncs("who", 1, v=None),
            classic_syncs("", 2, v=None),
            classic_syncs("b", 3, v=None, group_instance_id="two"),
            classic_syncs("who", 3, v=None, group_instance_id="two"),
            classic_syncs("a", 2, v=None, group_instance_id="none"),
            classic_syncs("a", 2, v=None, protocol_name="other"),
        ),
        versions=(5, 5),
    ),
    next_to_4(
        "cg-states-heartbeat-classic",
        ApiKey.HEARTBEAT,
        "by members of the new protocol and strangers",
        in_every_state(
            *(classic_beats(member, epoch, v=None) for member in ("a", "b") for epoch in (-1, 2, 3)),
            classic_beats("who", 1, v=None),
            classic_beats("", 1, v=None),
            classic_beats("b", 3, v=None, group_instance_id="two"),
            classic_beats("who", 3, v=None, group_instance_id="two"),
            classic_beats("a", 2, v=None, group_instance_id="none"),
        ),
        versions=(4, 4),
    ),
    next_to_4(
        "cg-states-leave-classic",
        ApiKey.LEAVE_GROUP,
        "those who are not there, alone and several at once",
        in_every_state(
            leave(("who", None)),
            leave(("", None)),
            leave(("", "none")),
            leave(("who", "two")),
            leave(("who", "none"), ("", "other"), ("who", None)),
            leave(),
        ),
        versions=(3, 5),
    ),
    next_to_4(
        "cg-states-commit",
        ApiKey.OFFSET_COMMIT,
        "by each member and by strangers, in each epoch",
        in_every_state(
            *(
                commit(part(0, 10), member=member.strip("{}"), generation=epoch)
                for member, epoch in (*COMMIT_PROBES, ("a", -2), ("b", -2), ("", 0))
            ),
            commit(part(3, 11), part(0, 12), member="a", generation=2),
            commit(part(0, 13), topic="{t}-none", member="a", generation=2),
            commit(part(0, 14), member="b", generation=3, group_instance_id="two"),
            commit(part(0, 15), member="b", generation=3, group_instance_id="none"),
            commit(part(0, 16), member="who", generation=3, group_instance_id="two"),
            committed(0, 3, v=8),
        ),
        versions=(8, 10),
    ),
    next_to_4(
        "cg-states-fetch",
        ApiKey.OFFSET_FETCH,
        "by each member and by strangers, in each epoch, alone and together",
        in_every_state(
            *(
                ask(
                    ApiKey.OFFSET_FETCH,
                    groups=[
                        {
                            "group_id": G,
                            "member_id": member,
                            "member_epoch": epoch,
                            "topics": [{"name": "{t}", "partition_indexes": [0, 3]}],
                        }
                    ],
                )
                for member, epoch in (
                    *((member, epoch) for member in ("a", "b", "who", "", None) for epoch in (-1, 0, 2, 3)),
                    ("a", -2),
                    ("b", -2),
                )
            ),
            ask(
                ApiKey.OFFSET_FETCH,
                require_stable=True,
                groups=[
                    {"group_id": G, "member_id": "a", "member_epoch": 1, "topics": None},
                    {"group_id": G, "member_id": "a", "member_epoch": 2, "topics": None},
                    {"group_id": "{t}-none", "member_id": "a", "member_epoch": 2, "topics": None},
                    {"group_id": "{t}-none", "topics": None},
                ],
            ),
        ),
        versions=(8, 10),
    ),
    next_to_4(
        "cg-states-delete-offsets",
        ApiKey.OFFSET_DELETE,
        "of topics that its members read, and of others",
        topic("{t}-x", id_as="x"),
        commit(part(0, 5), part(1, 6), topic="{t}-x", v=8),
        in_every_state(
            drop("{t}", 0),
            drop("{t}-x", 0),
            drop("{t}-x", 9),
            drop("{t}-none", 0),
            ask(ApiKey.OFFSET_DELETE, group_id=G, topics=[]),
            everything(v=8),
            first=False,
        ),
    ),
    next_to_4(
        "cg-states-txn-commit",
        ApiKey.TXN_OFFSET_COMMIT,
        "in a transaction: by each member and by strangers, in each epoch (KIP-447)",
        topic(),
        begin(),
        add_offsets(v=3),
        in_every_state(
            *(
                commit_offsets(offset(0, 10), member_id=member.strip("{}"), generation_id=epoch)
                for member, epoch in COMMIT_PROBES
            ),
            commit_offsets(offset(1, 11), member_id="b", generation_id=3, group_instance_id="two"),
            commit_offsets(offset(1, 11), member_id="b", generation_id=3, group_instance_id="none"),
            committed(0, 1, v=8, require_stable=True),
        )[3:],
        versions=(3, 4),
    ),
]
