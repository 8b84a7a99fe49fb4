"""How `kpybroker log` prints: rows and findings as columns for people, or one JSON object a line.

JSON has every field as it is (docs/internals/disk-format.md lists them). Columns leave out rarely used fields, show
times in UTC, and cut long keys and values. Neither has a character that a terminal obeys.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from kpybroker.client.connect.visible import visible, visible_json
from kpybroker.storage.inspection.dump_segment import Row
from kpybroker.storage.inspection.verify import ERROR, Finding, Totals

TEXT_MAX = 200
"""Characters of a key or value shown in columns."""

YEAR_10000_MS = 253_402_300_800_000

Cell = Callable[[Row], Any]
Column = tuple[str, int, Cell]


def as_json(row: Row) -> str:
    """A row as one JSON object on one line."""
    return visible_json(json.dumps(row, ensure_ascii=False, separators=(",", ":")))


def moment(timestamp_ms: int | None) -> str:
    """ISO 8601 in UTC; the number itself from the year 10000 on, a dash for none."""
    if timestamp_ms is None or timestamp_ms < 0:
        return "-"
    if timestamp_ms >= YEAR_10000_MS:
        return str(timestamp_ms)
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(timestamp_ms // 1000))
    return f"{text}.{timestamp_ms % 1000:03d}Z"


def _plain(name: str) -> Cell:
    return lambda row: row[name]


def _known(name: str) -> Cell:
    """A dash for null and for -1, which means none."""
    return lambda row: "-" if row[name] is None or row[name] == -1 else row[name]


def _flags(row: Row) -> str:
    flags = [word for word, field in (("txn", "isTransactional"), ("control", "isControl")) if row[field]]
    if row["deleteHorizonMs"] is not None:
        flags.append(f"horizon={moment(row['deleteHorizonMs'])}")
    if row["timestampType"] == "LogAppendTime":
        flags.append("appendtime")
    return " ".join(flags) + ("" if row["isValid"] else " BAD CRC")


def _range(first: int | None, last: int | None) -> str:
    return "-" if first is None or first < 0 else f"{first}-{last}"


def _producer(row: Row) -> str:
    return "-" if row["producerId"] < 0 else f"{row['producerId']}/{row['producerEpoch']}"


COLUMNS: dict[str, tuple[Column, ...]] = {
    "batch": (
        ("position", 10, _plain("position")),
        ("first", 10, _plain("baseOffset")),
        ("last", 10, _plain("lastOffset")),
        ("count", 6, _known("count")),
        ("size", 8, _plain("size")),
        ("magic", 5, _plain("magic")),
        ("codec", 6, _plain("compression")),
        ("epoch", 5, _known("partitionLeaderEpoch")),
        ("producer", 9, _producer),
        ("sequences", 12, lambda row: _range(row["baseSequence"], row["lastSequence"])),
        ("timestamp", -24, lambda row: moment(row["timestamp"])),
        ("", 0, _flags),
    ),
    "offsetIndex": (("offset", 12, _plain("offset")), ("position", 12, _plain("position"))),
    "timeIndex": (("timestamp", -24, lambda row: moment(row["timestamp"])), ("offset", 12, _plain("offset"))),
    "abortedTxn": (
        ("producer", 12, _plain("producerId")),
        ("first", 12, _plain("firstOffset")),
        ("last", 12, _plain("lastOffset")),
        ("lso", 12, _plain("lastStableOffset")),
    ),
    "producer": (
        ("producer", 12, _producer),
        ("sequences", 14, lambda row: _range(row["firstSequence"], row["lastSequence"])),
        ("last offset", 12, _known("lastOffset")),
        ("txn from", 12, _known("currentTxnFirstOffset")),
        ("coordinator", 11, _known("coordinatorEpoch")),
        ("timestamp", -24, lambda row: moment(row["lastTimestamp"])),
    ),
    "leaderEpoch": (("epoch", 12, _plain("epoch")), ("start", 12, _plain("startOffset"))),
    "checkpoint": (
        ("offset", 12, _plain("offset")),
        ("partition", 0, lambda row: f"{row['topic']}-{row['partition']}"),
    ),
}


def table(rows: Iterator[Row]) -> Iterator[str]:
    """The rows as lines, with a heading where the type of row changes."""
    return map(visible, _rows(rows))


def _rows(rows: Iterator[Row]) -> Iterator[str]:
    file, kind = None, None
    for row in rows:
        if row["file"] != file:
            file, kind = row["file"], None
            yield f"{file}" + (f"  ({row['size']} bytes)" if "size" in row and row["type"] == "file" else "")
        if row["type"] == "file":
            continue
        columns = COLUMNS.get(row["type"])
        if columns is None:
            yield "    " + _LINES[row["type"]](row)
            continue
        if row["type"] != kind:
            kind = row["type"]
            yield "  " + _aligned((name, width) for name, width, _ in columns)
        yield "  " + _aligned((cell(row), width) for _, width, cell in columns)


def _aligned(cells: Iterator[tuple[Any, int]]) -> str:
    return " ".join(
        f"{str(value).lower() if isinstance(value, bool) else value:<{-width}}" if width <= 0 else f"{value:>{width}}"
        for value, width in cells
    ).rstrip()


def _record_line(row: Row) -> str:
    head = f"{row['offset']:>8} {moment(row['timestamp'])}"
    if "control" in row:
        epoch = f" coordinator epoch {row['coordinatorEpoch']}" if "coordinatorEpoch" in row else ""
        return f"{head} {row['control']}{epoch}"
    headers = " ".join(f"{_escaped(header['key'])}={_part(header, 'value')}" for header in row["headers"])
    return f"{head} {_part(row, 'key')} => {_part(row, 'value')}" + (f"  [{headers}]" if headers else "")


def _part(row: Row, name: str) -> str:
    """A key or value: text as it is, bytes in hex, decoded ones as JSON, null by its name."""
    if f"{name}Base64" in row:
        data = base64.b64decode(row[f"{name}Base64"])
        return _cut("0x" + data[:TEXT_MAX].hex(), len(data))
    value = row[name]
    if value is None:
        return "null"
    if isinstance(value, str):
        return _cut(_escaped(value), len(value))
    if "error" in value:
        return f"<{value['error']}: {value['base64']}>"
    state = f" {value['state']}" if "state" in value else ""
    shown = json.dumps(value["data"], ensure_ascii=False) if "data" in value else value["base64"]
    return f"{value['type']}/{value['version']}{state} {shown}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _cut(text: str, size: int) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}... ({size} in all)"


def _error_line(row: Row) -> str:
    at = "" if row["position"] is None else f"position {row['position']}: "
    return f"ERROR {at}{row['message']}"


def _fields_line(row: Row) -> str:
    hidden = ("type", "file", "others")
    return "  ".join(f"{name}={value}" for name, value in row.items() if name not in hidden and value is not None)


_LINES: dict[str, Callable[[Row], str]] = {
    "record": _record_line,
    "error": _error_line,
    "metaProperties": _fields_line,
    "partitionMetadata": _fields_line,
    "cleanShutdown": _fields_line,
}


def finding_line(finding: Finding) -> str:
    """A finding of `log verify` as text."""
    at = "".join(
        f" {name} {value}"
        for name, value in (("position", finding.position), ("offset", finding.offset))
        if value is not None
    )
    severity = "ERROR" if finding.severity == ERROR else "note "
    return visible(f"{severity} {finding.file}{at}: [{finding.check}] {finding.message}")


def finding_row(finding: Finding) -> Row:
    """A finding of `log verify` as a row for JSON."""
    return {
        "type": "finding",
        "severity": finding.severity,
        "check": finding.check,
        "file": finding.file,
        "position": finding.position,
        "offset": finding.offset,
        "message": finding.message,
    }


def summary_row(path: str, totals: Totals, errors: int, notes: int) -> Row:
    """The totals of one path as a row for JSON."""
    counted = {name: getattr(totals, name) for name in Totals.__slots__}
    return {"type": "summary", "path": path, **counted, "errors": errors, "notes": notes}


def summary_line(row: Row) -> str:
    """The totals of one path as text."""
    counts = ", ".join(
        _count(row[name], name) for name in ("partitions", "segments", "batches", "records", "bytes") if row[name]
    )
    verdict = f"{_count(row['errors'], 'errors')}, {_count(row['notes'], 'notes')}"
    return visible(f"{row['path']}: {counts or 'nothing to count'}; {verdict}")


def _count(number: int, plural: str) -> str:
    singular = {"batches": "batch"}.get(plural, plural[:-1])
    return f"{number} {singular if number == 1 else plural}"
