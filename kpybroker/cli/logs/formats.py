"""Log lines on standard error: Kafka's own pattern, or one JSON object a line.

Text is the pattern of Kafka's `log4j.properties`, `[%d] %p %m (%c)`, with Kafka's level names; a traceback follows
on further lines, as in Java. JSON has `timestamp` (ISO 8601, UTC), `level`, `logger`, `message`, `error`, and where
the process ends because of it `fix` and `exitCode`.
"""

from __future__ import annotations

import logging
import sys
from typing import Final

FORMATS: Final = ("text", "json")

EXTRA_FIELDS: Final = "json_fields"
"""The attribute of a record with more fields for JSON."""

_NAMES: Final = {logging.WARNING: "WARN", logging.CRITICAL: "FATAL", 5: "TRACE"}


def level_name(number: int) -> str:
    """Kafka's name of a log level: WARN, FATAL and TRACE differ from Python's."""
    return _NAMES.get(number) or logging.getLevelName(number)


class KafkaFormatter(logging.Formatter):
    """Lines as Kafka's log4j writes them."""

    def format(self, record: logging.LogRecord) -> str:
        """The record's line, with its traceback on further lines."""
        stamp = f"{self.formatTime(record, '%Y-%m-%d %H:%M:%S')},{int(record.msecs):03d}"
        line = f"[{stamp}] {level_name(record.levelno)} {record.getMessage()} ({record.name})"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record's fields; its traceback is `error`."""
        import json
        import time

        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        fields: dict[str, object] = {
            "timestamp": f"{seconds}.{int(record.msecs):03d}Z",
            "level": level_name(record.levelno),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, EXTRA_FIELDS, {}),
        }
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


def is_json() -> bool:
    """Whether the log has been set up as JSON."""
    return any(isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers)


def set_up_logging(log_format: str, level: str, quiet: bool) -> None:
    """Log to standard error in `log_format`, from `level` on. Standard output is for the ready line alone.

    `quiet` logs only warnings and what KafkaServer reports, for a terminal.
    """
    logging.addLevelName(5, "TRACE")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else KafkaFormatter())
    logging.raiseExceptions = False  # the reader of our output may have gone away; the broker goes on
    root = logging.getLogger()
    root.handlers[:] = [handler]
    if quiet:
        root.setLevel(logging.WARNING)
        logging.getLogger("kafka.server.KafkaServer").setLevel(logging.INFO)
    else:
        root.setLevel(level)
        # kazoo logs every connection attempt at INFO; the broker itself logs what matters.
        logging.getLogger("kazoo").setLevel(max(logging.getLevelName(level), logging.WARNING))
