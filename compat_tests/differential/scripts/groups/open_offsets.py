"""Offsets of open transactions, when they or their group are deleted."""

from __future__ import annotations

from compat_tests.differential.grouped import G, commit, committed, drop, everything, part
from compat_tests.differential.script import Step, ask, script
from compat_tests.differential.steps import create
from compat_tests.differential.transactional import add_offsets, begin, commit_offsets, done, end, offset
from kpybroker.wire.api import ApiKey

DELETE = ask(ApiKey.DELETE_GROUPS, v=2, groups_names=[G])
LISTED = ask(ApiKey.LIST_GROUPS, v=4, states_filter=[], only={"groups": f"group_id={G}"})
IN_A_TRANSACTION: list[Step] = [create("{t}", partitions=3), begin(), add_offsets(v=3)]
ENDED: list[Step] = [end(True, v=3), done("CompleteCommit")]

SCRIPTS = [
    script(
        "delete-with-open-offsets",
        ApiKey.DELETE_GROUPS,
        "a group of which a transaction has offsets",
        IN_A_TRANSACTION,
        commit(part(0, 5), v=8),
        commit_offsets(offset(0, 10), offset(1, 11), v=3),
        committed(0, 1, v=7, require_stable=True),
        DELETE,
        committed(0, 1, v=7, require_stable=True),
        LISTED,
        ENDED,
        everything(v=7),
        LISTED,
        versions=(2, 2),
    ),
    script(
        "delete-open-offsets",
        ApiKey.OFFSET_DELETE,
        "offsets that a transaction has, one of them committed before",
        IN_A_TRANSACTION,
        commit(part(0, 5), part(1, 6), v=8),
        commit_offsets(offset(0, 10), offset(2, 12), v=3),
        drop("{t}", 0, 2),
        committed(0, 1, 2, v=7, require_stable=True),
        ENDED,
        everything(v=7),
        LISTED,
    ),
]
