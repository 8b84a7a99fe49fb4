"""Where log lines go: standard error, and with `kpybroker.log.dir` files, one for each of Kafka's streams.

The files have the names of Kafka's `log4j.properties`. A stream with a file of its own is in that file only;
`server.log` and standard error have the rest. Without a directory standard error has everything.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kpybroker.broker.requests.log_fields import TRACE, ClientLines, all_client_lines
from kpybroker.control.log_formats import JsonFormatter, KafkaFormatter

if TYPE_CHECKING:
    from kpybroker.config.broker import BrokerConfig

SERVER_FILE: Final = "server.log"
STREAMS: Final = {
    "kafka.controller": "controller.log",
    "state.change.logger": "state-change.log",
    "kafka.request.logger": "kafka-request.log",
    "kafka.authorizer.logger": "kafka-authorizer.log",
    "kafka.log.LogCleaner": "log-cleaner.log",
}
"""Loggers with a file of their own, those below them included."""

SERVER_LOGGER: Final = "kafka.server.KafkaServer"


class LogSettingError(Exception):
    """A setting of the log cannot be used; `fix` says what to do."""

    def __init__(self, cause: str, fix: str) -> None:
        super().__init__(cause)
        self.fix = fix


def set_up_logging(log_format: str, level: str, quiet: bool, broker_id: str | None = None) -> None:
    """Log to standard error in `log_format`, from `level` on. Standard output is for the ready line alone.

    `quiet` logs only warnings and what KafkaServer reports, for a terminal. Every line has `broker_id`, where several
    processes share the stream.
    """
    logging.addLevelName(TRACE, "TRACE")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(broker_id) if log_format == "json" else KafkaFormatter(broker_id))
    handler.addFilter(ClientLines(handler))
    logging.raiseExceptions = False  # the reader of our output may have gone away; the broker goes on
    root = logging.getLogger()
    root.handlers[:] = [handler]
    logging.getLogger("kafka.request.logger").setLevel(logging.WARNING)  # as in Kafka: --log-level does not start it
    if quiet:
        root.setLevel(logging.WARNING)
        logging.getLogger(SERVER_LOGGER).setLevel(logging.INFO)
    else:
        root.setLevel(level)
        # kazoo logs every connection attempt at INFO; the broker itself logs what matters.
        logging.getLogger("kazoo").setLevel(max(logging.getLevelName(level), logging.WARNING))


def apply_settings(config: BrokerConfig) -> None:
    """The settings `kpybroker.log.*` of a broker whose log is set up. Raises LogSettingError."""
    from kpybroker.broker.cluster.loggers import LEVELS, MOVED, ROOT

    directory = config.get("kpybroker.log.dir")
    if directory:
        _open_files(Path(str(directory)), config)
    for lines in all_client_lines():
        lines.allow(config.get_int("kpybroker.log.client.lines.max"))
    for given in config.get_list("kpybroker.log.levels"):
        name, equals, level = (part.strip() for part in given.partition("="))
        if not equals or not name or level not in LEVELS:
            raise LogSettingError(
                f"kpybroker.log.levels has {given!r}, which is no logger and level",
                f"write logger=LEVEL, where the level is one of {', '.join(LEVELS)}",
            )
        logging.getLogger(None if name == ROOT else MOVED.get(name, name)).setLevel(LEVELS[level])


def _open_files(directory: Path, config: BrokerConfig) -> None:
    root = logging.getLogger()
    for handler in root.handlers:
        limits, handler.filters[:] = list(handler.filters), []
        handler.addFilter(_is_for_server_log)
        if _is_quiet():
            handler.addFilter(_is_for_a_terminal)
        handler.filters += limits  # last: they count what the handler would write
    formatter = root.handlers[0].formatter
    if _is_quiet():
        root.setLevel(logging.INFO)
        logging.getLogger("kazoo").setLevel(logging.WARNING)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, file in ((None, SERVER_FILE), *STREAMS.items()):
            handler = _file_handler(os.fspath(directory / file), config)
            handler.setFormatter(formatter)
            if name is None:
                handler.addFilter(_is_for_server_log)
            handler.addFilter(ClientLines(handler))
            logging.getLogger(name).addHandler(handler)
    except OSError as error:
        raise LogSettingError(
            f"kpybroker.log.dir: {error.filename or directory} cannot be written: {error.strerror or error}",
            "name a directory that this user can write to",
        ) from error


def _file_handler(path: str, config: BrokerConfig) -> logging.Handler:
    import logging.handlers

    roll, kept = config.get_str("kpybroker.log.roll"), config.get_int("kpybroker.log.max.files")
    if roll == "size":
        return logging.handlers.RotatingFileHandler(
            path,
            maxBytes=config.get_int("kpybroker.log.max.bytes"),
            backupCount=kept,
            encoding="utf-8",
            errors="backslashreplace",
        )
    return logging.handlers.TimedRotatingFileHandler(
        path,
        when="H" if roll == "hourly" else "MIDNIGHT",
        backupCount=kept,
        encoding="utf-8",
        errors="backslashreplace",
    )


def _is_for_server_log(record: logging.LogRecord) -> bool:
    name = record.name
    return not any(name == stream or name.startswith(f"{stream}.") for stream in STREAMS)


def _is_for_a_terminal(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING or record.name == SERVER_LOGGER


def _is_quiet() -> bool:
    """Whether `set_up_logging` was called so."""
    return logging.getLogger().level == logging.WARNING and logging.getLogger(SERVER_LOGGER).level == logging.INFO
