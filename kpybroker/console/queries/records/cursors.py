"""A cursor as text, in an address or as the id of an event: short also for a thousand partitions.

Of a few partitions it is legible, `0.17_1.20`: partition and offset. Of many it is packed: for each run of partitions
their distance from the run before and their count, then each offset as the difference to the one before it, all as
varints, in base64 for addresses. A thousand partitions are then 2 500 characters where their offsets differ by a few
thousand, and 16 400 at most.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Final

from kpybroker.client.connect.errors import usage
from kpybroker.console.queries.messages import PLACES_MAX, Cursor
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.records.builder import varint
from kpybroker.wire.records.default_record import read_long_varint

LEGIBLE_MAX: Final = 200
"""Characters of a text that is not packed."""
NUMBER_MAX: Final = (1 << 63) - 1
PACKED_MAX: Final = 16_400
"""Characters of the longest packed text, of offsets that have nothing in common."""


def write_cursor(cursor: Cursor) -> str:
    """A cursor as text; empty for one without partitions."""
    text = "_".join(f"{partition}.{offset}" for partition, offset in sorted(cursor.items()))
    if len(text) <= LEGIBLE_MAX:
        return text
    return base64.urlsafe_b64encode(b"".join(_packed(sorted(cursor.items())))).decode().rstrip("=")


def _packed(places: list[tuple[int, int]]) -> Iterator[bytes]:
    next_partition, before = 0, 0
    for first, count in _runs(places):
        run = places[first : first + count]
        yield varint(run[0][0] - next_partition) + varint(count)
        next_partition = run[0][0] + count
        for _, offset in run:
            yield varint(offset - before)
            before = offset


def _runs(places: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Index and length of each run of partitions that follow each other."""
    first = 0
    for index in range(1, len(places) + 1):
        if index == len(places) or places[index][0] != places[index - 1][0] + 1:
            yield first, index - first
            first = index


def read_cursor(text: str) -> Cursor | None:
    """The reverse; None for an empty text. Raises CommandError for another text."""
    if not text:
        return None
    found = _legible(text) if "." in text else _unpacked(text)
    if found is None or len(found) > PLACES_MAX:
        raise usage("this page's position cannot be read", "begin again from the topic's messages")
    return found


def _legible(text: str) -> Cursor | None:
    parts = [part.partition(".") for part in text.split("_")]
    if not all(_is_number(left) and _is_number(right) for left, _, right in parts):
        return None
    return {int(partition): int(offset) for partition, _, offset in parts}


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _unpacked(text: str) -> Cursor | None:
    if len(text) > PACKED_MAX or not text.isascii():
        return None
    found: Cursor = {}
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        position, next_partition, offset = 0, 0, 0
        while position < len(data):
            gap, position = read_long_varint(data, position, 64)
            count, position = read_long_varint(data, position, 64)
            if gap < 0 or count < 1:
                return None
            first, next_partition = next_partition + gap, next_partition + gap + count
            for partition in range(first, next_partition):  # every round reads a byte
                difference, position = read_long_varint(data, position, 64)
                offset += difference
                if not 0 <= offset <= NUMBER_MAX:
                    return None
                found[partition] = offset
    except (binascii.Error, IndexError, KafkaError):
        return None
    return found
