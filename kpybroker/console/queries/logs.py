"""Log lines of a development broker, from its control channel: the newest ones, by level, logger, text and request.

The channel keeps the last lines of the process, so there is a bound whatever a page asks. A request's lines carry its
correlation id and client id (`kpybroker.control.log_formats`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from kpybroker.console.queries.control import Control
from kpybroker.console.queries.decoding import visible

READ_MAX: Final = 2000
SHOWN_MAX: Final = 200
CHARACTERS_MAX: Final = 4000
"""Of one line, with its traceback."""
LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
LINE: Final = re.compile(r"\[(?P<time>[^\]]{1,40})\] (?P<level>[A-Z]{4,5}) (?P<text>.*) \((?P<logger>[^()\s]+)\)")


class Filter(NamedTuple):
    """Which lines a page shows: of at least a level, of a logger and those below it, with a text, of a request."""

    level: str = ""
    logger: str = ""
    text: str = ""
    correlation: str = ""
    client_id: str = ""


class Line(NamedTuple):
    """One line; further lines are a traceback."""

    time: str
    level: str
    logger: str
    text: str


def parsed(line: str) -> Line:
    """A line in Kafka's format; one in another is all text."""
    head, end, trace = line.partition("\n")
    found = LINE.fullmatch(head)
    if found is None:
        return Line("", "", "", line)
    return Line(found["time"], found["level"], found["logger"], found["text"] + end + trace)


def lines(control: Control, wanted: Filter) -> list[Line]:
    """The newest lines that are wanted, newest first. Raises CommandError."""
    return chosen([parsed(line) for line in control.call("log", lines=READ_MAX)], wanted)


def chosen(found: Sequence[Line], wanted: Filter) -> list[Line]:
    """Those that are wanted, newest first, cut, and without control characters."""
    least = LEVELS.index(wanted.level) if wanted.level in LEVELS else -1
    kept = [line for line in found if _is_wanted(line, wanted, least)][-SHOWN_MAX:]
    return [Line(*(visible(part[:CHARACTERS_MAX]) for part in line)) for line in reversed(kept)]


def _is_wanted(line: Line, wanted: Filter, least: int) -> bool:
    if line.level in LEVELS and LEVELS.index(line.level) < least:
        return False
    if wanted.logger and line.logger != wanted.logger and not line.logger.startswith(f"{wanted.logger}."):
        return False
    if wanted.text.lower() not in line.text.lower():
        return False
    return _has(line, wanted.correlation, "correlation_id=", '"correlationId":') and _has(
        line, wanted.client_id, "client_id=", '"clientId":"'
    )


def _has(line: Line, value: str, *names: str) -> bool:
    """Whether the line has the value under one of the names, and not only as its beginning."""
    return not value or any(re.search(rf"{re.escape(name + value)}(?![\w.-])", line.text) for name in names)
