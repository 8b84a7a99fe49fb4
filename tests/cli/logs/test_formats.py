"""Log lines, in Kafka's pattern and as JSON."""

from __future__ import annotations

import json
import logging
import re
import sys

from kpybroker.cli.logs.formats import JsonFormatter, KafkaFormatter


def record(level: int = logging.WARNING, *, failed: bool = False) -> logging.LogRecord:
    exc_info = None
    if failed:
        try:
            raise ValueError("no")
        except ValueError:
            exc_info = sys.exc_info()
    return logging.LogRecord("kafka.log.LogManager", level, __file__, 1, "Log %s", ("x",), exc_info)


def test_text_is_kafkas_pattern() -> None:
    line = KafkaFormatter().format(record())
    assert re.fullmatch(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] WARN Log x \(kafka\.log\.LogManager\)", line)


def test_levels_have_kafkas_names() -> None:
    assert " FATAL " in KafkaFormatter().format(record(logging.CRITICAL))
    assert " TRACE " in KafkaFormatter().format(record(5))
    assert " INFO " in KafkaFormatter().format(record(logging.INFO))


def test_an_exception_follows_its_line() -> None:
    assert KafkaFormatter().format(record(failed=True)).endswith("ValueError: no")


def test_json_is_one_object_a_line() -> None:
    line = JsonFormatter().format(record(failed=True))
    assert "\n" not in line
    fields = json.loads(line)
    assert (fields["level"], fields["logger"], fields["message"]) == ("WARN", "kafka.log.LogManager", "Log x")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", fields["timestamp"])
    assert "ValueError: no" in fields["error"]
