"""Kafka's names for log levels, and which loggers are the broker's."""

from __future__ import annotations

import logging

import pytest

from kpybroker.broker.cluster import loggers
from kpybroker.config.dynamic import AlterConfigOp, OpType


@pytest.mark.parametrize(
    ("level", "name"),
    [(logging.CRITICAL, "FATAL"), (logging.WARNING, "WARN"), (25, "INFO"), (logging.DEBUG, "DEBUG"), (5, "TRACE")],
)
def test_a_level_has_kafkas_name(level: int, name: str) -> None:
    assert loggers.level_name(level) == name


def test_only_the_brokers_loggers_are_listed() -> None:
    logging.getLogger("kafka.test.Listed")
    logging.getLogger("someone.else")
    names = loggers.levels().keys()
    assert "kafka.test.Listed" in names
    assert "someone.else" not in names
    assert loggers.exists("root")
    assert not loggers.exists("kafka.test.Unheard")


def test_the_level_of_all_of_kafkas_loggers_can_be_changed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger("kafka")
    monkeypatch.setattr(logger, "level", logging.NOTSET)
    logging.getLogger("kafka.test.Below")
    loggers.check([AlterConfigOp("kafka", OpType.SET, "TRACE"), AlterConfigOp("org.apache.kafka", OpType.SET, "INFO")])
    loggers.apply([AlterConfigOp("kafka", OpType.SET, "TRACE")])
    levels = loggers.levels()
    assert (levels["kafka"], levels["kafka.test.Below"]) == ("TRACE", "TRACE")
    loggers.put_back()


def test_a_logger_that_moved_in_kafka_4_has_both_names(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = "kafka.log.UnifiedLog", "org.apache.kafka.storage.internals.log.UnifiedLog"
    logger = logging.getLogger(before)
    monkeypatch.setattr(logger, "level", logging.NOTSET)
    loggers.check([AlterConfigOp(after, OpType.SET, "DEBUG")])
    loggers.apply([AlterConfigOp(after, OpType.SET, "DEBUG")])
    assert logger.level == logging.DEBUG
    assert (loggers.levels()[before], loggers.levels()[after]) == ("DEBUG", "DEBUG")
    loggers.apply([AlterConfigOp(after, OpType.DELETE, None)])
    assert logger.level == logging.NOTSET


def test_a_new_name_of_a_logger_that_is_not_in_use_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(loggers.MOVED, "org.apache.kafka.test.After", "kafka.test.Before")
    assert not loggers.exists("org.apache.kafka.test.After")
    logging.getLogger("kafka.test.Before")
    assert loggers.exists("org.apache.kafka.test.After")
