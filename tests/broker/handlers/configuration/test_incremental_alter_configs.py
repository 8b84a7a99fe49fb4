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
