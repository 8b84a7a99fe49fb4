"""Files of logs: lines as they are written, rotated files, and lines that make one event."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.logs.files import EVENT_MAX, LINES_MAX, READ_MAX, Joiner, Line, Place, Tail
from kpybroker.pipelines.logs.source import SETTLE_S, Shipper, Source


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


def test_a_file_that_was_renamed_while_no_shipper_ran_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    first = Tail(path)
    assert texts(first) == ["one"]
    place = Place(first.inode, first.position)
    first.close()
    with path.open("ab") as file:
        file.write(b"two\n")
    path.rename(tmp_path / "log.1")
    (tmp_path / "log.2").write_bytes(b"older\n")
    path.write_bytes(b"three\n")
    again = Tail(path, place)
    assert texts(again) == ["two"]
    assert texts(again) == ["three"]


def test_a_renamed_file_is_read_also_where_there_is_no_new_one_yet(tmp_path: Path) -> None:
    path = tmp_path / "log"
    (tmp_path / "log.1").write_bytes(b"one\ntwo\n")
    tail = Tail(path, Place((tmp_path / "log.1").stat().st_ino, 4))
    assert texts(tail) == ["two"]
    path.write_bytes(b"three\n")
    assert [*texts(tail), *texts(tail)] == ["three"]


def test_a_carriage_return_in_a_line_ends_no_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"10%\r20%\r\nnext\n")
    assert texts(Tail(path)) == ["10%\r20%", "next"]


def test_no_event_is_larger_than_a_broker_takes(tmp_path: Path) -> None:
    """Bytes that are no text have three bytes each in UTF-8. Nothing is lost."""
    path = tmp_path / "log"
    path.write_bytes(b"ERROR:a:failed\n" + b"  \xff" * 100_000 + b"\n" + b"".join(b"  %d\n" % n for n in range(900)))
    with path.open("ab") as file:
        file.write((b"y" * 2_000 + b"\n") * 600 + b"\xfe" * READ_MAX + b"\nINFO:a:next\n")
    events = list(Source(path, None, "host").events(0.0, last=True))
    assert max(len(event.encode()) for event in events) <= EVENT_MAX
    text = path.read_bytes().decode(errors="replace")
    assert "".join("".join(events).split()) == "".join(text.split())
    assert events[-1] == "INFO:a:next"


def test_an_event_that_the_client_refuses_is_reported_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(f"ERROR:a:{'x' * 2_000}\n")
    client = {"bootstrap.servers": "127.0.0.1:1", "message.max.bytes": "1000", "log_level": "0"}
    shipper = Shipper(client, "lines", [Source(path, None, "host")], None)
    with pytest.raises(PipelineError, match=r"An event of .*log cannot be sent: .*[Mm]essage size too large"):
        shipper.send(last=True)
