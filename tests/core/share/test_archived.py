"""Why records were archived: the last of each reason, and nothing that was not archived after all."""

from __future__ import annotations

from kpybroker.core.share.archived import ROWS_MAX, Archived, ArchivedLog, Reason
from kpybroker.core.share.partition import SharePartition
from kpybroker.core.share.values import (
    Acknowledgement,
    AcknowledgeType,
    Fetched,
    FetchedBatch,
    PersistedState,
    ShareSettings,
    StateWrite,
)
from kpybroker.wire.errors import ErrorCode

LOCK_S = 30.0


def holding(*batches: tuple[int, int], limit: int = 5, aborted: tuple[tuple[int, int], ...] = ()) -> SharePartition:
    """A machine whose member "a" holds these batches, at the time 0."""
    machine = SharePartition(PersistedState(1, 0), ShareSettings(delivery_count_limit=limit))
    take(machine, "a", *batches, aborted=aborted)
    return machine


def take(
    machine: SharePartition, member_id: str, *batches: tuple[int, int], aborted: tuple[tuple[int, int], ...] = ()
) -> None:
    """The member acquires all that is available of these."""
    found = Fetched(batches[0][0], [FetchedBatch(*one) for one in batches], [FetchedBatch(*one) for one in aborted])
    machine.acquire(member_id, found, 1000, 1000, strict=False, now=0.0)


def say(machine: SharePartition, first: int, last: int, type_: AcknowledgeType) -> StateWrite:
    """What member "a" acknowledges is to be written."""
    write = machine.acknowledge("a", [Acknowledgement(first, last, [type_])], 0.0).write
    assert write is not None
    return write


def rows(machine: SharePartition) -> list[tuple[object, ...]]:
    return [] if machine.archived is None else [tuple(row) for row in machine.archived]


def test_a_member_that_rejects_is_named_even_when_the_start_offset_has_passed() -> None:
    machine = holding((0, 9))
    machine.written(say(machine, 0, 3, AcknowledgeType.REJECT), ErrorCode.NONE, 0.0)
    assert machine.start_offset == 4
    assert rows(machine) == [(0, 3, Reason.REJECTED, 1, "a")]


def test_a_write_that_fails_takes_the_reason_back() -> None:
    machine = holding((0, 9))
    machine.written(say(machine, 2, 3, AcknowledgeType.REJECT), ErrorCode.NOT_COORDINATOR, 0.0)
    assert rows(machine) == []


def test_a_refused_acknowledgement_leaves_no_reason() -> None:
    machine = holding((0, 9))
    both = [Acknowledgement(0, 0, [AcknowledgeType.REJECT]), Acknowledgement(0, 0, [AcknowledgeType.REJECT])]
    assert machine.acknowledge("a", both, 0.0).error is ErrorCode.INVALID_RECORD_STATE
    assert rows(machine) == []


def test_the_last_delivery_ends_by_a_release_or_a_lock_that_runs_out() -> None:
    machine = holding((0, 1), limit=2)
    machine.release_member("a")
    assert rows(machine) == []
    machine = holding((0, 1), limit=1)
    machine.written(say(machine, 0, 0, AcknowledgeType.RELEASE), ErrorCode.NONE, 0.0)
    machine.expire(LOCK_S)
    assert rows(machine) == [(0, 1, Reason.DELIVERY_LIMIT, 1, "a")]


def test_a_lock_that_runs_out_during_a_write_that_fails_counts_as_a_delivery() -> None:
    machine = holding((0, 0), limit=1)
    machine.written(say(machine, 0, 0, AcknowledgeType.ACCEPT), ErrorCode.NOT_COORDINATOR, LOCK_S)
    assert rows(machine) == [(0, 0, Reason.DELIVERY_LIMIT, 1, "a")]


def test_the_log_moves_past_what_waits_and_what_is_held() -> None:
    machine = holding((0, 3))
    machine.written(say(machine, 0, 1, AcknowledgeType.RELEASE), ErrorCode.NONE, 0.0)
    machine.advance(4)
    assert rows(machine) == [(0, 1, Reason.BELOW_START, 1, "")]
    machine.release_member("a")
    assert rows(machine) == [(0, 1, Reason.BELOW_START, 1, ""), (2, 3, Reason.BELOW_START, 1, "a")]


def test_aborted_and_compacted_records_and_gaps_are_no_records() -> None:
    machine = holding((0, 1), (2, 3), aborted=((0, 1),))
    machine.written(say(machine, 2, 2, AcknowledgeType.GAP), ErrorCode.NONE, 0.0)
    machine.written(say(machine, 3, 3, AcknowledgeType.RELEASE), ErrorCode.NONE, 0.0)
    take(machine, "b", (4, 5))
    assert rows(machine) == [(0, 2, Reason.NO_RECORD, 1, "a")]
    machine.acquire("b", Fetched(3, [FetchedBatch(4, 5)]), 10, 10, strict=False, now=0.0)
    assert rows(machine)[1:] == [(3, 3, Reason.NO_RECORD, 1, "")]


def test_each_reason_keeps_its_last_rows() -> None:
    log = ArchivedLog()
    log.add(Archived(0, 0, Reason.REJECTED, 1, "a"))
    for offset in range(2, 2 + 4 * ROWS_MAX, 2):
        log.add(Archived(offset, offset, Reason.NO_RECORD, 0, ""))
    kept = list(log)
    assert kept[0] == (0, 0, "rejected", 1, "a")
    assert len(kept) == 1 + ROWS_MAX
    assert kept[-1].first == 4 * ROWS_MAX


def test_what_is_taken_back_may_be_a_part_of_a_row() -> None:
    log = ArchivedLog()
    log.add(Archived(0, 4, Reason.REJECTED, 1, "a"))
    log.add(Archived(5, 9, Reason.REJECTED, 1, "a"))
    log.withdraw(3, 6)
    assert [row[:2] for row in log] == [(0, 2), (7, 9)]
