"""How `topic consume` writes a record: one of the named formats, or a printf format."""

from __future__ import annotations

import re
from typing import Final

from kpybroker.client.records import json_lines
from kpybroker.client.records.record import Record
from kpybroker.client.records.template import BadTemplate, Part, compile_template

NULL: Final = b"NULL"
CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")


def writer(format_name: str, show_null: bool = False) -> Part:
    """The function that writes a record. Raises BadTemplate for a format that is none."""
    null = NULL if show_null else b""
    if format_name == "value":
        return compile_template("%v\\n", null)
    if format_name in NAMED:
        return NAMED[format_name]
    if "%" not in format_name and "\\" not in format_name:
        raise BadTemplate(f"{format_name!r} is no format; write value, {', '.join(NAMED)}, or one like '%k %v\\n'")
    return compile_template(format_name, null)


def _json(record: Record, number: int) -> bytes:
    return json_lines.dump(record)


def _yaml(record: Record, number: int) -> bytes:
    import yaml

    text: str = yaml.safe_dump([json_lines.row(record)], sort_keys=False, allow_unicode=True)
    return text.encode()


def _wide(record: Record, number: int) -> bytes:
    """One line for people; control characters are escaped, so that a value cannot reprogram a terminal."""
    headers = " ".join(f"{name}={_plain(value)}" for name, value in record.headers)
    where = f"{record.topic}[{record.partition}]@{record.offset}"
    text = f"{_time(record, number).decode()} {where} {_plain(record.key)} => {_plain(record.value)}"
    return f"{text}{'  ' + headers if headers else ''}\n".encode()


_time = compile_template("%d{iso}")


def _plain(data: bytes | None) -> str:
    if data is None:
        return "NULL"
    text = data.decode(errors="backslashreplace")
    return CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


NAMED: Final = {"wide": _wide, "json": _json, "yaml": _yaml}
