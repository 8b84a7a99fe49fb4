"""How `kpybroker log` prints: times, keys and values, headings."""

from __future__ import annotations

import json

import pytest

from kpybroker.cli.dump.format import TEXT_MAX, as_json, finding_line, moment, summary_line, summary_row, table
from kpybroker.storage.inspection.dump_segment import Row, shown
from kpybroker.storage.inspection.verify import NOTE, Finding, Totals


def record(**parts: object) -> Row:
    row: Row = {"type": "record", "offset": 5, "timestamp": 0, "headers": [], "file": "/f"}
    return row | parts


def printed(row: Row) -> str:
    return list(table(iter([row])))[-1].strip()


@pytest.mark.parametrize(
    ("timestamp_ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1795235271541, "2026-11-21T04:27:51.541Z"),
        (-1, "-"),
        (None, "-"),
        (2**62, str(2**62)),
    ],
)
def test_moments(timestamp_ms: int | None, text: str) -> None:
    assert moment(timestamp_ms) == text


def test_values_are_text_hex_null_or_decoded_and_never_break_a_line() -> None:
    start = "5 1970-01-01T00:00:00.000Z "
    assert printed(record(**shown("key", b"k"), **shown("value", b"a\nb"))) == start + "k => a\\nb"
    assert printed(record(**shown("key", None), **shown("value", b"\x00\xff"))) == start + "null => 0x00ff"
    assert printed(record(**shown("key", b"k"), **shown("value", "\u2028".encode()))) == start + "k => 0xe280a8"
    decoded = {"type": "OffsetCommitKey", "version": 1, "data": {"group": "g"}}
    assert printed(record(key=decoded, value=None)) == start + 'OffsetCommitKey/1 {"group": "g"} => null'
    named = {"type": "ShareGroupMetadataValue", "version": 0, "base64": "AAA="}
    assert printed(record(key=decoded, value=named)).endswith(" => ShareGroupMetadataValue/0 AAA=")
    header = {"key": "h", **shown("value", b"v")}
    assert printed(record(key="k", value="v", headers=[header])) == start + "k => v  [h=v]"


def test_long_values_are_cut_with_their_length() -> None:
    assert f"... ({TEXT_MAX + 50} in all)" in printed(record(key=None, value="x" * (TEXT_MAX + 50)))
    assert len(printed(record(**shown("key", None), **shown("value", bytes(10_000))))) < 2 * TEXT_MAX + 100


def test_a_heading_precedes_each_new_type_of_row() -> None:
    rows = [
        {"type": "file", "size": 16, "file": "/a"},
        {"type": "leaderEpoch", "epoch": 0, "startOffset": 0, "file": "/a"},
        {"type": "leaderEpoch", "epoch": 1, "startOffset": 5, "file": "/a"},
        {"type": "error", "position": 7, "message": "broken", "file": "/b"},
    ]
    assert [line.split() for line in table(iter(rows))] == [
        ["/a", "(16", "bytes)"],
        ["epoch", "start"],
        ["0", "0"],
        ["1", "5"],
        ["/b"],
        ["ERROR", "position", "7:", "broken"],
    ]


def test_findings_and_sums() -> None:
    finding = Finding(NOTE, "tail", "/a.log", "being written", 70, 4)
    assert finding_line(finding) == "note  /a.log position 70 offset 4: [tail] being written"
    row = summary_row("/data", Totals(1, 2, 3, 0, 5), 1, 0)
    assert summary_line(row) == "/data: 1 partition, 2 segments, 3 batches, 5 bytes; 1 error, 0 notes"
    assert as_json(row).startswith('{"type":"summary","path":"/data","partitions":1')


ODD = "\x1b[2J\x9b31m\u202e\u2028"
SEEN = "\\x1b[2J\\x9b31m\\u202e\\u2028"


def test_nothing_reprograms_a_terminal_or_breaks_a_line() -> None:
    decoded = {"type": "GroupMetadataKey", "version": 2, "data": {"group": ODD}}
    rows: list[Row] = [
        record(key=None, value=None, headers=[{"key": ODD, **shown("value", b"v")}]),
        record(key=decoded, value=None),
        {"type": "metaProperties", "cluster.id": ODD, "file": f"/{ODD}/meta.properties"},
        {"type": "error", "position": 7, "message": ODD, "file": "/b"},
    ]
    lines = [*table(iter(rows)), *map(as_json, rows)]
    lines.append(finding_line(Finding(NOTE, "tail", f"/{ODD}", ODD, 70, 4)))
    lines.append(summary_line(summary_row(f"/{ODD}", Totals(), 0, 0)))
    assert all(line.isprintable() for line in lines)
    assert f"[{SEEN}=v]" in lines[1]
    assert [json.loads(as_json(row)) for row in rows] == rows
