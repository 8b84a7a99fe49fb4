"""AlterConfigs; both it and IncrementalAlterConfigs compared with Kafka 3.9.1's responses to the same requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kpybroker.broker.handlers.configuration import alter_configs, incremental_alter_configs
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode, KafkaError
from tests.support.brokers.configured_broker import call, configured_broker
from tests.support.brokers.control_broker import Denying
from tests.support.requests.config_requests import BROKER, SET, TOPIC, alter, change, incremental, legacy

RECORDED = json.loads((Path(__file__).parent / "kafka_3_9_1_alter_configs.json").read_text())
"""[kind, [[type, name, entries]...], [[code, message, type, name]...]], all of them with validate_only."""

OURS: dict[str, tuple[int, str]] = {
    # A mistake of the client is reported as one, where Kafka fails with a NoSuchElementException or a MatchError.
    '["inc", [[2, "t", [["nope", 2, "5"]]]]]': (40, "Unknown config name: nope"),
    '["inc", [[4, "0", [["nope", 2, "compact"]]]]]': (40, "Unknown config name: nope"),
    '["inc", [[4, "0", [["leader.replication.throttled.rate", 2, "10"]]]]]': (
        40,
        "Unknown config name: leader.replication.throttled.rate",
    ),
    '["inc", [[2, "t", [["retention.ms", 9, "5"]]]]]': (42, "Unknown operations type 9"),
    # Kafka says "received 0": it names its own id twice.
    '["inc", [[8, "1", [["kafka.log.LogManager", 0, "INFO"]]]]]': (
        42,
        "Unexpected node id. Expected 0, but received 1",
    ),
}


async def test_every_recorded_request_gets_kafkas_response(tmp_path: Path) -> None:
    # Kafka 3.9 was asked on a topic with retention.ms=1000; listeners are Kafka's to change and not ours.
    async with configured_broker(tmp_path, "t", features={}) as broker:
        await broker.configs.write("topics", "t", {"retention.ms": "1000"})
        for kind, resources, expected in RECORDED:
            send = alter if kind == "legacy" else change
            asked = json.dumps([kind, resources])
            wanted = [OURS[asked]] if asked in OURS else [(code, message) for code, message, *_ in expected]
            assert await send(broker, *resources, validate_only=True) == wanted, asked
        assert await broker.configs.read("topics", "t") == {"retention.ms": "1000"}


@pytest.mark.parametrize("version", range(3))
async def test_alter_configs_replaces_everything(tmp_path: Path, version: int) -> None:
    async with configured_broker(tmp_path, "t") as broker:
        await broker.configs.write("topics", "t", {"retention.ms": "1000", "segment.bytes": "100"})
        request = legacy((TOPIC, "t", [("retention.ms", "5")]))
        response = await call(broker, alter_configs, request, version)
        assert [one.error_code for one in response.responses] == [ErrorCode.NONE]
        assert await broker.configs.read("topics", "t") == {"retention.ms": "5"}


async def test_a_resource_named_twice_fails_twice(tmp_path: Path) -> None:
    twice = [(TOPIC, "t", [("retention.ms", "5")]), (TOPIC, "t", [("retention.ms", "6")])]
    async with configured_broker(tmp_path, "t") as broker:
        refused = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        assert await alter(broker, *twice) == [refused, refused]
        assert await broker.configs.read("topics", "t") == {}


async def test_a_password_is_not_kept(tmp_path: Path) -> None:
    async with configured_broker(tmp_path) as broker:
        ((code, message),) = await alter(broker, (BROKER, "0", [("listener.name.x.ssl.key.password", "p")]))
        assert code == ErrorCode.INVALID_CONFIG
        assert message == (
            "Invalid config value for resource ConfigResource(type=BROKER, name='0'): "
            "Password encoder secret not configured"
        )
        assert await broker.configs.read("brokers", "0") == {}


@pytest.mark.parametrize(
    ("resource", "denied", "code"),
    [
        ((TOPIC, "t"), ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ((BROKER, "0"), ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ],
)
async def test_who_may_not_alter(
    tmp_path: Path, resource: tuple[int, str], denied: ResourceType, code: ErrorCode
) -> None:
    authorizer = Denying([(Operation.ALTER_CONFIGS, denied, None)])
    async with configured_broker(tmp_path, "t") as broker:
        for handler, request in (
            (alter_configs, legacy((*resource, [("retention.ms", "5")]))),
            (incremental_alter_configs, incremental((*resource, [("retention.ms", SET, "5")]))),
        ):
            if resource[0] == BROKER and handler is alter_configs:
                request = legacy((*resource, [("message.max.bytes", "5")]))
            response = await call(broker, handler, request, 1, authorizer=authorizer)
            assert [one.error_code for one in response.responses] == [code]


async def test_a_failure_of_the_whole_request_is_reported_for_each_resource(tmp_path: Path) -> None:
    error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    for handler, request in (
        (alter_configs, legacy((TOPIC, "a", []), (BROKER, "0", []))),
        (incremental_alter_configs, incremental((TOPIC, "a", []), (BROKER, "0", []))),
    ):
        response = handler.error_response(request, None, error)
        assert [(a.error_code, a.resource_type, a.resource_name) for a in response.responses] == [
            (error.code, TOPIC, "a"),
            (error.code, BROKER, "0"),
        ]
