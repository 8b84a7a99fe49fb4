"""Whether the header of a magic 2 batch says the truth about its records: sizes, count, last offset, largest timestamp.

Kafka's leader reads every record of every batch and writes what it finds into the header (LogValidator). Here most
batches are stored on their header's word, and this is the check of those that are not: the cheapest walk that would
notice, which reads the size and the timestamp of each record and no more. What to do with a batch that fails it is
`validate_and_assign`'s business, which corrects or refuses it as Kafka does.

Not here: which batches are walked (`core.log.header_trust`).
"""

from __future__ import annotations

from kpybroker.wire.compression import UndecodableError
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.primitives import Buffer
from kpybroker.wire.records.append_rules import CHECKED_RECORDS_MIN
from kpybroker.wire.records.batch import (
    BatchHeader,
    TimestampType,
    computed_crc,
    parse_header,
)
from kpybroker.wire.records.default_record import (
    INT64_MIN,
    can_hold,
    iter_spans,
    read_long_varint,
    read_varint,
    records_section,
)
from kpybroker.wire.records.legacy import read_wrapper
from kpybroker.wire.records.pauses import pausing


def is_true(records: Buffer, max_records: int, max_bytes: int) -> bool | None:
    """Whether the header of the one batch in `records` is true of its records.

    None where that can't be found out within `max_records` and `max_bytes` of uncompressed records. True for what is
    not one sound batch of magic 2, which is refused or converted in any case.
    """
    try:
        header = parse_header(records)
        if header.magic != 2 or header.size != len(records) or computed_crc(records, 0, header) != header.crc:
            return True
        if header.timestamp_type is TimestampType.LOG_APPEND_TIME or header.records_count <= 0:
            return True  # refused
        section = records_section(records, 0, header, max_bytes)
        if header.records_count > max_records:
            return None if can_hold(section, header.records_count) else False
        largest, is_sound = _walk(section, header.records_count)
    except (UndecodableError, IndexError):
        return False
    except KafkaError as error:
        return None if error.code is ErrorCode.MESSAGE_TOO_LARGE else error.code is ErrorCode.CORRUPT_MESSAGE
    return is_sound and header.base_timestamp + largest == header.max_timestamp


def largest_timestamp(buffer: Buffer, position: int, header: BatchHeader, max_bytes: int) -> int:
    """The largest timestamp of the records of the batch at `position`, of any magic; the header's where it has none.

    Raises INVALID_RECORD where they are not what the header says, CORRUPT_MESSAGE, and MESSAGE_TOO_LARGE above
    `max_bytes`.
    """
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME or header.records_count == 0:
        return header.max_timestamp
    if header.magic < 2:
        if not header.is_compressed:
            return header.max_timestamp
        messages = read_wrapper(buffer, header, position, max_bytes=max_bytes, max_records=CHECKED_RECORDS_MIN)
        return max(message.record.timestamp for message in messages)
    section = records_section(buffer, position, header, max_bytes)
    try:
        largest, is_sound = _walk(section, header.records_count)
    except IndexError:
        is_sound = False
    if is_sound:
        return header.base_timestamp + largest
    # Something is unusual: offsets with gaps, as compaction leaves them, or a damaged record. The strict reader knows.
    return max(span.timestamp for span in iter_spans(section, header))


def _walk(section: Buffer, count: int) -> tuple[int, bool]:
    """The largest timestamp delta; and whether there are `count` records, which fill the section, the last of them at
    offset `count - 1`. Raises IndexError.

    Varints of one and two bytes, which are nearly all, are decoded in line.
    """
    largest = INT64_MIN
    end = position = 0
    for _ in pausing(count):
        position = end
        byte = section[position]
        if byte < 0x80:
            end = position + 1 + (byte >> 1)
            position += 2
        elif (second := section[position + 1]) < 0x80:
            end = position + 2 + ((byte & 0x7F | second << 7) >> 1)
            position += 3
        else:
            size, position = read_long_varint(section, position, 32)
            end = position + size
            position += 1
        byte = section[position]
        if byte < 0x80:
            delta = byte >> 1 ^ -(byte & 1)
            position += 1
        else:
            delta, position = read_long_varint(section, position, 64)
        if delta > largest:
            largest = delta
    return largest, end == len(section) and read_varint(section, position)[0] == count - 1
