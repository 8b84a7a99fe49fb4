"""Log lines, in Kafka's pattern and as JSON."""

from __future__ import annotations

import json
import logging
import re
import sys

import pytest

from kpybroker.control.log_formats import JsonFormatter, KafkaFormatter


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


def test_where_processes_share_a_stream_each_line_names_its_broker() -> None:
    assert " WARN [broker 2] Log x (kafka.log.LogManager)" in KafkaFormatter("2").format(record())
    assert json.loads(JsonFormatter("2").format(record()))["broker"] == 2
    assert "broker" not in json.loads(JsonFormatter().format(record()))


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


def about_a_request(message: str = "Refused orders", **fields: object) -> logging.LogRecord:
    line = logging.LogRecord("kafka.server.KafkaApis", logging.INFO, __file__, 1, message, (), None)
    line.request_fields = {
        "connection": "127.0.0.1:9092-127.0.0.1:50124-7",
        "client_id": "shop",
        "principal": "User:alice",
        "correlation_id": 7,
        "api": "Produce",
        **fields,
    }
    return line


def test_a_line_about_a_request_ends_with_what_the_request_carries() -> None:
    assert (
        KafkaFormatter()
        .format(about_a_request(topic="orders", partition=3))
        .endswith(
            "INFO Refused orders [connection=127.0.0.1:9092-127.0.0.1:50124-7 client_id=shop principal=User:alice "
            "correlation_id=7 api=Produce partition=orders-3] (kafka.server.KafkaApis)"
        )
    )


def test_what_the_message_has_is_not_repeated() -> None:
    message = "Refused 127.0.0.1:9092-127.0.0.1:50124-7 client_id=shop software=x-1"
    assert (
        KafkaFormatter()
        .format(about_a_request(message))
        .endswith(f"{message} [principal=User:alice correlation_id=7 api=Produce] (kafka.server.KafkaApis)")
    )


def test_a_client_cannot_write_a_line_or_a_field_of_its_own() -> None:
    line = KafkaFormatter().format(about_a_request(client_id="x\n[2024-01-01] ERROR api=Fetch"))
    assert "\n" not in line
    assert r"client_id='x\n[2024-01-01] ERROR api=Fetch'" in line


def test_in_json_they_are_members() -> None:
    found = json.loads(JsonFormatter().format(about_a_request(topic="orders", partition=3)))
    assert found["message"] == "Refused orders"
    assert list(found)[4:] == ["connection", "clientId", "principal", "correlationId", "api", "topic", "partition"]
    assert (found["clientId"], found["correlationId"], found["partition"]) == ("shop", 7, 3)


FORGED = "x\n[2026-11-27 12:00:00,000] INFO started (kafka.server.KafkaServer)"
ODD = [
    "a\nb",
    "a\rb",
    "a\x0bb",
    "a\x0cb",
    "a\x1b[31mb",
    "a\x00b",
    "a\x7fb",
    "a\x85b",
    "a\x9b31mb",
    "a\u2028b",
    "a\u202eb",
]
ODD += ["a\udcffb", "a\u200bb", "a\U000e0001b", FORGED, "\n" * 100]


@pytest.mark.parametrize("text", ODD, ids=ascii)
@pytest.mark.parametrize("where", ["message", "argument", "error", "field", "failure"])
def test_no_text_of_a_client_begins_a_line_or_moves_a_cursor(text: str, where: str) -> None:
    """Topic names, client ids, software, principals, hosts, configurations: whatever a line quotes."""
    args: tuple[object, ...] = (text,) if where == "argument" else (ValueError(text),) if where == "error" else ()
    message = f"Refused {text}" if where == "message" else "Refused %s" if args else "Refused"
    exc_info = None
    if where == "failure":
        try:
            raise LookupError(text)
        except LookupError:
            exc_info = sys.exc_info()
    line = logging.LogRecord("kafka.server.KafkaApis", logging.INFO, __file__, 1, message, args, exc_info)
    if where == "field":
        line.request_fields = {"connection": text, "client_id": text, "principal": text, "topic": text, "partition": 1}
    plain, as_json = KafkaFormatter().format(line), JsonFormatter().format(line)
    first, *others = plain.split("\n")
    assert first.isprintable()
    assert all(each.isprintable() and not each.startswith("[") for each in others)
    assert bool(others) is (exc_info is not None)
    assert as_json.isprintable()
    fields = json.loads(as_json)
    assert text in (
        fields["error"] if where == "failure" else fields["clientId"] if where == "field" else fields["message"]
    )


def test_a_traceback_keeps_its_lines() -> None:
    line = KafkaFormatter().format(record(failed=True))
    assert line.count("\n") >= 3
    assert "\nTraceback (most recent call last):\n  File " in line
    assert line.endswith("\nValueError: no")


def test_a_line_that_a_client_causes_has_an_end() -> None:
    line = about_a_request("x" * 100_000)
    line.client_address = "10.0.0.1"
    assert len(KafkaFormatter().format(line)) < 10_000
    assert len(JsonFormatter().format(line)) < 10_000
    vars(line).pop("client_address")
    assert len(KafkaFormatter().format(line)) > 100_000
