"""`kpybroker log merge-state-changes`: Kafka's `kafka.tools.StateChangeLogMerger` (removed in Kafka 4.0).

It merges the state-change logs of several brokers by time, and keeps the lines about partitions, perhaps of one topic.

Kafka's tool finds a partition only where it is written `[topic,0]`, as Kafka did before 1.0, so of a log of today it
prints close to nothing. Here partitions are found in the forms of all versions, and in JSON lines, which are printed in
Kafka's form. Lines of the same millisecond are in the order of the files.
"""

from __future__ import annotations

import heapq
import json
import os
import re
import signal
import sys
import time
from calendar import timegm
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Final, NamedTuple, TextIO

from kpybroker.cli.exit_codes import EXIT_CONFIG, EXIT_OK, fail

DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2},\d{3}")
EARLIEST: Final = "0000-00-00 00:00:00,000"
LATEST: Final = "9999-12-31 23:59:59,999"

_TOPIC = r"[a-zA-Z0-9._-]+"
PARTITION_FORMS: Final = tuple(
    re.compile(form)
    for form in (
        rf"topicName='({_TOPIC})', partitionIndex=(\d+)",
        rf"\b(?:[Pp]artitions?|[Ll]eader|[Ff]ollower|[Rr]eplica) \[?({_TOPIC})-(\d+)(?![\w.-]*\w)",
        rf"\[({_TOPIC}), *(\d+)\]",
    )
)
"""How a line names a partition. The last form is the one that Kafka's tool knows."""

TIMES_FIX: Final = "write it as '2024-01-31 13:00:00,000', the time of the logs"


class Selection(NamedTuple):
    """Which lines are printed; the times are inclusive."""

    topic: str | None = None
    partitions: frozenset[int] = frozenset()
    start: str = EARLIEST
    end: str = LATEST


class Options(NamedTuple):
    """The options of the command, as given."""

    logs: str | None
    logs_regex: str | None
    topic: str | None
    partitions: str | None
    start_time: str
    end_time: str


def run_merge(options: Options) -> int:
    """Print the merged lines; the exit code."""
    selection = _selection(options)
    paths = _paths(options)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    with ExitStack() as stack:
        logs = [stack.enter_context(_opened(path)) for path in paths]
        try:
            for line in merged(logs, selection):
                sys.stdout.buffer.write(line.encode("utf-8", "surrogateescape") + b"\n")
            sys.stdout.buffer.flush()
        except IsADirectoryError as error:
            fail(f"{error.filename} cannot be read: {error.strerror}", "name state-change logs", EXIT_CONFIG)
    return EXIT_OK


def _opened(path: str) -> TextIO:
    try:
        return open(path, encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}", "name state-change logs", EXIT_CONFIG)


def merged(logs: Sequence[Iterator[str]], selection: Selection) -> Iterator[str]:
    """The selected lines of all logs in the order of their times."""
    chosen = [_chosen(log, selection) for log in logs]
    return (line for _, line in heapq.merge(*chosen, key=lambda dated: dated[0]))


def _chosen(log: Iterator[str], selection: Selection) -> Iterator[tuple[str, str]]:
    """(time, line) of the lines that are selected; a line without a time, as of a traceback, is not."""
    for raw in log:
        line = raw.rstrip("\r\n")
        if line.startswith("{"):
            line = text_of_json(line)
        date = DATE.search(line)
        if date is None or not selection.start <= date.group() <= selection.end:
            continue
        partition = partition_of(line)
        if partition is None or selection.topic not in (None, partition[0]):
            continue
        if not selection.partitions or partition[1] in selection.partitions:
            yield date.group(), line


def partition_of(line: str) -> tuple[str, int] | None:
    """The partition that a line is about."""
    for form in PARTITION_FORMS:
        if (found := form.search(line)) is not None:
            return found[1], int(found[2])
    return None


def text_of_json(line: str) -> str:
    """A JSON line in Kafka's form and in local time; one that is none of ours is returned as it is."""
    try:
        fields = json.loads(line)
        stamp, level, message, logger = (str(fields[name]) for name in ("timestamp", "level", "message", "logger"))
        seconds = timegm(time.strptime(stamp[:19], "%Y-%m-%dT%H:%M:%S"))
    except (ValueError, KeyError, TypeError):
        return line
    local = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    return f"[{local},{stamp[20:23]}] {level} {message} ({logger})"


def _selection(options: Options) -> Selection:
    if options.partitions is not None and options.topic is None:
        fail("--partitions is given without a topic", "name it with --topic", EXIT_CONFIG)
    start, end = (given.replace('"', " ").strip() for given in (options.start_time, options.end_time))
    for name, given in (("--start-time", start), ("--end-time", end)):
        if DATE.fullmatch(given) is None:
            fail(f"{name} {given!r} is not a time", TIMES_FIX, EXIT_CONFIG)
    return Selection(options.topic, _partitions(options.partitions), start, end)


def _partitions(given: str | None) -> frozenset[int]:
    if given is None:
        return frozenset()
    names = [name.strip() for name in given.split(",")]
    wrong = next((name for name in names if not (name.isascii() and name.isdigit())), None)
    if wrong is not None:
        fail(f"--partitions {given} has {wrong!r}, which is no partition", "write numbers: 0,1,2", EXIT_CONFIG)
    found = [int(name) for name in names]
    repeated = sorted({str(index) for index in found if found.count(index) > 1})
    if repeated:
        fail(f"--partitions {given} repeats {', '.join(repeated)}", "name each partition once", EXIT_CONFIG)
    return frozenset(found)


def _paths(options: Options) -> list[str]:
    if (options.logs is None) == (options.logs_regex is None):
        fail(
            "exactly one of --logs and --logs-regex is needed",
            "name the files with --logs A,B or by a pattern with --logs-regex",
            EXIT_CONFIG,
        )
    if options.logs is not None:
        return options.logs.split(",")
    assert options.logs_regex is not None
    directory, _, pattern = options.logs_regex.rpartition("/")
    directory = directory or ("/" if options.logs_regex.startswith("/") else ".")
    try:
        name = re.compile(pattern)
        found = sorted(file for file in os.listdir(directory) if name.search(file))
    except re.error as error:
        fail(f"--logs-regex {pattern!r} is no pattern: {error}", "write a regular expression", EXIT_CONFIG)
    except OSError as error:
        fail(f"{directory} cannot be read: {error.strerror}", "name a directory before the pattern", EXIT_CONFIG)
    if not found:
        fail(f"no file in {directory} matches {pattern!r}", "check the regular expression", EXIT_CONFIG)
    return [f"{directory}/{file}" for file in found]
