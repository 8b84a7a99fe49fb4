"""Records as a file: JSON lines that `kpybroker topic produce` reads back, CSV, and JSON lines with decoded values.

JSON lines are exact. In CSV, `key_is` and `value_is` say what a cell is: `text`, `base64` of bytes that are no UTF-8,
or `null`; a cell that a spreadsheet would take for a formula begins with an apostrophe. Decoded lines have JSON, and
the values of schemas, as JSON; what cannot be decoded stays as in exact lines, and `not_decoded` says why.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from kpybroker.client.connect.errors import CommandError, hide
from kpybroker.client.connect.visible import visible_json
from kpybroker.client.records import json_lines
from kpybroker.client.records.record import Record
from kpybroker.client.schemas.reading import number_of, value_of
from kpybroker.client.schemas.registry import Patience, Registry
from kpybroker.console.queries.decoding import exact_json, written

RECORDS_MAX: Final = 100_000
BYTES_MAX: Final = 256 << 20
S_MAX: Final = 120.0
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
COLUMNS: Final = ("partition", "offset", "timestamp", "key", "value", "headers", "key_is", "value_is")

Lines = Callable[[Iterator[Record], Registry | None], Iterator[bytes]]


def _json_lines(records: Iterator[Record], _: Registry | None) -> Iterator[bytes]:
    yield from map(json_lines.dump, records)


def _csv(records: Iterator[Record], _: Registry | None) -> Iterator[bytes]:
    yield _csv_line(COLUMNS)
    for record in records:
        found = json_lines.row(record)
        cells = [found["partition"], found["offset"], found["timestamp"], cell(found["key"]), cell(found["value"])]
        headers = " ".join(f"{cell(one['key'])}={cell(one['value'])}" for one in found["headers"])
        yield _csv_line((*cells, cell(headers), _kind(found["key"]), _kind(found["value"])))


def cell(value: Any) -> str:
    """A value of JSON lines as the text of a cell."""
    text = "" if value is None else value if isinstance(value, str) else str(value[json_lines.BASE64])
    return f"'{text}" if text.startswith(FORMULA) else text


def _kind(value: Any) -> str:
    return "null" if value is None else "text" if isinstance(value, str) else json_lines.BASE64


def _csv_line(cells: tuple[Any, ...]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return line.getvalue().encode(errors="replace")


def _decoded_lines(records: Iterator[Record], registry: Registry | None) -> Iterator[bytes]:
    for record in records:
        found = json_lines.row(record)
        problems = {}
        for name, data in (("key", record.key), ("value", record.value)):
            try:
                found[name] = _value(data, registry, found[name])
            except (CommandError, ValueError, TypeError, RecursionError) as error:
                problems[name] = hide(error.cause if isinstance(error, CommandError) else str(error))
        if problems:
            found["not_decoded"] = problems
        yield visible_json(json.dumps(found, ensure_ascii=False, separators=(",", ":"))).encode() + b"\n"


def _value(data: bytes | None, registry: Registry | None, otherwise: Any) -> Any:
    if data is None:
        return None
    if registry is not None and number_of(data) is not None:
        return json.loads(written(value_of(Patience(registry), bytes(data)).value, 0), parse_constant=str)
    return exact_json(data, otherwise)


FORMS: Final[dict[str, tuple[str, Lines]]] = {
    "jsonl": ("application/jsonl", _json_lines),
    "csv": ("text/csv", _csv),
    "decoded.jsonl": ("application/jsonl", _decoded_lines),
}
"""By the ending of the file's name: its type, and how its lines are made."""
