"""Files of logs: lines as they are written, rotated files, and lines that make one event."""

from __future__ import annotations

from pathlib import Path

from kpybroker.pipelines.logs.files import LINES_MAX, READ_MAX, Joiner, Line, Place, Tail
from kpybroker.pipelines.logs.source import SETTLE_S, Source


def texts(tail: Tail, *, last: bool = False) -> list[str]:
    return [line.text for line in tail.read(last=last)]


def test_a_line_without_an_end_waits_for_it(tmp_path: Path) -> None:
    path = tmp_path / "log"
    tail = Tail(path)
    assert texts(tail) == []
    path.write_bytes(b"one\ntw")
    assert texts(tail) == ["one"]
    assert texts(tail) == []
    with path.open("ab") as file:
        file.write(b"o\r\nthree")
    assert texts(tail) == ["two"]
    assert texts(tail, last=True) == ["three"]


def test_a_rotated_file_is_read_to_its_end_and_then_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    tail = Tail(path)
    assert texts(tail) == ["one"]
    with path.open("ab") as file:
        file.write(b"two\nwithout an end")
    path.rename(tmp_path / "log.1")
    path.write_bytes(b"three\n")
    assert texts(tail) == ["two", "without an end"]
    assert texts(tail) == ["three"]
    path.write_bytes(b"4\n")
    assert texts(tail) == ["4"], "a file that was cut is read from its start"


def test_no_line_of_a_large_file_is_cut_by_the_last_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = [f"2024-03-05 08:00:00,000 - a - INFO - {number} {'x' * 70}" for number in range(3 * READ_MAX // 100)]
    path.write_text("\n".join(lines))
    assert list(Source(path, None, "host").events(0.0, last=True)) == lines


def test_a_line_longer_than_a_read_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * (READ_MAX + 10) + b"\n")
    tail = Tail(path)
    assert [len(line.text) for line in tail.read()] == [READ_MAX]
    assert [len(line.text) for line in tail.read()] == [10]


def test_the_next_run_goes_on_before_an_event_that_is_not_complete(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"ERROR:a:failed\nINFO:a:next\n  more\n")
    source = Source(path, None, "host")
    assert list(source.events(0.0)) == ["ERROR:a:failed"]
    assert source.place() == Place(path.stat().st_ino, 15)
    again = Source(path, None, "host")
    again.tail.begin = source.place()
    assert list(again.events(0.0, last=True)) == ["INFO:a:next\n  more"]
    assert list(source.events(SETTLE_S)) == ["INFO:a:next\n  more"]


def test_an_event_ends_where_its_file_was_rotated(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"ERROR:a:failed\n  trace\n")
    source = Source(path, None, "host")
    assert list(source.events(0.0)) == []
    path.rename(tmp_path / "log.1")
    path.write_bytes(b"  of another\n")
    assert list(source.events(0.1)) == ["ERROR:a:failed\n  trace"]


def test_lines_that_begin_like_no_event_belong_to_the_one_before() -> None:
    joiner = Joiner()
    given = ["", "[2024-03-05 08:00:00,000] ERROR x (a.B)", "java.io.IOException", "", "\tat a.B", '{"time": 1}']
    events = [joiner.push(Line(text, 0)) for text in given]
    assert [event for event in events if event] == ["\n".join(given[1:5])]
    assert joiner.end() == '{"time": 1}'
    assert joiner.end() is None


def test_an_event_has_a_most_of_lines() -> None:
    joiner = Joiner()
    events = [joiner.push(Line("  more", 0)) for _ in range(LINES_MAX + 1)]
    assert [event is not None for event in events] == [False] * LINES_MAX + [True]
