"""Log lines on standard output: Kafka's own pattern, or one JSON object a line.

Text is the stock `log4j.properties` pattern, `[%d] %p %m (%c)`, with Kafka's level names; a traceback, where a record
has one, follows on further lines as in Java. JSON has `timestamp` (ISO 8601, UTC), `level`, `logger`, `message`,
`error`.
"""

from __future__ import annotations

import logging
import sys
from typing import Final

FORMATS: Final = ("text", "json")

_NAMES: Final = {logging.WARNING: "WARN", logging.CRITICAL: "FATAL", 5: "TRACE"}


def level_name(number: int) -> str:
    return _NAMES.get(number) or logging.getLevelName(number)


class KafkaFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        stamp = f"{self.formatTime(record, '%Y-%m-%d %H:%M:%S')},{int(record.msecs):03d}"
        line = f"[{stamp}] {level_name(record.levelno)} {record.getMessage()} ({record.name})"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        import json
        import time

        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        fields = {
            "timestamp": f"{seconds}.{int(record.msecs):03d}Z",
            "level": level_name(record.levelno),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


def set_up_logging(log_format: str, level: str, quiet: bool) -> None:
    """`quiet` keeps to warnings and the server's own life, for a terminal that a person looks at."""
    logging.addLevelName(5, "TRACE")
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonFormatter() if log_format == "json" else KafkaFormatter())
    logging.raiseExceptions = False  # whoever read our output may be gone; the broker goes on
    root = logging.getLogger()
    root.handlers[:] = [handler]
    if quiet:
        root.setLevel(logging.WARNING)
        logging.getLogger("kafka.server.KafkaServer").setLevel(logging.INFO)
    else:
        root.setLevel(level)
        # kazoo speaks at INFO of every connection attempt; what matters of it the broker says itself.
        logging.getLogger("kazoo").setLevel(max(logging.getLevelName(level), logging.WARNING))
