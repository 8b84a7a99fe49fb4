"""Files that a test names: what is wrong with one is a UsageError with its path, and the line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from kpybroker.testing.checking.calls import did_you_mean, shown
from kpybroker.testing.checking.kinds import is_encodable, is_topic_name
from kpybroker.testing.errors import UsageError

RECORD_FIELDS: Final = ("topic", "key", "value", "headers", "timestamp_ms", "partition")


def read(path: str | os.PathLike[str]) -> str:
    """The text of a file. Raises UsageError."""
    named = Path(path)
    try:
        if named.exists() and not named.is_file():
            what = "a directory" if named.is_dir() else "not a file"
            raise UsageError(f"{named} is {what}", "give the path of a file")
        return named.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"there is no file {named}", _near(named)) from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{named} is not text in UTF-8: byte {error.start} is wrong", "write it in UTF-8") from None
    except OSError as error:
        raise UsageError(f"{named} cannot be read: {error.strerror or error}", "give a file that can") from None


def _near(path: Path) -> str:
    """A relative path begins at the directory of the run, which is often another one than the test's."""
    try:
        names = [one.name for one in path.parent.iterdir()]
    except OSError:
        return f"a relative path begins at {os.getcwd()}: give one from there, or from the test's own file"
    near = did_you_mean(path.name, names) if names else ""
    if near.startswith("did"):
        return near
    return f"a relative path begins at {os.getcwd()}: give one from there, or from the test's own file"


def records(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The records of a file of JSON lines; all of the file is read first. Raises UsageError, with the line."""
    found = [_record(line, f"{os.fspath(path)}:{number}") for number, line in _lines(read(path))]
    if not found:
        raise UsageError(f"{os.fspath(path)} has no records", 'write lines such as {"topic": "orders", "value": "one"}')
    return iter(found)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line


def _record(line: str, where: str) -> dict[str, Any]:
    import json

    try:
        record = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not JSON: {error}", "write one JSON object a line") from None
    if not isinstance(record, dict):
        raise UsageError(f"{where}: {shown(record)} is not an object", 'write {"topic": ..., "value": ...}')
    for name in record:
        if name not in RECORD_FIELDS:
            raise UsageError(f"{where}: a record has no field {name!r}", did_you_mean(name, RECORD_FIELDS))
    if not is_topic_name(record.get("topic")):
        raise UsageError(f"{where}: the topic is {shown(record.get('topic'))}", "give the name of a topic")
    if "value" not in record:
        raise UsageError(f"{where}: the record has no value", 'give "value": ..., null for a tombstone')
    for name in ("key", "value"):
        if isinstance(record.get(name), str) and not is_encodable(record[name]):
            raise UsageError(f"{where}: the {name} has a lone surrogate", "give text that UTF-8 can have")
    for name, fix in (("partition", "an index from 0"), ("timestamp_ms", "milliseconds since 1970")):
        one = record.get(name)
        if one is not None and (isinstance(one, bool) or not isinstance(one, int) or one < 0):
            raise UsageError(f"{where}: {name} is {shown(one)}", f"give {fix}, or leave it out")
    if not _are_headers(record.get("headers")):
        raise UsageError(f"{where}: headers are {shown(record['headers'])}", "give an object of names and texts")
    return record


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is a constant that JSON does not have")


def _are_headers(headers: Any) -> bool:
    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    if pairs is None:
        return True
    return isinstance(pairs, list) and all(
        isinstance(pair, (list, tuple))
        and len(pair) == 2
        and isinstance(pair[0], str)
        and (pair[1] is None or isinstance(pair[1], (str, dict)))
        for pair in pairs
    )
