"""The last log lines of the process, kept in memory for the method `log`."""

from __future__ import annotations

import logging
from collections import deque

from kpybroker.broker.requests.log_fields import ClientLines
from kpybroker.control.log_formats import KafkaFormatter

LINES_MAX = 2_000


class LogRing(logging.Handler):
    """Keeps the last `LINES_MAX` records, formatted as `formatter` says."""

    def __init__(self, formatter: logging.Formatter | None = None) -> None:
        super().__init__()
        self._lines: deque[str] = deque(maxlen=LINES_MAX)
        self.setFormatter(formatter or KafkaFormatter())
        self.addFilter(ClientLines(self))

    def only_of_thread(self, ident: int) -> None:
        """Keep only what this thread logs, where the process has other things to log too."""
        self.addFilter(lambda record: record.thread == ident)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one record."""
        self._lines.append(self.format(record))

    def last(self, count: int) -> list[str]:
        """At most `count` lines, oldest first; a line may have a traceback on further lines."""
        return list(self._lines)[-count:] if count > 0 else []
