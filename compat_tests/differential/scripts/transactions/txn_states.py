"""What each API of transactions says in each state of one: unknown, empty, ongoing, committed, aborted, begun again by
another producer, ongoing, aborted by the next one.

The probes of one script are asked in all of them, and do not lead from one to another: they come from producers that
are not its own, with epochs before and after, under other ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compat_tests.differential.script import Ask, Step, script
from compat_tests.differential.steps import create
from compat_tests.differential.transactional import (
    ADD,
    ADD_OFFSETS,
    COMMIT_OFFSETS,
    DESCRIBE,
    END,
    INIT,
    MARKERS,
    PRODUCERS,
    STRANGER,
    T,
    add,
    add_offsets,
    added,
    asked,
    batch,
    begin,
    commit_offsets,
    describe,
    done,
    end,
    init,
    marker,
    markers,
    offset,
    producers,
    read,
    verify,
    write,
)
from kpybroker.wire.api import ApiKey

# Producers that a transaction may have: its own, an unknown one, none. Epochs before, at and after its own.
WRONG = [
    {"pid": pid, "epoch": epoch}
    for pid, epoch in (
        ("{pid}", -1),
        ("{pid}", 5),
        ("{pid}", 32_767),
        (STRANGER, 0),
        (STRANGER, -1),
        (-1, 0),
        (-1, -1),
    )
]
EPOCHS = [{"pid": "{pid}", "epoch": epoch} for epoch in (0, 1, 2)]


def in_every_state(*probes: Step, ask_unknown: bool = True) -> list[Step]:
    """The producer's epoch is 0 until it comes again, which makes it 1, and more where that aborts."""
    once: Sequence[Step] = probes
    return [
        create("{t}", partitions=2),
        begin("{t}-elsewhere"),
        *(once if ask_unknown else []),
        begin(),
        *once,
        added({"{t}": [0]}),
        write(batch(b"a"), v=9),
        *once,
        end(True, v=3),
        done("CompleteCommit"),
        *once,
        added({"{t}": [0]}),
        write(batch(b"b", seq=1), v=9),
        end(False, v=3),
        done("CompleteAbort"),
        *once,
        begin(),
        *once,
        added({"{t}": [0]}, epoch=1),
        *once,
        init(v=4),
        done("CompleteAbort"),
        begin(),
        *once,
        read(),
        describe(T, v=0),
    ]


def with_each(ask_one: Callable[..., Ask], wrong: list[dict[str, Any]]) -> list[Ask]:
    return [ask_one(**one) for one in wrong]


SCRIPTS = [
    script(
        "txn-states-init",
        INIT,
        "with ids that are not its own, and halves of ids",
        in_every_state(*with_each(init, [one for one in WRONG if one["pid"] != "{pid}"][:-1]), ask_unknown=False),
        versions=(3, 5),
    ),
    *(
        script(
            f"txn-init-ongoing-{epoch}",
            INIT,
            f"its own id with the epoch {epoch}, while a transaction is open: whom it aborts and fences",
            create("{t}"),
            begin(),
            begin(),  # the epoch is 1 now
            added({"{t}": [0]}, epoch=1),
            write(batch(b"a", epoch=1), v=9),
            init(pid="{pid}", epoch=epoch),
            init(pid="{pid}", epoch=epoch, until={"error_code": [0, 47, 90]}),
            done("CompleteAbort", "Empty"),
            end(True, epoch=1, v=3),
            end(False, epoch=2, v=3),
            write(batch(b"b", seq=1, epoch=1), v=9),
            read(False),
            versions=(3, 5),
        )
        for epoch in (0, 1, 2, 5)
    ),
    script(
        "txn-states-add",
        ADD,
        "by producers that are not its own; of partitions that are not there",
        in_every_state(
            *with_each(lambda **one: add({"{t}": [0]}, **one), WRONG),
            add({"{t}": [0]}, name="{t}-none"),
            add({"{t}": [0]}, name=""),
            add({"{t}-none": [0], "{t}": [0]}),
            add({"{t}": [9]}, epoch=5),
        ),
        versions=(0, 3),
    ),
    script(
        "txn-states-verify",
        ADD,
        "verified between brokers, by producers that are its own and not; in the state there is",
        in_every_state(
            *with_each(lambda **one: verify(asked({"{t}": [0]}, **one)), WRONG),
            *with_each(lambda **one: verify(asked({"{t}": [0, 1]}, **one)), EPOCHS),
            verify(asked({"{t}": [0]}, name="{t}-none")),
            verify(asked({"{t}": [0]}), asked({"{t}": [1]}, name="{t}-none"), asked({"{t}": [0]}, name="")),
        ),
        versions=(4, 5),
    ),
    script(
        "txn-states-add-offsets",
        ADD_OFFSETS,
        "by producers that are not its own",
        in_every_state(
            *with_each(lambda **one: add_offsets(**one), WRONG),
            add_offsets(name="{t}-none"),
            add_offsets(name=""),
            add_offsets(group="", epoch=5),
        ),
    ),
    script(
        "txn-states-commit-offsets",
        COMMIT_OFFSETS,
        "offsets by producers that are its own, without the group having been added, and not",
        in_every_state(
            *with_each(
                lambda pid, epoch: commit_offsets(offset(0, 1), producer_id=pid, producer_epoch=epoch), WRONG[:-2]
            ),
            *with_each(lambda pid, epoch: commit_offsets(offset(0, 1), producer_id=pid, producer_epoch=epoch), EPOCHS),
            commit_offsets(offset(0, 1), name="{t}-none"),
            commit_offsets(offset(9, 1), offset(0, 1)),
        ),
    ),
    script(
        "txn-states-end",
        END,
        "both ends, by producers that are not its own",
        in_every_state(
            *with_each(lambda **one: end(True, **one), WRONG),
            *with_each(lambda **one: end(False, **one), WRONG),
            end(True, name="{t}-none"),
            end(False, name=""),
        ),
    ),
    script(
        "txn-states-produce",
        ApiKey.PRODUCE,
        "batches of producers and epochs that are not its own, and of no transaction",
        in_every_state(
            *with_each(lambda **one: write(batch(b"x", seq=50, **one)), WRONG[:5]),
            write(batch(b"x", seq=50), name="{t}-none"),
            write(batch(b"x", seq=50), partition=1),
            write(batch(b"x", seq=50), partition=9),
            write(batch(b"x", seq=50), name=None),
        ),
        versions=(3, 11),
    ),
    script(
        "txn-states-describe",
        DESCRIBE,
        "as it is described",
        in_every_state(describe(T), describe(T, "{t}-none", "")),
    ),
    script(
        "txn-states-producers",
        PRODUCERS,
        "as the partition's producers are described",
        in_every_state(producers(0, 1)),
    ),
    script(
        "txn-states-markers",
        MARKERS,
        "markers of an unknown transaction, for partitions that it never had, and of epochs long gone",
        in_every_state(
            markers(marker({"{t}": [1]}, pid=STRANGER)),
            markers(marker({"{t}": [0]}, epoch=-1)),
            markers(marker({"{t}": [9], "{t}-none": [0]})),
        ),
    ),
]
