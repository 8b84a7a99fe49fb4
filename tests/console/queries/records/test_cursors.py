"""A place in a topic as text: any cursor is read as it was written, and any text is read or refused."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kpybroker.client.connect.errors import CommandError
from kpybroker.console.queries.messages import PLACES_MAX, Cursor
from kpybroker.console.queries.records.cursors import (
    LEGIBLE_MAX,
    NUMBER_MAX,
    PACKED_MAX,
    read_cursor,
    write_cursor,
)

CURSORS = st.dictionaries(st.integers(0, 5000), st.integers(0, 10**18 - 1), min_size=1, max_size=60)


@given(CURSORS)
@example(dict.fromkeys(range(60), NUMBER_MAX))
@example({2 * number: number for number in range(60)})
def test_a_cursor_is_read_as_it_was_written(cursor: Cursor) -> None:
    text = write_cursor(cursor)
    assert read_cursor(text) == cursor
    assert text.replace("_", "").replace("-", "").replace(".", "").isalnum()


def test_few_partitions_are_legible() -> None:
    assert write_cursor({1: 20, 0: 17}) == "0.17_1.20"
    assert read_cursor("") is None


@pytest.mark.parametrize(("spread", "length"), [(4_000, 2_700), (NUMBER_MAX, PACKED_MAX)])
def test_a_thousand_partitions_fit_into_an_address(spread: int, length: int) -> None:
    chance = random.Random(5)
    cursor = {number: min(NUMBER_MAX, 10**9 + chance.randrange(spread)) for number in range(PLACES_MAX)}
    text = write_cursor(cursor)
    assert LEGIBLE_MAX < len(text) <= length
    assert read_cursor(text) == cursor


def test_the_longest_cursor_can_be_read() -> None:
    cursor = {2 * number: NUMBER_MAX * (number % 2) for number in range(PLACES_MAX)}
    assert read_cursor(write_cursor(cursor)) == cursor


@given(st.one_of(st.text(max_size=40), st.text("ABCDEFGHabcdefgh0123456789-_.", max_size=300)))
@example("x")
@example("0.1_")
@example("0.²")
@example("_____w8")
@example("A" * (PACKED_MAX + 1))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = read_cursor(text)
    except CommandError as error:
        assert error.exit_code == 2  # noqa: PT017
    else:
        assert found is None or all(0 <= one <= NUMBER_MAX for place in found.items() for one in place)


def test_more_partitions_than_a_page_reads_are_refused() -> None:
    with pytest.raises(CommandError):
        read_cursor(write_cursor(dict.fromkeys(range(PLACES_MAX + 1), 7)))
