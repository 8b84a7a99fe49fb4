"""Work in a thread pauses every so many records, and only there."""

from __future__ import annotations

from contextvars import copy_context

import pytest

from kpybroker.wire.compression import Codec
from kpybroker.wire.records.batch import parse_header
from kpybroker.wire.records.builder import BatchFields, build_batch
from kpybroker.wire.records.lookup import find_in_batch
from kpybroker.wire.records.pauses import PAUSE, RECORDS_A_PAUSE, pausing


def pauses_of(count: int) -> list[int]:
    """After how many numbers there was a pause each."""
    seen: list[int] = []
    paused: list[int] = []

    def run() -> None:
        PAUSE.set(lambda: paused.append(len(seen)))
        seen.extend(pausing(count))

    copy_context().run(run)
    assert seen == list(range(count))
    return paused


def test_there_is_a_pause_before_the_first_and_then_at_equal_distances() -> None:
    assert pauses_of(0) == []
    assert pauses_of(1) == [0]
    assert pauses_of(2 * RECORDS_A_PAUSE + 1) == [0, RECORDS_A_PAUSE, 2 * RECORDS_A_PAUSE]


def test_on_the_loop_it_is_a_plain_range() -> None:
    assert pausing(7) == range(7)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
def test_a_search_in_a_batch_can_be_ended(codec: Codec) -> None:
    """A search of a million records ends when its client has left."""
    batch = build_batch([(None, b"", number) for number in range(3 * RECORDS_A_PAUSE)], BatchFields(codec=codec))
    pauses = 0

    class Left(Exception):
        pass

    def pause() -> None:
        nonlocal pauses
        pauses += 1
        if pauses == 3:
            raise Left

    def search() -> None:
        PAUSE.set(pause)
        find_in_batch(batch, 0, parse_header(batch, 0), 3 * RECORDS_A_PAUSE - 1)

    with pytest.raises(Left):
        copy_context().run(search)
    assert pauses == 3
