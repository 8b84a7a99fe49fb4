"""How many log lines a subject may cause: a budget for each, and a count of what it did not allow.

A subject is a client, or a kind of line that any client can cause (`Seldom`). Pure: the time is an argument. At most
`SUBJECTS_MAX` subjects have a window; the oldest one gives way to a new one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

LINES_MAX: Final = 100
"""Of one client, in a window, by default. A third is kept for warnings and errors: a chatty client hides none of them.
"""
WINDOW_S: Final = 60.0
SUBJECTS_MAX: Final = 1_000


CLIENT: Final = "client_address"
"""The attribute of a log record that a client has caused."""


def about_client(address: str) -> dict[str, object]:
    """`extra` of a log line that a client at this address has caused."""
    return {CLIENT: address}


class Suppressed(NamedTuple):
    """How many lines about a subject there were beyond its budget."""

    subject: str
    lines: int


class _Window:
    __slots__ = ("began", "suppressed", "written")

    def __init__(self, began: float) -> None:
        self.began = began
        self.written = 0
        self.suppressed = 0


class LineLimit:
    """The windows of all subjects. A window begins with a line and lasts `window_s`."""

    __slots__ = ("_counts", "_window_s", "_windows", "lines_max")

    def __init__(self, lines_max: int = LINES_MAX, window_s: float = WINDOW_S) -> None:
        self.lines_max = lines_max
        """0: no limit."""
        self._window_s = window_s
        self._windows: dict[str, _Window] = {}  # by the time they began
        self._counts: list[Suppressed] = []

    def allows(self, subject: str, now: float, *, is_warning: bool) -> bool:
        """Whether a line about `subject` is written at `now`, in seconds; one that is not is counted."""
        if not self.lines_max:
            return True
        window = self._windows.get(subject)
        if window is not None and now - window.began >= self._window_s:
            self._end(subject)
            window = None
        if window is None:
            if len(self._windows) >= SUBJECTS_MAX:
                self._end(next(iter(self._windows)))
            window = self._windows[subject] = _Window(now)
        if window.written >= (self.lines_max if is_warning else self.lines_max - self.lines_max // 3):
            window.suppressed += 1
            return False
        window.written += 1
        return True

    def take_counts(self, now: float) -> list[Suppressed]:
        """What was suppressed in windows that are over at `now` (infinity: in all), and was not returned before."""
        for subject, window in list(self._windows.items()):
            if now - window.began < self._window_s:
                break
            self._end(subject)
        return self.take_ended()

    def take_ended(self) -> list[Suppressed]:
        """As `take_counts`, of windows that gave way to a new one."""
        counts, self._counts = self._counts, []
        return counts

    def _end(self, subject: str) -> None:
        window = self._windows.pop(subject)
        if window.suppressed:
            self._counts.append(Suppressed(subject, window.suppressed))


class Seldom:
    """Kinds of lines, each at most once in `period_s`: the first at once, the next one with a count of the others."""

    __slots__ = ("_limit",)

    def __init__(self, period_s: float = WINDOW_S) -> None:
        self._limit = LineLimit(1, period_s)

    def may_say(self, now: float, kind: str = "") -> int | None:
        """How many lines were left out since the last one, if one may be written now; None: leave out this one too."""
        if not self._limit.allows(kind, now, is_warning=True):
            return None
        return sum(one.lines for one in self._limit.take_ended() if one.subject == kind)
