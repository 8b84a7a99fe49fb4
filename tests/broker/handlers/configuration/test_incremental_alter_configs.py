"""IncrementalAlterConfigs in every version. Its refusals are compared with Kafka's in `test_alter_configs.py`."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kpybroker.broker.handlers.configuration import incremental_alter_configs
from kpybroker.wire.errors import ErrorCode
from tests.support.brokers.configured_broker import call, configured_broker
from tests.support.requests.config_requests import APPEND, BROKER, DELETE, LOGGER, SET, TOPIC, change, incremental

OK = [(ErrorCode.NONE, None)]


@pytest.mark.parametrize("version", range(2))
async def test_incremental_alter_configs_changes_single_keys(tmp_path: Path, version: int) -> None:
    async with configured_broker(tmp_path, "t") as broker:
        await broker.configs.write("topics", "t", {"retention.ms": "1000", "segment.bytes": "100"})
        request = incremental(
            (TOPIC, "t", [("retention.ms", DELETE, None), ("cleanup.policy", APPEND, "compact")]),
        )
        response = await call(broker, incremental_alter_configs, request, version)
        assert [one.error_code for one in response.responses] == [ErrorCode.NONE]
        assert await broker.configs.read("topics", "t") == {
            "segment.bytes": "100",
            "cleanup.policy": "delete,compact",
        }


async def test_a_change_reaches_the_log_before_the_response(tmp_path: Path) -> None:
    async with configured_broker(tmp_path, "t") as broker:
        log = broker.logs.get("t", 0)
        assert log is not None
        assert await change(broker, (TOPIC, "t", [("retention.ms", SET, "5")])) == OK
        assert log.config.retention_ms == 5
        assert await change(broker, (BROKER, "", [("log.segment.bytes", SET, "4096")])) == OK
        assert (log.config.segment_bytes, log.config.retention_ms) == (4096, 5)
        assert await change(broker, (BROKER, "0", [("log.segment.bytes", SET, "8192")])) == OK
        assert log.config.segment_bytes == 8192
        assert broker.config.get_int("log.segment.bytes") == 8192


async def test_one_bad_resource_does_not_hold_back_the_others(tmp_path: Path) -> None:
    async with configured_broker(tmp_path, "t") as broker:
        responses = await change(
            broker, (TOPIC, "nope", [("retention.ms", SET, "5")]), (TOPIC, "t", [("retention.ms", SET, "5")])
        )
        assert [code for code, _ in responses] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]


async def test_log_levels_change_at_once(tmp_path: Path) -> None:
    name = "kafka.server.KafkaServer"
    before = logging.getLogger(name).level
    async with configured_broker(tmp_path) as broker:
        try:
            assert await change(broker, (LOGGER, "0", [(name, SET, "ERROR")]), validate_only=True) == OK
            assert logging.getLogger(name).level == before
            assert await change(broker, (LOGGER, "0", [(name, SET, "ERROR")])) == OK
            assert logging.getLogger(name).level == logging.ERROR
            assert await change(broker, (LOGGER, "0", [(name, DELETE, "")])) == OK
            assert logging.getLogger(name).level == logging.NOTSET
        finally:
            logging.getLogger(name).setLevel(before)


@pytest.mark.parametrize(
    ("name", "ops", "code", "message"),
    [
        (
            "t",
            [("segment.bytes", SET, "100")],
            ErrorCode.INVALID_CONFIG,
            "Invalid value 100 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            "t",
            [("retention.ms", APPEND, "1")],
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            "t",
            [("no.such.key", APPEND, "1")],
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key no.such.key because its type is not LIST.",
        ),
        (
            "t",
            [("message.format.version", SET, "3.0")],
            ErrorCode.INVALID_CONFIG,
            "Unknown topic config name: message.format.version",
        ),
        (
            "bad name",
            [("retention.ms", SET, "1")],
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: 'bad name' contains one or more characters other than ASCII alphanumerics, '.', "
            "'_' and '-'",
        ),
    ],
)
async def test_topics_are_refused_in_the_words_of_kafka_4_in_its_place(
    tmp_path: Path, name: str, ops: list[tuple[str, int, str | None]], code: ErrorCode, message: str
) -> None:
    async with configured_broker(tmp_path, "t", kpybroker_kafka_version="4.3") as broker:
        assert await change(broker, (TOPIC, name, ops)) == [(code, message)]


async def test_brokers_are_refused_in_the_words_of_kafka_4_in_its_place(tmp_path: Path) -> None:
    async with configured_broker(tmp_path, kpybroker_kafka_version="4.3") as broker:
        ((code, message),) = await change(broker, (BROKER, "0", [("log.dirs", SET, "/x"), ("broker.id", SET, "5")]))
    assert (code, message) == (
        ErrorCode.INVALID_REQUEST,
        "Cannot update these configs dynamically: [broker.id, log.dirs]",
    )
