"""OffsetCommit, OffsetFetch, OffsetDelete; version 0 keeps its offsets in the tree."""

from __future__ import annotations

from compat_tests.differential.grouped import G, commit, committed, drop, everything, joined, leave, part
from compat_tests.differential.script import ask, script
from compat_tests.differential.steps import create
from kpybroker.wire.api import ApiKey

# in some partitions of two topics
COMMITTED = [
    create("{t}", partitions=3),
    create("{t}-2"),
    commit(part(0, 5, "note", 3), part(1, 0), v=8),
    commit(part(0, 3), topic="{t}-2", v=8),
]

SCRIPTS = [
    script(
        "commit-alone",
        ApiKey.OFFSET_COMMIT,
        "without a group: offsets, metadata, epochs, places that are not there",
        create("{t}", partitions=3),
        commit(part(0, 5, "note", 3), part(1, 0)),
        committed(0, 1, 2),
        commit(part(0, 6, None)),
        commit(part(2, -1)),
        commit(part(2, -5)),
        commit(part(0, 7, "x" * 4097)),
        commit(part(0, 7, "x" * 4096)),
        commit(part(7, 1)),
        commit(part(0, 1), part(9, 1)),
        commit(part(0, 1), topic="{t}-missing"),
        commit(part(0, 1), topic="bad name"),
        commit(),
        commit(part(0, 9), group_id=""),
        commit(part(0, 9), generation=5, member="who"),
        commit(part(0, 9), generation=-1, member="who"),
        commit(part(0, 9), generation=5, group_id="{t}-none"),
        commit(part(0, 9), group_id="{t}-h", retention_time_ms=1000),
        committed(0, 1, 2),
        committed(0, v=8),
        committed(0, v=0),
        ask(
            ApiKey.OFFSET_COMMIT,
            group_id=G,
            generation_id_or_member_epoch=-1,
            member_id="",
            retention_time_ms=-1,
            topics=[
                {"name": "{t}", "partitions": [part(0, 3), part(0, 4)]},
                {"name": "{t}-missing", "partitions": [part(0, 1)]},
            ],
        ),
        committed(0),
    ),
    script(
        "commit-member",
        ApiKey.OFFSET_COMMIT,
        "of members: right, of another generation, not theirs, while rebalancing",
        create("{t}"),
        joined("m"),
        commit(part(0, 5), member="{m}", generation="{m_gen}"),
        commit(part(0, 6), member="{m}", generation=99),
        commit(part(0, 6), member="{m}", generation=-1),
        commit(part(0, 6), member="who", generation="{m_gen}"),
        commit(part(0, 6), member="", generation="{m_gen}"),
        commit(part(0, 6)),
        commit(part(0, 6), member="{m}", generation="{m_gen}", group_instance_id="none"),
        committed(0, v=7),
        leave(("{m}", None), v=5),
        commit(part(0, 8), member="{m}", generation="{m_gen}"),
        commit(part(0, 9)),
        committed(0, v=7),
    ),
    script(
        "fetch-offsets",
        ApiKey.OFFSET_FETCH,
        "committed or not, everything, unknown groups and topics",
        COMMITTED,
        commit(part(0, 4), v=0),
        committed(0, 1, 2),
        committed(2, 0),
        committed(0, 0),
        committed(0, topic="{t}-missing"),
        committed(0, topic="bad name"),
        committed(-1),
        committed(0, group="{t}-none"),
        committed(0, group=""),
        committed(0, require_stable=True),
        committed(),
    ),
    script(
        "fetch-all-offsets",
        ApiKey.OFFSET_FETCH,
        "null asks for everything",
        COMMITTED,
        everything(),
        everything("{t}-none"),
        everything(""),
        ask(ApiKey.OFFSET_FETCH, group_id=G, topics=[], groups=[{"group_id": G, "topics": []}]),
        versions=(2, 9),
    ),
    script(
        "fetch-offsets-of-groups",
        ApiKey.OFFSET_FETCH,
        "several groups in one question, members in version 9",
        create("{t}", partitions=2),
        commit(part(0, 5), v=8),
        commit(part(1, 6), v=8, group_id="{t}-h"),
        joined("m", "{t}-i"),
        ask(
            ApiKey.OFFSET_FETCH,
            groups=[
                {"group_id": G, "topics": [{"name": "{t}", "partition_indexes": [0, 1]}]},
                {"group_id": "{t}-h", "topics": None},
                {"group_id": "{t}-none", "topics": [{"name": "{t}", "partition_indexes": [0]}]},
            ],
        ),
        *(
            ask(
                ApiKey.OFFSET_FETCH,
                groups=[{"group_id": group, "member_id": member, "member_epoch": epoch, "topics": None}],
            )
            for group, member, epoch in (
                (G, None, -1),
                (G, "who", 1),
                ("{t}-i", "{m}", 1),
                ("{t}-i", "who", 1),
                ("{t}-i", "{m}", 99),
            )
        ),
        ask(ApiKey.OFFSET_FETCH, groups=[{"group_id": G, "topics": None}, {"group_id": G, "topics": None}]),
        versions=(8, 9),
    ),
    script(
        "delete-offsets",
        ApiKey.OFFSET_DELETE,
        "of topics that no one in the group reads",
        create("{t}", partitions=2),
        commit(part(0, 5), part(1, 6), v=8),
        drop("{t}", 0),
        drop("{t}", 0),
        drop("{t}", 7),
        drop("{t}-missing", 0),
        drop("{t}", 0, group="{t}-none"),
        drop("{t}", 0, group=""),
        ask(ApiKey.OFFSET_DELETE, group_id=G, topics=[]),
        committed(0, 1, v=8),
        joined("m"),
        drop("{t}", 1),
        leave(("{m}", None), v=5),
        drop("{t}", 1),
        committed(0, 1, v=8),
        joined(
            "n",
            "{t}-s",
            # a consumer's subscription: version 0, one topic, no user data
            {"name": "range", "metadata": b"\0\0\0\0\0\1\0\x12delete-offsets-sub\xff\xff\xff\xff"},
        ),
        drop("{t}", 0, group="{t}-s"),
        drop("delete-offsets-sub", 0, group="{t}-s"),
    ),
]
