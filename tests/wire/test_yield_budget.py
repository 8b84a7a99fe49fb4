"""The budget that long loops spend: how much work there is between two pauses."""

from __future__ import annotations

from kpybroker.wire.yield_budget import ELEMENT, SLICE_UNITS, WorkBudget


def test_a_slice_is_spent_after_so_many_units_and_then_another_begins() -> None:
    budget = WorkBudget()
    spent = [number for number in range(3 * SLICE_UNITS // ELEMENT) if budget.is_spent()]
    per_slice = SLICE_UNITS // ELEMENT
    assert spent == [per_slice - 1, 2 * per_slice - 1, 3 * per_slice - 1]


def test_work_as_large_as_a_slice_spends_it_at_once() -> None:
    budget = WorkBudget()
    assert [budget.is_spent(SLICE_UNITS), budget.is_spent(5 * SLICE_UNITS), budget.is_spent(1)] == [True, True, False]
