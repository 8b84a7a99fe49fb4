"""The broker's loggers and their levels under Kafka's names, read and changed while it runs (KIP-412).

Kafka's `Log4jController` and ``RuntimeLoggerManager``. Loggers are Python's, so there is one set for the process, as in
a JVM. Levels last until the process ends, as in Kafka; a broker on a thread of someone else's program puts them back.
A logger whose class has moved in Kafka 4 has two names.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final

from kpybroker.broker.requests.log_fields import TRACE
from kpybroker.config.dynamic import AlterConfigOp, OpType
from kpybroker.wire.errors import ErrorCode, KafkaError

admin_logger = logging.getLogger("kafka.server.ConfigAdminManager")

ROOT: Final = "root"

LEVELS: Final[dict[str, int]] = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": TRACE,
}

MOVED: Final[dict[str, str]] = {
    "org.apache.kafka.coordinator.group.GroupCoordinatorService": "kafka.coordinator.group.GroupCoordinator",
    "org.apache.kafka.coordinator.group.GroupMetadataManager": "kafka.coordinator.group.GroupMetadataManager",
    "org.apache.kafka.security.CredentialProvider": "kafka.security.CredentialProvider",
    "org.apache.kafka.server.NodeToControllerChannelManagerImpl": "kafka.server.NodeToControllerChannelManager",
    "org.apache.kafka.server.quota.ClientQuotaManager": "kafka.server.ClientQuotaManager",
    "org.apache.kafka.storage.internals.log.LocalLog": "kafka.log.LocalLog",
    "org.apache.kafka.storage.internals.log.LogCleaner": "kafka.log.LogCleaner",
    "org.apache.kafka.storage.internals.log.LogLoader": "kafka.log.LogLoader",
    "org.apache.kafka.storage.internals.log.LogSegment": "kafka.log.LogSegment",
    "org.apache.kafka.storage.internals.log.UnifiedLog": "kafka.log.UnifiedLog",
}
"""By the name in Kafka 4.3 that in Kafka 3.9, which lines have, of loggers whose class has moved since."""

_listeners: dict[object, Callable[[], None]] = {}
_levels_before: dict[logging.Logger, int] = {}
"""Of the loggers that clients have changed."""

_FAMILIES: Final = ("kafka.", "state.change.", "org.apache.", "kpybroker.")
_ANCESTORS: Final = ("kafka", "org.apache.kafka")
"""Loggers without lines of their own, which the logging configuration that Kafka is released with sets levels of."""


def on_change(owner: object, listener: Callable[[], None]) -> None:
    """Call `listener` whenever `apply` has changed a level, until `forget(owner)`."""
    _listeners[owner] = listener


def forget(owner: object) -> None:
    """Call its listener no more."""
    _listeners.pop(owner, None)


def levels() -> dict[str, str]:
    """Every logger of the broker, by each of its names, and the root, with its effective level."""
    known = logging.root.manager.loggerDict
    in_use = [
        name for name, logger in known.items() if name.startswith(_FAMILIES) and isinstance(logger, logging.Logger)
    ]
    names = sorted({*_ANCESTORS, *in_use})
    found = {ROOT: logging.root.level}
    found |= {name: logging.getLogger(name).getEffectiveLevel() for name in names}
    found |= {name: found[before] for name, before in MOVED.items() if before in found}
    return {name: level_name(level) for name, level in found.items()}


def level_name(level: int) -> str:
    """Kafka's name of the nearest level that lets as much through."""
    return next((name for name, number in LEVELS.items() if level >= number), "TRACE")


def exists(name: str) -> bool:
    """Whether `name` is the root or a logger of the broker that is in use."""
    return name == ROOT or name in levels()


def check(ops: Iterable[AlterConfigOp]) -> None:
    """Raise KafkaError for the first operation that is not allowed."""
    for name, op, level in ops:
        if op in (OpType.APPEND, OpType.SUBTRACT):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{op.name} operation is not allowed for the BROKER_LOGGER resource",
            )
        if not exists(name):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
        if op is OpType.SET and level not in LEVELS:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {name} to {level} as it is not a supported log level. "
                f"Valid log levels are {', '.join(sorted(LEVELS))}",
            )
        if op is OpType.DELETE and name == ROOT:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Removing the log level of the {ROOT} logger is not allowed")


def apply(ops: Iterable[AlterConfigOp]) -> None:
    """Perform operations that `check` has accepted. A level that is removed is inherited again."""
    for given, op, level in ops:
        name = MOVED.get(given, given)
        logger = logging.getLogger() if name == ROOT else logging.getLogger(name)
        _levels_before.setdefault(logger, logger.level)
        if op is OpType.SET:
            assert level is not None, "check() refuses null values"
            logger.setLevel(LEVELS[level])
            admin_logger.warning("Updated the log level of %s to %s", name, level)
        else:
            logger.setLevel(logging.NOTSET)
            admin_logger.warning("Unset the log level of %s", name)
    for listener in list(_listeners.values()):
        listener()


def put_back() -> None:
    """Give each logger that clients have changed the level that it had before."""
    while _levels_before:
        logger, level = _levels_before.popitem()
        logger.setLevel(level)
