"""Log lines: Kafka's own pattern, or one JSON object a line.

Text is the pattern of Kafka's `log4j.properties`, `[%d] %p %m (%c)`, with Kafka's level names; a traceback follows
on further lines, as in Java. JSON has `timestamp` (ISO 8601, UTC), `level`, `logger`, `message`, `error`, and where
the process ends because of it `fix` and `exitCode`.

A line about a request ends with what it carries (`broker.requests.log_fields`), without what its message has already:
`[connection=... client_id=... principal=... correlation_id=7 api=Produce partition=orders-0]`. In JSON these are
`connection`, `clientId`, `principal`, `correlationId`, `api`, `topic` and `partition`.

What a client sends is in many lines. None of it begins a line or moves a terminal's cursor: what is not printable is
escaped in every message, and no line of a traceback looks like the begin of another line. A line that a client has
caused is at most `CLIENT_CHARACTERS_MAX` long.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from kpybroker.broker.requests.clients import shown
from kpybroker.broker.requests.log_fields import TRACE, client_of, fields_of

FORMATS: Final = ("text", "json")

CLIENT_CHARACTERS_MAX: Final = 8_192

EXTRA_FIELDS: Final = "json_fields"
"""The attribute of a record with more fields for JSON."""

_NAMES: Final = {logging.WARNING: "WARN", logging.CRITICAL: "FATAL", TRACE: "TRACE"}
_JSON_NAMES: Final = {"client_id": "clientId", "correlation_id": "correlationId"}


def level_name(number: int) -> str:
    """Kafka's name of a log level: WARN, FATAL and TRACE differ from Python's."""
    return _NAMES.get(number) or logging.getLevelName(number)


def escaped(text: str) -> str:
    """The text with what is not printable as Python writes it, line feeds and lone surrogates included."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _message(record: logging.LogRecord) -> str:
    message = record.getMessage()
    if len(message) > CLIENT_CHARACTERS_MAX and client_of(record) is not None:
        message = message[:CLIENT_CHARACTERS_MAX] + "..."
    return message


def _traceback(text: str) -> str:
    """Its lines, of which the last may have a client's text. None is like the first line of another record."""
    lines = [escaped(line) for line in text.split("\n")]
    return "\n".join(f" {line}" if line.startswith("[") else line for line in lines)


def _json_escaped(text: str) -> str:
    """A JSON text in which characters that are not printable are written as escapes, which mean the same."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _json_escape(each) for each in text)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


class KafkaFormatter(logging.Formatter):
    """Lines as Kafka's log4j writes them; with `[broker <id>]` in front of the message where `broker_id` is given."""

    def __init__(self, broker_id: str | None = None) -> None:
        super().__init__()
        self._origin = "" if broker_id is None else f"[broker {broker_id}] "

    def format(self, record: logging.LogRecord) -> str:
        """The record's line, with its traceback on further lines."""
        stamp = f"{self.formatTime(record, '%Y-%m-%d %H:%M:%S')},{int(record.msecs):03d}"
        message = escaped(_message(record))
        if fields := fields_of(record):
            message += _suffix(message, fields)
        line = f"[{stamp}] {level_name(record.levelno)} {self._origin}{message} ({record.name})"
        if record.exc_info:
            line += "\n" + _traceback(self.formatException(record.exc_info))
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object a line; `broker` is `broker_id`, where it is given."""

    def __init__(self, broker_id: str | None = None) -> None:
        super().__init__()
        self._origin = {} if broker_id is None else {"broker": int(broker_id)}

    def format(self, record: logging.LogRecord) -> str:
        """The record's fields; its traceback is `error`."""
        import json
        import time

        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        fields: dict[str, object] = {
            "timestamp": f"{seconds}.{int(record.msecs):03d}Z",
            "level": level_name(record.levelno),
            "logger": record.name,
            **self._origin,
            "message": _message(record),
            **{_JSON_NAMES.get(name, name): value for name, value in fields_of(record).items()},
            **getattr(record, EXTRA_FIELDS, {}),
        }
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return _json_escaped(json.dumps(fields, ensure_ascii=False))


def _suffix(message: str, fields: Mapping[str, object]) -> str:
    """The fields of a request at the end of a line, without those that the message has."""
    named = dict(fields)
    if "partition" in named and "topic" in named:
        named["partition"] = f"{named.pop('topic')}-{named['partition']}"
    if str(named.get("connection")) in message:
        del named["connection"]
    pairs = (f"{name}={shown(str(value))}" for name, value in named.items())
    wanted = " ".join(pair for pair in pairs if pair not in message)
    return f" [{wanted}]" if wanted else ""


def is_json() -> bool:
    """Whether the log has been set up as JSON."""
    return any(isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers)
