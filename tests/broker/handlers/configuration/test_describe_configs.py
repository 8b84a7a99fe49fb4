"""DescribeConfigs in every version, compared with Kafka 3.9.1's responses (tests/config/kafka_3_9_1_configs.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kpybroker.broker.handlers.configuration import describe_configs
from kpybroker.config.broker import BrokerConfig
from kpybroker.config.dynamic import QUOTA_KEYS
from kpybroker.config.keys.own import OWN
from kpybroker.config.keys.releases import ADDED, INTERNAL_IN_4, REMOVED
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from tests.config.keys.kafka_keys import defined
from tests.support.brokers.configured_broker import call, configured_broker
from tests.support.brokers.control_broker import Denying

KAFKA = json.loads((Path(__file__).parents[3] / "config" / "keys" / "kafka_3_9_1_configs.json").read_text())
TOPIC, BROKER, LOGGER, METRICS = 2, 4, 8, 16
ALL_VERSIONS = range(5)

OUR_LISTENER_DEFAULT = ["listeners", "PLAINTEXT://127.0.0.1:9092", 5]
KAFKAS_LISTENER_DEFAULT = ["listeners", "PLAINTEXT://:9092", 5]


def asking(resource_type: int, name: str, *keys: str, synonyms: bool = False, docs: bool = False) -> Any:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=resource_type, resource_name=name, configuration_keys=list(keys) or None
    )
    return DescribeConfigsRequest(resources=[resource], include_synonyms=synonyms, include_documentation=docs)


def rows(response: DescribeConfigsResponse) -> dict[str, list[Any]]:
    """By name, shaped as the recorded responses."""
    (result,) = response.results
    assert result.error_code == ErrorCode.NONE
    return {
        entry.name: [
            entry.name,
            entry.value,
            entry.config_type,
            entry.config_source,
            entry.read_only,
            entry.is_sensitive,
            [[synonym.name, synonym.value, synonym.source] for synonym in entry.synonyms],
        ]
        for entry in result.configs
    }


def failure(response: DescribeConfigsResponse) -> tuple[ErrorCode, str | None]:
    (result,) = response.results
    assert result.configs == []
    return ErrorCode(result.error_code), result.error_message


async def test_a_broker_is_described_as_kafka_describes_it(tmp_path: Path) -> None:
    recorded = {row[0]: row for row in KAFKA["broker"]}
    static = {name: row[1] for name, row in recorded.items() if row[3] == 4}
    async with configured_broker(tmp_path, features={}) as broker:
        broker.config = BrokerConfig(static)
        ours = rows(await call(broker, describe_configs, asking(BROKER, "0", synonyms=True), 4))
    listeners = ours["listeners"][6]
    assert OUR_LISTENER_DEFAULT in listeners
    listeners[listeners.index(OUR_LISTENER_DEFAULT)] = KAFKAS_LISTENER_DEFAULT
    assert {
        name: row for name, row in ours.items() if not name.startswith(("kpybroker.", "kafka.graphite."))
    } == recorded


async def test_a_broker_that_serves_groups_of_kafka_4_also_lists_their_keys(tmp_path: Path) -> None:
    async with configured_broker(tmp_path, features={}) as broker:
        as_3_9 = rows(await call(broker, describe_configs, asking(BROKER, "0"), 4))
    async with configured_broker(tmp_path / "4") as broker:
        as_4 = rows(await call(broker, describe_configs, asking(BROKER, "0"), 4))
    assert as_4.keys() - as_3_9.keys() == ADDED - INTERNAL_IN_4
    dynamic = {name for name, row in as_4.items() if name.startswith("group.consumer.") and not row[4]}
    assert dynamic == {"group.consumer.assignment.interval.ms"}


async def test_a_topic_is_described_as_kafka_describes_it(tmp_path: Path) -> None:
    async with configured_broker(tmp_path, "t") as broker:
        await broker.configs.write("topics", "t", {"retention.ms": "1000"})
        ours = rows(await call(broker, describe_configs, asking(TOPIC, "t", synonyms=True), 4))
    assert ours == {row[0]: row for row in KAFKA["topic"]}


@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_each_version_says_what_it_can(tmp_path: Path, version: int) -> None:
    async with configured_broker(tmp_path, "t", log_retention_hours="2") as broker:
        request = asking(TOPIC, "t", "retention.ms", synonyms=version >= 1, docs=version >= 3)
        response = await call(broker, describe_configs, request, version)
    (entry,) = response.results[0].configs
    assert (entry.name, entry.value, entry.read_only, entry.is_default) == ("retention.ms", "7200000", False, False)
    if version >= 1:
        assert entry.config_source == 5  # log.retention.hours hides behind log.retention.ms, as in Kafka
    if version >= 3:
        assert entry.config_type == 5
        assert entry.documentation.startswith("How long a record is kept")


async def test_layers_and_synonyms_in_order_of_precedence(tmp_path: Path) -> None:
    async with configured_broker(tmp_path, "t", message_max_bytes="100") as broker:
        await broker.configs.write("brokers", "<default>", {"message.max.bytes": "200"})
        await broker.configs.write("brokers", "0", {"message.max.bytes": "300"})
        await broker.configs.write("topics", "t", {"max.message.bytes": "400"})
        topic = rows(await call(broker, describe_configs, asking(TOPIC, "t", "max.message.bytes", synonyms=True), 4))
        own = rows(await call(broker, describe_configs, asking(BROKER, "0", "message.max.bytes", synonyms=True), 4))
        default = rows(await call(broker, describe_configs, asking(BROKER, "", synonyms=True), 4))
    below = [
        ["message.max.bytes", "300", 2],
        ["message.max.bytes", "200", 3],
        ["message.max.bytes", "100", 4],
        ["message.max.bytes", "1048588", 5],
    ]
    assert topic["max.message.bytes"][1] == "400"
    assert topic["max.message.bytes"][3] == 1
    assert topic["max.message.bytes"][6] == [["max.message.bytes", "400", 1], *below]
    assert own["message.max.bytes"][1:] == ["300", 3, 2, False, False, below]
    assert default == {"message.max.bytes": ["message.max.bytes", "200", 3, 3, False, False, [below[1]]]}


@pytest.mark.parametrize(("keys", "is_read_only"), [({}, True), ({"kpybroker_kafka_version": "4.3"}, False)])
async def test_rates_of_replication_have_their_value_and_type_once_they_are_set(
    tmp_path: Path, keys: dict[str, str], is_read_only: bool
) -> None:
    """As Kafka 3.9.1 and 4.3.1. `kafka-reassign-partitions` reads them; an unset one is not listed."""
    leader, follower, disks = QUOTA_KEYS
    async with configured_broker(tmp_path, **keys) as broker:
        await broker.configs.write("brokers", "<default>", {follower: "5"})
        await broker.configs.write("brokers", "0", {leader: "300000"})
        own = rows(await call(broker, describe_configs, asking(BROKER, "0", *QUOTA_KEYS, synonyms=True), 4))
        default = rows(await call(broker, describe_configs, asking(BROKER, "", synonyms=True), 4))
    of_one = [leader, "300000", 5, 2, is_read_only, False, [[leader, "300000", 2]]]
    of_all = [follower, "5", 5, 3, is_read_only, False, [[follower, "5", 3]]]
    assert own == {leader: of_one, follower: of_all}
    assert disks not in own
    assert default == {follower: of_all}


async def test_secrets_and_unknown_keys_are_not_shown(tmp_path: Path) -> None:
    props = {"password_encoder_secret": "hush", "my_own_key": "hush"}
    async with configured_broker(tmp_path, **props) as broker:
        ours = rows(await call(broker, describe_configs, asking(BROKER, "0", synonyms=True), 4))
    assert "hush" not in json.dumps(ours)
    assert ours["my.own.key"] == ["my.own.key", None, 0, 4, True, True, [["my.own.key", None, 4]]]
    assert ours["password.encoder.secret"][5] is True


@pytest.mark.parametrize(
    ("resource_type", "name", "code", "message"),
    [
        (TOPIC, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (
            TOPIC,
            "bad name!",
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: 'bad name!' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'",
        ),
        (
            BROKER,
            "1",
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 0 or empty string, but received 1",
        ),
        (BROKER, "x", ErrorCode.INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
        (LOGGER, "", ErrorCode.INVALID_REQUEST, "Broker id must not be empty"),
        (LOGGER, "1", ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 0 but received 1"),
        (METRICS, "", ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty"),
        (
            METRICS,
            "s",
            ErrorCode.INVALID_REQUEST,
            "Config type client-metrics is only supported on KRaft clusters",
        ),
        (1, "x", ErrorCode.INVALID_REQUEST, "Unexpected resource type UNKNOWN for resource x"),
    ],
)
async def test_what_cannot_be_described(
    tmp_path: Path, resource_type: int, name: str, code: ErrorCode, message: str
) -> None:
    async with configured_broker(tmp_path, features={}) as broker:  # as Kafka 3.9: without client metrics
        assert failure(await call(broker, describe_configs, asking(resource_type, name), 4)) == (code, message)


async def test_loggers_come_with_their_levels(tmp_path: Path) -> None:
    async with configured_broker(tmp_path) as broker:
        ours = rows(await call(broker, describe_configs, asking(LOGGER, "0"), 4))
    assert "root" in ours
    assert ours["kafka.server.KafkaServer"][3:] == [6, False, False, []]


async def test_each_resource_is_authorized_for_itself(tmp_path: Path) -> None:
    denied = Denying([(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, "t")])
    both = asking(TOPIC, "t").resources + asking(BROKER, "0", "num.partitions").resources
    async with configured_broker(tmp_path, "t") as broker:
        request = DescribeConfigsRequest(resources=both)
        response = await call(broker, describe_configs, request, 4, authorizer=denied)
    by_type = {result.resource_type: result for result in response.results}
    assert by_type[TOPIC].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert [entry.value for entry in by_type[BROKER].configs] == ["1"]


async def test_a_broker_in_the_place_of_kafka_4_lists_its_keys_with_its_defaults(tmp_path: Path) -> None:
    kafkas = {name: key for name, key in defined("4.3.1", "broker").items() if key.is_listed}
    async with configured_broker(tmp_path, kpybroker_kafka_version="4.3", reserved_broker_max_id="5") as broker:
        ours = rows(await call(broker, describe_configs, asking(BROKER, "0", synonyms=True), 4))
        some = rows(await call(broker, describe_configs, asking(BROKER, "0", "log.dirs", "message.max.bytes"), 4))
        static = broker.config.static
    own = {name for name in ours if name in OWN}
    assert ours.keys() - own - kafkas.keys() == REMOVED & static.keys()
    assert kafkas.keys() <= ours.keys()
    defaults = {name: row[1] for name, row in ours.items() if row[3] == 5 and name in kafkas}
    assert {name: key.default for name, key in kafkas.items() if name in defaults} == defaults
    assert list(some) == [name for name in ours if name in ("log.dirs", "message.max.bytes")]
    assert some["log.dirs"][2] == 7, "a list"


async def test_a_topic_in_the_place_of_kafka_4_has_its_keys(tmp_path: Path) -> None:
    async with configured_broker(tmp_path, "t", kpybroker_kafka_version="4.3") as broker:
        kept = ["internal.segment.bytes", "message.downconversion.enable"]
        await broker.configs.write("topics", "t", dict(zip(kept, ["9", "false"], strict=True)))
        ours = rows(await call(broker, describe_configs, asking(TOPIC, "t"), 4))
    assert sorted(list(ours)[:2]) == kept, "set, and not listed otherwise"
    assert [ours[name][1] for name in kept] == ["9", "false"]
    assert set(list(ours)[2:]) == {name for name, key in defined("4.3.1", "topic").items() if key.is_listed}
    assert ours["message.timestamp.after.max.ms"][1] == "3600000"
