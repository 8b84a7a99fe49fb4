"""Acknowledgements that are wrong as such."""

from __future__ import annotations

import pytest

from kpybroker.core.share.validation import validate
from kpybroker.core.share.values import Acknowledgement
from kpybroker.wire.errors import ErrorCode

GOOD = [
    [],
    [(0, 9, [1])],
    [(0, 0, [0])],
    [(0, 2, [1, 2, 3])],
    [(0, 2, [1]), (2, 4, [2])],
    [(0, 2, [1]), (7, 9, [2])],
]
BAD = [
    [(3, 2, [1])],
    [(0, 2, [])],
    [(0, 2, [1, 1])],
    [(0, 1, [1, 1, 1])],
    [(0, 2, [-1])],
    [(0, 2, [5])],
    [(0, 2, [1, 5, 1])],
    [(5, 9, [1]), (0, 2, [1])],
    [(5, 9, [1]), (8, 12, [1])],
    [(-2, 9, [1])],
]


@pytest.mark.parametrize("rows", GOOD)
def test_what_is_well_formed(rows: list[tuple[int, int, list[int]]]) -> None:
    assert validate([Acknowledgement(*row) for row in rows], may_renew=False) is ErrorCode.NONE


@pytest.mark.parametrize("rows", BAD)
def test_what_is_not(rows: list[tuple[int, int, list[int]]]) -> None:
    assert validate([Acknowledgement(*row) for row in rows], may_renew=True) is ErrorCode.INVALID_REQUEST


def test_a_renewal_is_only_for_requests_that_say_so() -> None:
    rows = [Acknowledgement(0, 1, [4, 1])]
    assert validate(rows, may_renew=True) is ErrorCode.NONE
    assert validate(rows, may_renew=False) is ErrorCode.INVALID_REQUEST
