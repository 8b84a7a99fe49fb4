"""Input of `topic produce` as records: a stream of bytes cut at a delimiter, and each piece read in a format.

Pieces are yielded as soon as they have arrived, so that a terminal or a slow pipe is produced line by line. The last
piece may lack its delimiter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple, Protocol

from kpybroker.client.records import json_lines
from kpybroker.client.records.json_lines import BadLine
from kpybroker.client.records.record import Record
from kpybroker.client.records.template import BadTemplate, unescape

CHUNK_BYTES: Final = 1 << 16
PIECE_BYTES_MAX: Final = 1 << 30
"""A record is smaller than 1 GiB: input without a delimiter must not fill the memory."""


class Source(Protocol):
    """A binary stream, as `sys.stdin.buffer`."""

    def read1(self, size: int, /) -> bytes:
        """What has arrived, at most `size`; nothing at the end."""
        ...


Parse = Callable[[bytes], Record]


def pieces(source: Source, delimiter: bytes) -> Iterator[bytes]:
    """The stream's pieces, without their delimiters. Raises BadLine for a piece beyond PIECE_BYTES_MAX."""
    rest = bytearray()
    while chunk := source.read1(CHUNK_BYTES):
        searched = max(0, len(rest) - len(delimiter) + 1)
        rest += chunk
        if rest.find(delimiter, searched) < 0:
            if len(rest) > PIECE_BYTES_MAX:
                raise BadLine(f"it is longer than {PIECE_BYTES_MAX} bytes: is the delimiter right?")
            continue
        *whole, last = rest.split(delimiter)
        rest = last
        for piece in whole:
            yield bytes(piece)
    if rest:
        yield bytes(rest)


class LineOptions(NamedTuple):
    """How a plain line becomes a record."""

    key: bytes | None = None
    """The key of every record."""
    key_separator: bytes | None = None
    """What separates the key from the value within a line."""
    headers: tuple[tuple[str, bytes | None], ...] = ()
    """Headers of every record, in every format."""
    empty_is_null: bool = False
    encoded: frozenset[str] = frozenset()
    """Which of `key` and `value` are JSON that a schema encodes."""


def parser(format_name: str, options: LineOptions) -> Parse:
    """The function that reads a piece in `line`, `json` or a printf format. Raises BadTemplate."""
    if format_name == "line":
        parse = _line(options)
    elif format_name == "json":
        parse = partial(json_lines.load, encoded=options.encoded)
    else:
        parse = _template(format_name)
    if not (options.headers or options.empty_is_null or options.key is not None):
        return parse

    def with_options(piece: bytes) -> Record:
        record = parse(piece)
        key, value = record.key, record.value
        if key is None:
            key = options.key
        if options.empty_is_null and format_name != "json":
            key, value = key or None, value or None
        return record._replace(key=key, value=value, headers=[*record.headers, *options.headers])

    return with_options


def _line(options: LineOptions) -> Parse:
    separator = options.key_separator

    def parse(piece: bytes) -> Record:
        if separator is None:
            return Record(None, None, piece, [])
        key, found, value = piece.partition(separator)
        if not found:
            raise BadLine(f"it has no key separator {separator!r}".replace(" b'", " '"))
        return Record(None, key, value, [])

    return parse


FIELDS: Final = {
    "k": "key",
    "v": "value",
    "s": "value",
    "t": "topic",
    "p": "partition",
    "T": "timestamp",
    "d": "timestamp",
}
"""Verbs of a format that can be read."""


def _template(template: str) -> Parse:
    """A format as a regular expression; each verb takes as little as possible, the last one the rest."""
    pattern = b""
    names: list[str] = []
    for literal, verb in re.findall(r"((?:[^%]|%%)*)(%.?)?", template, re.DOTALL):
        pattern += re.escape(unescape(literal.replace("%%", "%")))
        if not verb:
            continue
        name = FIELDS.get(verb[1:])
        if name is None or name in names:
            known = " ".join(f"%{one}" for one in FIELDS)
            raise BadTemplate(f"{verb} cannot be read here; these can, once each: {known}")
        names.append(name)
        pattern += rb"(?P<%s>%s)" % (name.encode(), rb"-?\d+" if name in ("partition", "timestamp") else rb".*?")
    if "value" not in names:
        raise BadTemplate(f"{template!r} is neither line nor json nor a format with %v")
    expression = re.compile(pattern, re.DOTALL)

    def parse(piece: bytes) -> Record:
        match = expression.fullmatch(piece)
        if match is None:
            raise BadLine(f"it does not fit the format {template!r}")
        found = match.groupdict()
        topic = found.get("topic")
        numbers = {name: int(found[name]) for name in ("partition", "timestamp") if name in found}
        return Record(
            None if topic is None else topic.decode(errors="replace"),
            found.get("key"),
            found["value"],
            [],
            numbers.get("partition"),
            None,
            numbers.get("timestamp"),
        )

    return parse
