"""States: every transition that Kafka allows, and no other."""

from __future__ import annotations

import pytest

from kpybroker.core.transaction.state import Transaction, TransactionMetadata
from kpybroker.core.transaction.values import STATE_OF_TITLE, TransactionState

S = TransactionState

# From -> to, as TransactionMetadata.scala has them the other way round.
ALLOWED = {
    S.EMPTY: {S.EMPTY, S.ONGOING, S.DEAD},
    S.ONGOING: {S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT, S.PREPARE_EPOCH_FENCE},
    S.PREPARE_COMMIT: {S.COMPLETE_COMMIT},
    S.PREPARE_ABORT: {S.COMPLETE_ABORT},
    S.COMPLETE_COMMIT: {S.EMPTY, S.ONGOING, S.DEAD},
    S.COMPLETE_ABORT: {S.EMPTY, S.ONGOING, S.DEAD},
    S.DEAD: set(),
    S.PREPARE_EPOCH_FENCE: {S.PREPARE_ABORT},
}


def in_state(state: TransactionState) -> Transaction:
    return Transaction("x", TransactionMetadata(5, 0, 60_000, state, frozenset(), 0, 0))


@pytest.mark.parametrize("target", S)
@pytest.mark.parametrize("state", S)
def test_only_these_transitions(state: TransactionState, target: TransactionState) -> None:
    transaction = in_state(state)
    wanted = transaction.current._replace(state=target)
    if target in ALLOWED[state]:
        assert transaction.prepare(wanted) is wanted
        assert transaction.pending is wanted
        assert transaction.current.state is state
    else:
        with pytest.raises(AssertionError):
            transaction.prepare(wanted)


@pytest.mark.parametrize("state", S)
def test_in_version_2_an_abort_may_find_nothing_open(state: TransactionState) -> None:
    transaction = in_state(state)
    wanted = transaction.current._replace(state=S.PREPARE_ABORT, version=2)
    if state in (S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT) or S.PREPARE_ABORT in ALLOWED[state]:
        assert transaction.prepare(wanted) is wanted
    else:
        with pytest.raises(AssertionError):
            transaction.prepare(wanted)


def test_one_transition_at_a_time() -> None:
    transaction = in_state(S.EMPTY)
    transaction.prepare_add(frozenset({("t", 0)}), 0, 1)
    with pytest.raises(AssertionError):
        transaction.prepare_end(True, 1)


def test_titles_are_kafkas() -> None:
    assert list(STATE_OF_TITLE) == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]
