"""The line that a terminal shows, and a pipe does not."""

from __future__ import annotations

import io
import sys
import time

import pytest

from kpybroker.client.transfer.progress import CLEAR, Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> str:
    """What is written of a copy whose clock goes on by half a second for each line."""
    times = iter([100.0, 100.5, 101.0, 101.5, 102.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    monkeypatch.setattr(sys, "stderr", stream)
    line = Progress()
    for count in (10, 20, 30, 40):
        line.show(count, 100 - count)
    line.clear()
    return stream.getvalue()


def test_a_terminal_sees_a_line_every_second(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{CLEAR}copied 20 records, 20/s, 80 left", f"{CLEAR}copied 40 records, 20/s, 60 left"]
    assert shown(monkeypatch, Terminal()) == "".join(lines) + CLEAR


def test_a_pipe_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, io.StringIO()) == ""
