"""The walk over a log file: windows, large batches, and kinds of damage."""

from __future__ import annotations

import random

import pytest

from kpybroker.storage.disk.files import File, write_file
from kpybroker.storage.inspection import batch_walk
from kpybroker.storage.inspection.batch_walk import Damage, DamageKind, crc_of, walk
from kpybroker.wire.records.batch import stamp
from tests.support.storage.batches import batch
from tests.support.storage.lossy_files import LossyFiles


def opened(data: bytes) -> File:
    files = LossyFiles()
    write_file(files, "/log", data, sync=True)
    return files.open("/log", writable=False)


def log_of(sizes: list[int]) -> bytes:
    data = bytearray()
    for offset, size in enumerate(sizes):
        one = batch(random.Random(offset).randbytes(size))
        stamp(one, 0, offset, 0)
        data += one
    return bytes(data)


@pytest.mark.parametrize("window", [64, 100, 301, 5000])
def test_any_window_gives_the_same_batches(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(window)
    data = log_of([rng.randrange(700) for _ in range(60)])
    monkeypatch.setattr(batch_walk, "WINDOW", window)
    monkeypatch.setattr(batch_walk, "WHOLE_BATCH_MAX", 500)
    file = opened(data)
    position = 0
    skipped = 0
    for number, (at, header, view) in enumerate(walk(file, len(data))):
        assert (at, header.base_offset) == (position, number)
        assert crc_of(file, at, header, view) == header.crc
        if view is None:
            skipped += 1
        else:
            assert view == data[at : at + header.size]
        position += header.size
    assert position == len(data)
    assert skipped > 5


def damage(data: bytes) -> Damage:
    with pytest.raises(Damage) as caught:
        for _ in walk(opened(data), len(data)):
            pass
    return caught.value


def test_kinds_of_damage() -> None:
    data = log_of([10, 20, 30])
    torn = damage(data[:-1])
    assert (torn.kind, torn.position < len(data) - 30) == (DamageKind.INCOMPLETE, True)
    assert damage(data + data[:5]).kind is DamageKind.INCOMPLETE
    assert (damage(data + bytes(500)).kind, damage(data + bytes(500)).position) == (DamageKind.ZEROS, len(data))
    assert damage(data + bytes(500) + b"x").kind is DamageKind.CORRUPT
    assert damage(b"\x7f" * 200).kind is DamageKind.CORRUPT


def test_a_file_that_shrinks_during_the_walk_is_incomplete() -> None:
    data = log_of([10])
    with pytest.raises(Damage, check=lambda error: error.kind is DamageKind.INCOMPLETE):
        list(walk(opened(data), len(data) + 100))
