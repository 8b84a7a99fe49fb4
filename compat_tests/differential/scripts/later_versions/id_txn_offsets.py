"""TxnOffsetCommit 5 while a topic is made again: it has names only, and what is committed has the id of its day."""

from __future__ import annotations

from compat_tests.differential.grouped import G
from compat_tests.differential.kafka_4.steps import next_to_4
from compat_tests.differential.kafka_4.topics import FILLED, OTHER, deleted, made
from compat_tests.differential.script import Script, Step, ask
from compat_tests.differential.scripts.later_versions import id_offsets
from compat_tests.differential.transactional import (
    COMMIT_OFFSETS,
    begin,
    commit_offsets,
    done,
    end,
    offset,
    stable,
)
from kpybroker.wire.api import ApiKey

VERSION = 5


def seen(*ids: str) -> list[Step]:
    """What is committed, and what is pending: by each id, by the name, and for all topics."""
    by_name = {"group_id": G, "topics": [{"name": "{t}", "partition_indexes": [0, 1]}]}
    return [
        *(id_offsets.fetch(id_offsets.asked((name, [0, 1]))) for name in ids),
        *(id_offsets.fetch(id_offsets.asked((name, [0])), require_stable=True) for name in ids),
        ask(ApiKey.OFFSET_FETCH, v=9, groups=[by_name]),
        id_offsets.fetch(id_offsets.EVERYTHING),
    ]


def ended(epoch: int, value: int, *, committed: bool = True) -> list[Step]:
    """The transaction of that epoch has ended, and its offset is there."""
    return [
        end(committed, v=5, epoch=epoch, compared=False),
        done("CompleteCommit" if committed else "CompleteAbort"),
        stable(until={"topics.0.partitions.0.committed_offset": value}, compared=False),
    ]


AGAIN: list[Step] = [*deleted(), *made(id_as="new"), *FILLED]


def played(name: str, about: str, *steps: Step | list[Step]) -> Script:
    before = [*made(OTHER, id_as="other"), *made(), *FILLED, begin(compared=False)]
    return next_to_4(f"id-txn-offsets-{name}", COMMIT_OFFSETS, about, before, *steps, versions=(VERSION, VERSION))


SCRIPTS = [
    played(
        "again",
        "committed in a transaction, then the topic is made again, and its offset committed in the next transaction",
        commit_offsets(offset(0, 5)),
        seen("{id}"),
        ended(0, 5),
        seen("{id}"),
        AGAIN,
        seen("{id}", "{new}"),
        commit_offsets(offset(0, 7), producer_epoch=1),
        commit_offsets(offset(7, 7), producer_epoch=1),
        seen("{id}", "{new}"),
        ended(1, 7),
        seen("{id}", "{new}"),
        id_offsets.commit(("{id}", [offset(0, 8)])),
        seen("{id}", "{new}"),
    ),
    played(
        "replaced",
        "pending when the topic is made again, and committed for the new one in the same transaction",
        commit_offsets(offset(0, 5), offset(1, 6)),
        AGAIN,
        commit_offsets(offset(0, 7)),
        ended(0, 7),
        seen("{id}", "{new}"),
    ),
    played(
        "gone",
        "of a topic that is deleted",
        commit_offsets(offset(0, 5)),
        ended(0, 5),
        deleted(),
        commit_offsets(offset(0, 7), producer_epoch=1),
        commit_offsets(offset(0, 7), topic=OTHER, producer_epoch=1),
        seen("{id}"),
    ),
]
