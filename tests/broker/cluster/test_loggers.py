"""Kafka's names for log levels, and which loggers are the broker's."""

from __future__ import annotations

import logging

import pytest

from kpybroker.broker.cluster import loggers


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
