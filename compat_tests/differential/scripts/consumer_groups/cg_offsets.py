"""Offsets of open transactions when they, or their group, are deleted: of consumer groups, and without members."""

from __future__ import annotations

from dataclasses import replace

from compat_tests.differential.grouped import G, commit, committed, drop, everything, part
from compat_tests.differential.kafka_4.steps import beat, delete, joins, leaves, listed, next_to_4, topic
from compat_tests.differential.script import Step
from compat_tests.differential.transactional import add_offsets, begin, commit_offsets, done, end, offset
from kpybroker.wire.api import ApiKey


def ended(committed_: bool) -> list[Step]:
    """The transaction is over, and its marker in the offsets topic; what 4.3.1 says of it otherwise is not compared."""
    state = "CompleteCommit" if committed_ else "CompleteAbort"
    return [end(committed_, v=3, compared=False), replace(done(state), compared=False)]


IN_A_TRANSACTION: list[Step] = [
    *topic(),
    begin(),
    add_offsets(v=3),
]

SCRIPTS = [
    next_to_4(
        "cg-delete-with-open-offsets",
        ApiKey.DELETE_GROUPS,
        "an empty consumer group of which a transaction has offsets: its end finds nothing to commit",
        IN_A_TRANSACTION,
        joins("a", "{t}"),
        commit(part(0, 5), member="a", generation=2, v=9),
        leaves(),
        commit_offsets(offset(0, 10), offset(1, 11), v=3),
        committed(0, 1, v=7, require_stable=True),
        delete(),
        committed(0, 1, v=7, require_stable=True),
        listed(v=5),
        ended(committed_=True),
        everything(v=7),
        listed(v=5),
        versions=(2, 2),
    ),
    next_to_4(
        "cg-delete-with-nothing-but-open-offsets",
        ApiKey.DELETE_GROUPS,
        "a group that is nothing but offsets of a transaction",
        IN_A_TRANSACTION,
        commit_offsets(offset(1, 11), v=3),
        delete(),
        delete(),
        ended(committed_=True),
        everything(v=7),
        listed(v=5),
        versions=(2, 2),
    ),
    next_to_4(
        "cg-delete-open-offsets",
        ApiKey.OFFSET_DELETE,
        "offsets that a transaction has, of topics that a member reads and of others",
        IN_A_TRANSACTION,
        topic("{t}-other", id_as="other"),
        joins("a", "{t}"),
        commit(part(0, 5), topic="{t}-other", member="a", generation=2, v=9),
        commit_offsets(offset(0, 10), offset(1, 11), topic="{t}-other", member_id="a", generation_id=2, v=3),
        commit_offsets(offset(0, 10), member_id="a", generation_id=2, v=3),
        drop("{t}", 0),
        drop("{t}-other", 0),
        committed(0, 1, topic="{t}-other", v=7, require_stable=True),
        committed(0, v=7, require_stable=True),
        ended(committed_=True),
        everything(v=7),
        beat("a", 2),
    ),
    next_to_4(
        "cg-delete-and-abort-open-offsets",
        ApiKey.OFFSET_DELETE,
        "the same with an abort, in a group without members",
        IN_A_TRANSACTION,
        commit(part(0, 5), part(1, 6), v=9),
        commit_offsets(offset(0, 10), offset(2, 12), v=3),
        drop("{t}", 0, 2),
        committed(0, 1, 2, v=7, require_stable=True),
        ended(committed_=False),
        everything(v=7),
        listed(v=5),
        delete(G),
    ),
]
