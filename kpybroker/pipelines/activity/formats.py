"""Formats of lines. Each is an expression that turns a line into an event: its time, page, visitor and action.

No Python runs on rows: Spark's own engine evaluates the expressions. A line that is not in its format has no time and
no page; it goes to the dead letters and does not stop the job.

    access     common and combined log lines: the page is the path without its query, the visitor is the remote host,
               the agent of a combined line is its last field
    activity   JSON objects; the keys of time, page, visitor, action and agent can be chosen. A time is ISO 8601, or
               seconds or milliseconds since 1970
    dpkg       Debian's dpkg.log: a page is a package (or a configuration file), the visitor is dpkg itself, an action
               is the word of the line, so that a session is one run of package work

The patterns mean the same in the regular expressions of Java and Python; `guess` uses them on a sample.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import Column

# host, time, request, status; inside the request a quote is escaped with a backslash
ACCESS_LINE = r'^(\S+) \S+ [^\[]*\[([^\]]+)\] "([^"\\]*(?:\\.[^"\\]*)*)" (\d{3}) (?:\d+|-)(?: |$)'
# in a combined log the agent is the last field, quoted like the request
AGENT = r'"([^"\\]*(?:\\.[^"\\]*)*)"\s*$'
REQUEST = r"^([A-Z]+) (\S+)"
# time, word, rest
DPKG_LINE = (
    r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) "
    r"(startup|status|install|upgrade|configure|trigproc|disappear|remove|purge|conffile) (\S.*)$"
)
DPKG = "dpkg"
FIELDS = {"time": "timestamp", "page": "page", "visitor": "user", "action": "action", "agent": "agent"}
"""Keys of a JSON event."""


class EventColumns(NamedTuple):
    """The columns of an event. Each is null where the line does not have it; an event needs the first two."""

    event_time: Column
    page: Column
    visitor: Column
    action: Column
    agent: Column
    """The program of the visitor, as it names itself."""


def _access(value: Column, _fields: Mapping[str, str]) -> EventColumns:
    from pyspark.sql import functions as F

    request = F.regexp_extract(value, ACCESS_LINE, 3)
    target = F.regexp_replace(F.regexp_extract(request, REQUEST, 2), r"^[A-Za-z]+://[^/?#]*", "")
    path = F.regexp_extract(target, r"^[^?#]*", 0)
    method = F.regexp_extract(request, REQUEST, 1)
    return EventColumns(
        F.try_to_timestamp(F.regexp_extract(value, ACCESS_LINE, 2), F.lit("dd/MMM/yyyy:HH:mm:ss Z")),
        F.when(method != "", F.when(path == "", F.lit("/")).otherwise(path)),
        F.regexp_extract(value, ACCESS_LINE, 1),
        method,
        F.nullif(F.regexp_extract(value, AGENT, 1), F.lit("")),
    )


def _activity(value: Column, fields: Mapping[str, str]) -> EventColumns:
    from pyspark.sql import functions as F

    event = F.from_json(value, "map<string,string>")
    time = event[fields["time"]]
    number = time.try_cast("bigint")
    event_time = (
        # eleven digits of seconds end in the year 5138, eleven of milliseconds in 1973
        F.when(time.rlike(r"^\d{1,11}$"), F.timestamp_seconds(number))
        .when(time.rlike(r"^\d{12,14}$"), F.timestamp_millis(number))
        .otherwise(time.try_cast("timestamp"))
    )
    page = event[fields["page"]]
    return EventColumns(
        event_time, F.nullif(page, F.lit("")), event[fields["visitor"]], event[fields["action"]], event[fields["agent"]]
    )


def _dpkg(value: Column, _fields: Mapping[str, str]) -> EventColumns:
    from pyspark.sql import functions as F

    word, rest = F.regexp_extract(value, DPKG_LINE, 2), F.regexp_extract(value, DPKG_LINE, 3)
    package = r"^([^\s:]+)"
    page = (
        F.when(word == "startup", F.lit(DPKG))
        .when(word == "status", F.regexp_extract(rest, r"^\S+ ([^\s:]+)", 1))
        .when(word == "conffile", F.regexp_extract(rest, r"^(.*) \S+$", 1))
        .when(word != "", F.regexp_extract(rest, package, 1))
    )
    action = F.when(word == "status", F.concat_ws(" ", word, F.regexp_extract(rest, package, 1))).otherwise(word)
    event_time = F.try_to_timestamp(F.regexp_extract(value, DPKG_LINE, 1), F.lit("yyyy-MM-dd HH:mm:ss"))
    return EventColumns(event_time, F.nullif(page, F.lit("")), F.lit(DPKG), action, F.lit(None).cast("string"))


FORMATS: dict[str, Callable[[Column, Mapping[str, str]], EventColumns]] = {
    "access": _access,
    "activity": _activity,
    "dpkg": _dpkg,
}


def _is_activity(line: str) -> bool:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(event, dict) and "timestamp" in event and "page" in event


_LOOKS_LIKE: dict[str, Callable[[str], object]] = {
    "access": re.compile(ACCESS_LINE).match,
    "activity": _is_activity,
    "dpkg": re.compile(DPKG_LINE).match,
}


def guess(sample: Iterable[str]) -> str | None:
    """The format of more than half of the lines of `sample`, None if there is none. Empty lines do not count."""
    lines = [line for line in sample if line.strip()]
    counts = {name: sum(1 for line in lines if looks(line)) for name, looks in _LOOKS_LIKE.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] * 2 > len(lines) else None
