"""Which messages of those that were read a page shows: by key, value, header and JSON.

Texts are searched in the bytes as they are. A JSON filter is a JSONPath (`$.items[0].sku`: it matches where the path
finds something) or a condition on the value (`@.total > 5 && @.state == 'paid'`). `outside.json_filters` evaluates it
within bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from jsonpath import JSONPathError

from kpybroker.client.connect.errors import usage
from kpybroker.client.records.record import Record
from kpybroker.console.queries.decoding import parsed
from kpybroker.console.queries.outside.json_filter_worker import compiled as compiled_path
from kpybroker.console.queries.outside.json_filters import matches

TEXT_MAX: Final = 2000

Accepts = Callable[[Record], bool]


class Filters(NamedTuple):
    """Texts that a message must contain; empty ones ask for nothing. `header` is NAME or NAME=VALUE."""

    key: str = ""
    value: str = ""
    header: str = ""
    path: str = ""


def compiled(filters: Filters, parse: Callable[[bytes | None], Any] = parsed) -> Accepts:
    """The function that says whether a record is shown. Raises CommandError for a filter that is none.

    `parse` reads a value for JSONPath, or raises ValueError.
    """
    if any(len(text) > TEXT_MAX for text in filters):
        raise usage(f"a filter is longer than {TEXT_MAX} characters", "write a shorter one")
    checks: list[Accepts] = []
    if filters.key:
        checks.append(_contains(lambda record: record.key, filters.key))
    if filters.value:
        checks.append(_contains(lambda record: record.value, filters.value))
    if filters.header:
        checks.append(_header(filters.header))
    if filters.path:
        checks.append(_json(filters.path, parse))
    return lambda record: all(check(record) for check in checks)


def _contains(part: Callable[[Record], bytes | None], text: str) -> Accepts:
    wanted = text.encode(errors="replace")
    return lambda record: wanted in (part(record) or b"")


def _header(text: str) -> Accepts:
    name, equals, value = text.partition("=")
    wanted = value.encode(errors="replace")

    def accepts(record: Record) -> bool:
        return any(key == name and (not equals or wanted in (data or b"")) for key, data in record.headers)

    return accepts


def _json(text: str, parse: Callable[[bytes | None], Any]) -> Accepts:
    is_path = text.lstrip().startswith("$")
    path = text if is_path else f"$[?{text}]"
    try:
        compiled_path(path)
    except (JSONPathError, RecursionError, ValueError, ArithmeticError) as error:
        fix = "write a path like $.items[0].sku, or a condition like @.total > 5"
        raise usage(f"{text[:100]!r} is no JSONPath: {str(error).splitlines()[0]}", fix) from None

    def accepts(record: Record) -> bool:
        try:
            value: Any = parse(record.value)
        except ValueError:
            return False
        return matches(path, value if is_path else [value])

    return accepts
