"""Lines of logs as columns. A record is one event: its first line, and the lines that belong to it, such as a trace.

The format of each record is recognized from its beginning, so one topic may have them all. `BEGINNINGS` is what the
shipper joins lines by: a line that begins like none of these belongs to the event before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

LEVELS: Mapping[str, tuple[str, ...]] = {
    "TRACE": ("TRACE", "FINEST"),
    "DEBUG": ("DEBUG", "FINE", "7"),
    "INFO": ("INFO", "INFORMATION", "NOTICE", "5", "6"),
    "WARN": ("WARN", "WARNING", "4"),
    "ERROR": ("ERROR", "ERR", "SEVERE", "3"),
    "FATAL": ("FATAL", "CRITICAL", "CRIT", "ALERT", "EMERGENCY", "PANIC", "0", "1", "2"),
}
"""From the least to the worst, with the names that formats have for each; the digits are syslog's."""

FIELDS: Mapping[str, tuple[str, ...]] = {
    "time": ("time", "timestamp", "@timestamp", "ts"),
    "level": ("level", "severity", "levelname"),
    "service": ("service", "app"),
    "host": ("host", "hostname"),
    "logger": ("logger", "logger_name", "name"),
    "message": ("message", "msg"),
    "details": ("error", "exception", "stack_trace", "stack", "exc_info"),
    "correlation_id": ("correlation_id", "trace_id", "request_id", "traceId"),
}
"""Column -> the keys of JSON that may have it, the first that is there counts."""

_DAY_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
_TIME = rf"^{_DAY_TIME}(\.\d{{1,9}})? ?(Z|[+-]\d\d:?\d\d)?$"
_LEVEL = "TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL"

LOG4J = (
    rf"(?s)^\[({_DAY_TIME}[,.]\d{{3}})\] ({_LEVEL}) +(.*?) ?\(([\w.$:/-]{{1,200}})\)[ \t\r]*(?:\n(.*))?$",
    ("time", "level", "message", "logger", "details"),
)
SYSLOG = (
    r"(?s)^<(\d{1,3})>1 (\S+) (\S+) (\S+) \S+ \S+ (?:-|\[.*?[^\\]\](?=\s|$))(?: \x{FEFF}?([^\n]*))?(?:\n(.*))?$",
    ("level", "time", "host", "service", "message", "details"),
)
JOURNAL = (
    rf"(?s)^({_DAY_TIME}(?:\.\d{{1,9}})?(?:Z|[+-]\d\d:?\d\d)) (\S+) ([^\s:\[]+)(?:\[\d+\])?: ([^\n]*)(?:\n(.*))?$",
    ("time", "host", "service", "message", "details"),
)
PYTHON = (
    rf"(?s)^({_DAY_TIME}[,.]\d{{3}}) - ([\w.-]+) - ({_LEVEL}) - ([^\n]*)(?:\n(.*))?$",
    ("time", "logger", "level", "message", "details"),
)
PYTHON_BASIC = (rf"(?s)^({_LEVEL}):([\w.-]+):([^\n]*)(?:\n(.*))?$", ("level", "logger", "message", "details"))

TEXTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "log4j": LOG4J,
    "syslog": SYSLOG,
    "journal": JOURNAL,
    "python": PYTHON,
    "python-basic": PYTHON_BASIC,
}
"""Format -> its pattern, in the syntax of Java, and the columns of the pattern's groups."""
FORMATS = ("json", *TEXTS)
BEGINNINGS = rf"\{{|<\d{{1,3}}>1 |\[?{_DAY_TIME}|(?:{_LEVEL}):"
"""A line that begins an event, as a pattern of Python's."""

_CORRELATION = r"(?i)\b(?:correlation|trace|request)[_-]id[=:] ?\"?([\w-]+)"
_ID = r"^(?![0-]+$).{8,200}$"
"""Ids that are shorter are numbers of a connection, as Kafka's correlation ids are, or say that there is none."""
COLUMNS = ("time", "level", "host", "service", "logger", "message", "details", "correlation_id")


