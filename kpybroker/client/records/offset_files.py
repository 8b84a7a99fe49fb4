"""Files of committed offsets: JSON, which loses nothing, and CSV as `kafka-consumer-groups.sh` reads and writes it.

| format | a row |
|---|---|
| json | a list of `{"group", "topic", "partition", "offset", "leader_epoch", "metadata"}` |
| csv of one group | `topic,partition,offset` |
| csv of several | `group,topic,partition,offset` |

Pure functions: no files, no cluster.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from kpybroker.client.connect.visible import is_text, visible

FORMATS: Final = ("json", "csv")
OFFSET_MAX: Final = 2**63 - 1
NUMBER_MAX: Final = 2**31 - 1
IS_JSON: Final = re.compile(r"\s*(\[\s*([\[{\]\d]|$)|\{)")
KEYS: Final = frozenset({"group", "topic", "partition", "offset", "leader_epoch", "metadata"})


class BadFile(ValueError):
    """A text that holds no offsets; it says where and why."""


class CommittedOffset(NamedTuple):
    """What a group has committed of one partition. `group` is None where a file does not name it."""

    group: str | None
    topic: str
    partition: int
    offset: int
    leader_epoch: int | None = None
    metadata: str | None = None


def dump(rows: Sequence[CommittedOffset], format_name: str) -> str:
    """The text of a file. In CSV of one group the group is not named, as Kafka's tool has it."""
    if format_name == "json":
        return json.dumps([row._asdict() for row in rows], ensure_ascii=False, indent=2) + "\n"
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    is_one = len({row.group for row in rows}) <= 1
    for row in rows:
        place = (row.topic, row.partition, row.offset)
        writer.writerow(place if is_one else (row.group, *place))
    return text.getvalue()


def parse(text: str) -> list[CommittedOffset]:
    """The offsets of a file in either format, in its order. Raises BadFile; a partition that is named twice is bad."""
    rows = _from_json(text) if IS_JSON.match(text) else _from_csv(text)
    seen = set()
    for row in rows:
        if not all(is_text(word) for word in (row.group, row.topic, row.metadata) if word is not None):
            raise BadFile(f"a name of {visible(row.topic)}-{row.partition} is no UTF-8")
        place = row[:3]
        if place in seen:
            raise BadFile(f"{row.topic}-{row.partition} is there twice")
        seen.add(place)
    return rows


def _from_csv(text: str) -> list[CommittedOffset]:
    rows = []
    reader = csv.reader(io.StringIO(text), strict=True)
    try:
        for words in reader:
            if not "".join(words).strip() or words[0].startswith("#"):
                continue
            if len(words) not in (3, 4):
                raise BadFile(f"line {reader.line_num} is neither topic,partition,offset nor those after a group")
            group, topic, partition, offset = [None, *words][-4:] if len(words) == 3 else words
            where = f"line {reader.line_num}"
            place = (_number(partition, NUMBER_MAX, where), _number(offset, OFFSET_MAX, where))
            rows.append(CommittedOffset(group, str(topic), *place))
    except csv.Error as error:
        raise BadFile(f"line {reader.line_num}: {error}") from None
    return rows


def _number(text: object, most: int, where: str) -> int:
    word = str(text).strip()
    if not (word.isascii() and word.isdigit() and len(word) < 20 and int(word) <= most):
        raise BadFile(f"{where}: {word[:30]!r} is no partition or offset")
    return int(word)


def _from_json(text: str) -> list[CommittedOffset]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadFile(f"it is no JSON: {error}") from None
    if not isinstance(found, list):
        raise BadFile("it is no list of offsets")
    return [_row(one, number) for number, one in enumerate(found, 1)]


def _row(one: Any, number: int) -> CommittedOffset:
    where = f"item {number}"
    if not isinstance(one, dict) or not {"topic", "partition", "offset"} <= one.keys() <= KEYS:
        raise BadFile(f"{where} has not the keys topic, partition, offset, and maybe {', '.join(_optional())}")
    texts = [one.get("group"), one["topic"], one.get("metadata")]
    if not isinstance(one["topic"], str) or not all(text is None or isinstance(text, str) for text in texts):
        raise BadFile(f"{where}: group, topic and metadata are texts")
    numbers = [one["partition"], one["offset"], one.get("leader_epoch")]
    if any(isinstance(value, bool) or not isinstance(value, int | None) for value in numbers):
        raise BadFile(f"{where}: partition, offset and leader_epoch are whole numbers")
    epoch = numbers[2]
    return CommittedOffset(
        texts[0],
        one["topic"],
        _number(numbers[0], NUMBER_MAX, where),
        _number(numbers[1], OFFSET_MAX, where),
        None if epoch is None else _number(epoch, NUMBER_MAX, where),
        texts[2],
    )


def _optional() -> Iterable[str]:
    return ("group", "leader_epoch", "metadata")
