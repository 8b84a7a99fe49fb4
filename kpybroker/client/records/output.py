"""How `topic consume` writes a record: one of the named formats, or a printf format.

Values are written as they are, except to a terminal, which would obey them.
"""

from __future__ import annotations

from typing import Final

from kpybroker.client.connect.visible import visible_bytes, visible_lines
from kpybroker.client.records import json_lines
from kpybroker.client.records.record import Record, key_bytes
from kpybroker.client.records.template import BadTemplate, Part, compile_template

NULL: Final = b"NULL"


def writer(format_name: str, show_null: bool = False, *, is_terminal: bool = False) -> Part:
    """The function that writes a record, to a terminal perhaps. Raises BadTemplate for a format that is none."""
    null = NULL if show_null else b""
    show = visible_lines if is_terminal else None
    if format_name == "value":
        return compile_template("%v\\n", null, show)
    if format_name in NAMED:
        return NAMED[format_name]
    if "%" not in format_name and "\\" not in format_name:
        raise BadTemplate(f"{format_name!r} is no format; write value, {', '.join(NAMED)}, or one like '%k %v\\n'")
    return compile_template(format_name, null, show)


def _json(record: Record, number: int) -> bytes:
    return json_lines.dump(record)


def _yaml(record: Record, number: int) -> bytes:
    import yaml

    text: str = yaml.safe_dump([json_lines.row(record)], sort_keys=False, allow_unicode=True)
    return text.encode()


def _wide(record: Record, number: int) -> bytes:
    """One line for people; control characters are escaped, so that a value cannot reprogram a terminal."""
    headers = " ".join(f"{_plain(key_bytes(key))}={_plain(value)}" for key, value in record.headers)
    where = f"{record.topic}[{record.partition}]@{record.offset}"
    text = f"{_time(record, number).decode()} {where} {_plain(record.key)} => {_plain(record.value)}"
    return f"{text}{'  ' + headers if headers else ''}\n".encode()


_time = compile_template("%d{iso}")


def _plain(data: bytes | None) -> str:
    return "NULL" if data is None else visible_bytes(data)


NAMED: Final = {"wide": _wide, "json": _json, "yaml": _yaml}