def once(value: Column) -> Column:
    """The value, as a generator of one row: Spark computes it once, and not in each expression that uses it.

    Its optimizer would put the value into all of them, and into the filters above: minutes to plan, for each query.
    """
    from pyspark.sql import functions as F

    return F.explode(F.array(value))


def fields(text: Column) -> Column:
    """The object of the first line with the keys of `FIELDS`, all strings; null where the line is none."""
    from pyspark.sql import functions as F

    keys = [key for names in FIELDS.values() for key in names]
    first = F.substring_index(text, "\n", 1)
    return F.when(text.startswith("{"), F.from_json(first, ", ".join(f"`{key}` string" for key in keys)))


def understood(text: Column, found_fields: Column) -> Column:
    """`format` and `COLUMNS`, all strings, as a struct; null where the text is in no known format.

    `found_fields` is `fields(text)`.
    """
    from pyspark.sql import functions as F

    found = F.when(text.startswith("{"), _json(text, found_fields))
    for name, (pattern, groups) in TEXTS.items():
        found = found.when(text.rlike(pattern), _of_pattern(text, name, pattern, groups))
    return found


def _struct(name: str, columns: Mapping[str, Column]) -> Column:
    from pyspark.sql import functions as F

    nothing = F.lit(None).cast("string")
    return F.struct(F.lit(name).alias("format"), *(columns.get(column, nothing).alias(column) for column in COLUMNS))


def _of_pattern(text: Column, name: str, pattern: str, groups: tuple[str, ...]) -> Column:
    from pyspark.sql import functions as F

    columns = {column: _given(F.regexp_extract(text, pattern, group)) for group, column in enumerate(groups, 1)}
    if name == "syslog":
        columns["level"] = (columns["level"].cast("int") % 8).cast("string")
    columns["correlation_id"] = _given(F.regexp_extract(text, _CORRELATION, 1))
    return _struct(name, columns)


def _json(text: Column, found: Column) -> Column:
    """Null where there is no object, or one that has neither a time nor a message."""
    from pyspark.sql import functions as F

    columns = {column: F.coalesce(*(_given(found[key]) for key in names)) for column, names in FIELDS.items()}
    more = _given(F.regexp_extract(text, r"(?s)^[^\n]*\n(.*)$", 1))
    columns["details"] = F.coalesce(columns["details"], more)
    return F.when(columns["time"].isNotNull() | columns["message"].isNotNull(), _struct("json", columns))


def _given(text: Column) -> Column:
    """Null for what is empty, or syslog's `-`."""
    from pyspark.sql import functions as F

    return F.when(~text.isin("", "-"), text)


def as_time(text: Column) -> Column:
    """ISO 8601 with date and time of day, or seconds or milliseconds since 1970; null for anything else."""
    from pyspark.sql import functions as F

    iso = F.regexp_replace(text, ",", ".")
    return (
        F.when(iso.rlike(_TIME), iso.try_cast("timestamp"))
        .when(text.rlike(r"^(\d{10}(\.\d+)?|\d(\.\d+)?E9)$"), text.try_cast("double").try_cast("timestamp"))
        .when(text.rlike(r"^\d{13}$"), F.timestamp_millis(text.try_cast("bigint")))
    )


def as_level(text: Column) -> Column:
    """One of `LEVELS`; null for a name that is none of theirs."""
    return _chain(text, lambda level, _number: level)


def severity(level: Column) -> Column:
    """The number of a level in `LEVELS`."""
    return _chain(level, lambda _level, number: number)


def _chain(text: Column, value: Callable[[str, int], str | int]) -> Column:
    from pyspark.sql import functions as F

    name = F.upper(text)
    found = F.when(F.lit(False), F.lit(None))
    for number, (level, names) in enumerate(LEVELS.items()):
        found = found.when(name.isin(*names), F.lit(value(level, number)))
    return found


def as_correlation(text: Column) -> Column:
    """The id; null for one that cannot be an id of one request: short, or zeros only."""
    from pyspark.sql import functions as F

    return F.when(text.rlike(_ID), text)
