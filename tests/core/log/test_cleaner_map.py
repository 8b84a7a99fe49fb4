"""The map of last offsets against a dict (OffsetMapTest)."""

from __future__ import annotations

from random import Random

import pytest

from kpybroker.core.log.cleaner_map import ENTRY_SIZE, NOT_FOUND, DigestTable, OffsetMap


def entries(chance: Random, count: int, keys: int) -> list[tuple[bytes, int]]:
    return [(b"%d" % chance.randrange(keys) * chance.choice((0, 1, 1, 40)), offset) for offset in range(count)]


@pytest.mark.parametrize("slots", [20, 300, 100_000])
def test_every_key_has_its_last_offset(slots: int) -> None:
    """In a full table, in one that the keys moved to on the way, and in the dict where they are few."""
    chance = Random(slots)
    found = OffsetMap(slots * ENTRY_SIZE, 1.0)
    model: dict[bytes, int] = {}
    written = entries(chance, 2000, min(slots // 3, 700))  # each in two lengths, and the empty one
    for at in range(0, 2000, 50):
        assert found.put_all(written[at : at + 50], sum(len(key) for key, _ in written[at : at + 50]))
        model |= dict(written[at : at + 50])
        assert found.latest_offset == at + 49
    assert len(found) == len(model) > min(slots // 3, 500)
    assert {key: found.get(key, NOT_FOUND) for key in model} == model
    assert found.get(b"never written", NOT_FOUND) == NOT_FOUND


def test_a_table_still_finds_keys_when_all_but_one_of_its_slots_are_taken() -> None:
    table = DigestTable(50)
    for offset in range(49):
        table.put(b"%d" % offset, offset)
    assert [table.get(b"%d" % offset, NOT_FOUND) for offset in range(49)] == list(range(49))
    assert table.get(b"another", NOT_FOUND) == NOT_FOUND


def test_a_full_map_takes_nothing_more_not_even_known_keys() -> None:
    found = OffsetMap(10 * ENTRY_SIZE, 0.5)
    assert found.room == 5
    assert not found.put_all([(b"%d" % offset, offset) for offset in range(8)], 8)
    assert (len(found), found.latest_offset) == (5, 4)
    assert not found.put_all([(b"0", 9)], 1)
    assert (found.get(b"0", NOT_FOUND), found.latest_offset) == (0, 4)
    assert found.utilization == 0.5


def test_keys_move_to_the_table_when_the_dict_would_take_too_much() -> None:
    memory = 1_000_000
    found = OffsetMap(memory, 0.9)
    for number in range(20):
        found.put_all([(b"the same", number)], memory // 8)  # counted too high, but it is one key
    assert found.get.__self__.__class__ is dict  # type: ignore[attr-defined]
    for number in range(2000):
        found.put_all([(b"%d" % number, 20 + number)], 4)
    assert isinstance(found.get.__self__, DigestTable)  # type: ignore[attr-defined]
    assert (found.get(b"the same", NOT_FOUND), found.get(b"1999", NOT_FOUND), len(found)) == (19, 2019, 2001)


@pytest.mark.parametrize(("memory", "load_factor"), [(24, 0.9), (48, 0.4), (0, 0.9)])
def test_a_map_that_would_never_make_progress_is_refused(memory: int, load_factor: float) -> None:
    with pytest.raises(ValueError, match="never make progress"):
        OffsetMap(memory, load_factor)
