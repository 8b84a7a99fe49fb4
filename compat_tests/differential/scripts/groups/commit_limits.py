"""Commits that do not fit, times of their own, groups' names that are odd; in the tree as well."""

from __future__ import annotations

from compat_tests.differential.grouped import G, commit, committed, drop, everything, joined, part
from compat_tests.differential.script import ask, script
from compat_tests.differential.steps import create
from compat_tests.differential.transactional import add_offsets, begin, commit_offsets, done, end, offset
from kpybroker.wire.api import ApiKey

MANY = 30  # partitions whose metadata, 4 096 characters each, make a batch larger than the pair's message.max.bytes
ODD_GROUPS = ("a/b", ".", "..", " ", "\u00e4\u20ac", "g" * 300, "\U0001f600", "a\nb")

SCRIPTS = [
    script(
        "commit-too-much",
        ApiKey.OFFSET_COMMIT,
        "more than fits into a batch of the offsets topic: none of it is kept",
        create("{t}", partitions=MANY),
        commit(part(0, 1), v=8),
        commit(*(part(partition, 5, "x" * 4096) for partition in range(MANY))),
        committed(0, 1, v=7),
        commit(*(part(partition, 6, "x" * 4097) for partition in range(MANY)), part(0, 2)),
        commit(*(part(partition, 7, "x" * 100) for partition in range(MANY))),
        committed(0, 1, MANY - 1, v=7),
        versions=(1, 9),
    ),
    script(
        "txn-commit-too-much",
        ApiKey.TXN_OFFSET_COMMIT,
        "more than fits into a batch of the offsets topic, in a transaction",
        create("{t}", partitions=MANY),
        begin(),
        add_offsets(v=3),
        commit_offsets(*(offset(partition, 5, "x" * 4096) for partition in range(MANY))),
        committed(0, v=7, require_stable=True),
        commit_offsets(*(offset(partition, 6, "x" * 4097) for partition in range(MANY))),
        commit_offsets(offset(0, 7, "x" * 4097), offset(1, 8)),
        committed(0, 1, v=7, require_stable=True),
        end(True, v=3),
        done("CompleteCommit"),
        committed(1, v=7, require_stable=True, until={"topics.0.partitions.0.error_code": 0}),
    ),
    script(
        "commit-times",
        ApiKey.OFFSET_COMMIT,
        "commit timestamps of version 1, retention times of versions 2 to 4",
        create("{t}", partitions=2),
        *(
            commit({**part(0, number), "commit_timestamp": stamp})
            for number, stamp in enumerate((-1, 0, 1, -2, 1_700_000_000_000, 2**63 - 1))
        ),
        *(
            commit(part(1, number), retention_time_ms=retention)
            for number, retention in enumerate((-1, 0, 1, -2, 3_600_000, 2**62))
        ),
        committed(0, 1, v=7),
        versions=(1, 4),
    ),
    script(
        "commit-values",
        ApiKey.OFFSET_COMMIT,
        "offsets and epochs at the ends of their ranges, metadata of every kind",
        create("{t}"),
        *(commit(part(0, value, "", epoch)) for value, epoch in ((0, 0), (2**63 - 1, 2**31 - 1), (-(2**63), -2))),
        committed(0, v=7),
        *(commit(part(0, 1, text)) for text in ("", None, "\u00e4\u20ac", "\U0001f600" * 2048, "\U0001f600" * 2049)),
        committed(0, v=7),
        commit(part(2**31 - 1, 1)),
        commit(part(-1, 1)),
        commit(part(0, 1), topic=""),
        commit(part(0, 1), topic=".."),
        commit(part(0, 1), topic="t" * 250),
    ),
    script(
        "commit-odd-groups",
        ApiKey.OFFSET_COMMIT,
        "groups whose names are no paths",
        create("{t}"),
        *(commit(part(0, 1), group_id=f"{{t}}-{group}") for group in ODD_GROUPS),
        *(committed(0, group=f"{{t}}-{group}", v=7) for group in ODD_GROUPS),
    ),
    script(
        "fetch-odd-groups",
        ApiKey.OFFSET_FETCH,
        "groups whose names are no paths",
        create("{t}"),
        commit(part(0, 1), v=0),
        *(committed(0, group=f"{{t}}-{group}") for group in ODD_GROUPS),
        *(committed(0, topic=topic) for topic in ("", "..", "a/b", "t" * 250)),
        committed(2**31 - 1, 0, -1),
    ),
    script(
        "delete-offsets-several",
        ApiKey.OFFSET_DELETE,
        "topics and partitions that are there and not, in one request, twice the same",
        create("{t}", partitions=3),
        create("{t}-2"),
        commit(part(0, 5), part(1, 6), part(2, 7), v=8),
        ask(
            ApiKey.OFFSET_DELETE,
            group_id=G,
            topics=[
                {"name": "{t}", "partitions": [{"partition_index": index} for index in (0, 9, -1)]},
                {"name": "{t}-2", "partitions": [{"partition_index": 0}]},
                {"name": "{t}-none", "partitions": [{"partition_index": 0}]},
            ],
        ),
        everything(v=7),
        drop("{t}", 1, 1),
        drop("{t}", 9),
        drop("{t}-none", 0),
        everything(v=7),
        drop("{t}", 2),
        drop("{t}", 2),
        everything(v=7),
        drop("{t}", 0, group="{t}-none"),
        drop("{t}-none", 0, group="{t}-none"),
        drop("{t}-none", 0, group=""),
        joined("m", "{t}-h", {"name": "range", "metadata": b""}),
        drop("{t}", 0, group="{t}-h"),
        drop("{t}-none", 0, group="{t}-h"),
    ),
]
