"""Kafka's request log: one line a request, its level switched while the broker runs, and nothing secret in it."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.broker.cluster import loggers
from kpybroker.broker.loop.steps import Pending
from kpybroker.broker.requests.context import PlainConnectionInfo
from kpybroker.broker.requests.log.kafka_json import kafka_name
from kpybroker.config.dynamic import AlterConfigOp, OpType
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.headers import RequestHeader, encode_request_header
from kpybroker.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kpybroker.wire.messages.join_group import JoinGroupRequest
from kpybroker.wire.messages.metadata import MetadataRequest
from kpybroker.wire.messages.produce import ProduceRequest
from tests.support.brokers.running_broker import ask, create_topic, running_broker
from tests.support.requests.consumer_group_requests import Member, group_broker
from tests.support.storage.batches import batch

LOGGER = "kafka.request.logger"
KAFKAS_FIELDS = [
    "isForwarded",
    "requestHeader",
    "request",
    "response",
    "connection",
    "totalTimeMs",
    "requestQueueTimeMs",
    "localTimeMs",
    "remoteTimeMs",
    "throttleTimeMs",
    "responseQueueTimeMs",
    "sendTimeMs",
    "securityProtocol",
    "principal",
    "listener",
    "clientInformation",
]


@pytest.fixture
def level() -> Iterator[Any]:
    """Sets the level as AlterConfigs does; None removes it."""

    def change(name: str | None) -> None:
        loggers.apply([AlterConfigOp(LOGGER, OpType.DELETE if name is None else OpType.SET, name)])

    yield change
    change(None)


def completed(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    lines = [record.getMessage() for record in caplog.records if record.name == LOGGER]
    return [json.loads(line.removeprefix("Completed request:")) for line in lines if line.startswith("Completed")]


def produce(value: bytes = b"hello", acks: int = 1, topic: str = "orders", timeout_ms: int = 0) -> ProduceRequest:
    data = ProduceRequest.PartitionProduceData(index=0, records=batch(value))
    topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=[data])]
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=topics)


async def test_a_line_has_kafkas_fields_and_no_records(
    level: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker(tmp_path, topics=["orders"]) as broker:
        level("DEBUG")
        await ask(broker, produce(b"what no one may read"), 9, client_id="shop")
        (line,) = completed(caplog)
    assert list(line) == [*KAFKAS_FIELDS, "requestSizeBytes", "responseSizeBytes"]
    assert line["requestHeader"] == {
        "requestApiKey": 0,
        "requestApiVersion": 9,
        "correlationId": 7,
        "clientId": "shop",
        "requestApiKeyName": "PRODUCE",
    }
    ((partition,),) = (topic["partitionData"] for topic in line["request"]["topicData"])
    assert partition == {"index": 0, "recordsSizeInBytes": len(batch(b"what no one may read"))}
    assert line["response"]["responses"][0]["partitionResponses"][0]["errorCode"] == 0
    assert (line["connection"], line["principal"], line["listener"]) == ("test", "User:ANONYMOUS", "PLAINTEXT")
    assert line["clientInformation"] == {"softwareName": "unknown", "softwareVersion": "unknown"}
    assert 0 < line["localTimeMs"] <= line["totalTimeMs"]
    assert line["responseSizeBytes"] > 20
    assert "no one may read" not in caplog.text


async def test_the_records_of_a_fetch_are_a_size(level: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running_broker(tmp_path, topics=["orders"]) as broker:
        await ask(broker, produce(b"hidden" * 1000), 9)
        level("DEBUG")
        partition = FetchRequest.FetchPartition(partition=0, partition_max_bytes=99999)
        topics = [FetchRequest.FetchTopic(topic="orders", partitions=[partition])]
        response = await ask(broker, FetchRequest(max_bytes=99999, topics=topics), 12)
        (line,) = completed(caplog)
    size = len(response.responses[0].partitions[0].records)
    assert size > 6000
    (found,) = line["response"]["responses"][0]["partitions"]
    assert found["recordsSizeInBytes"] == size
    assert "records" not in found
    assert line["responseSizeBytes"] > size


async def test_the_level_is_read_again_whenever_it_changes(
    level: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker(tmp_path, topics=["orders"]) as broker:
        plain = broker.dispatcher.respond_now
        for name, lines in (("INFO", 0), ("DEBUG", 1), ("DEBUG", 2), ("WARN", 2), ("TRACE", 3), (None, 3)):
            level(name)
            await ask(broker, MetadataRequest(), 9)
            assert len(completed(caplog)) == lines
        assert broker.dispatcher.respond_now == plain
        received = [r for r in caplog.records if r.name == LOGGER and r.getMessage().startswith("Received request:{")]
        assert len(received) == 1
    level("DEBUG")  # a broker that has ended is not asked again


async def test_time_that_a_request_waits_is_remote_time(
    level: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    level("DEBUG")
    async with running_broker(tmp_path, topics=["orders"]) as broker:
        caplog.clear()
        joined: list[Any] = []
        wanted = FetchRequest(
            max_wait_ms=50,
            min_bytes=1,
            max_bytes=9999,
            topics=[
                FetchRequest.FetchTopic(
                    topic="orders", partitions=[FetchRequest.FetchPartition(partition=0, partition_max_bytes=9999)]
                )
            ],
        )
        joined.append(await ask(broker, wanted, 12))
        (line,) = completed(caplog)
        total, remote, local = (round(1000 * line[f"{name}TimeMs"]) for name in ("total", "remote", "local"))
        assert remote >= 49_000
        assert total >= remote + local  # whole microseconds: a sum of fractions may be too large by its last bit


async def test_passwords_and_keys_are_hidden(level: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    config = IncrementalAlterConfigsRequest.AlterableConfig

    def change(kind: int, name: str, key: str, value: str) -> IncrementalAlterConfigsRequest:
        configs = [config(name=key, config_operation=0, value=value)]
        return IncrementalAlterConfigsRequest(
            resources=[resource(resource_type=kind, resource_name=name, configs=configs)], validate_only=True
        )

    level("TRACE")
    async with running_broker(tmp_path, topics=["orders"], delegation_token_secret_key="the secret") as broker:
        caplog.clear()
        await ask(broker, change(4, "0", "listener.name.internal.ssl.key.password", "hunter2"), 1)
        await ask(broker, change(4, "0", "no.such.setting", "hunter2"), 1)
        await ask(broker, change(2, "orders", "retention.ms", "1000"), 1)
        await ask(broker, CreateDelegationTokenRequest(), 2)
        lines = completed(caplog)
        values = [line["request"]["resources"][0]["configs"][0]["value"] for line in lines[:3]]
    assert values == ["[hidden]", "[hidden]", "1000"]
    assert lines[3]["response"]["hmac"] == "[hidden]"
    assert "hunter2" not in caplog.text


async def test_a_request_that_was_refused_or_gets_no_response_is_a_line_too(
    level: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    level("DEBUG")
    async with running_broker(tmp_path, topics=["orders"]) as broker:
        caplog.clear()
        assert await ask(broker, produce(acks=0), 9) is None
        await ask(broker, produce(topic="nowhere"), 9)
        silent, refused = completed(caplog)
    assert (silent["response"], silent["responseSizeBytes"]) == ("", 0)
    assert refused["response"]["responses"][0]["partitionResponses"][0]["errorCode"] == 3


async def test_bytes_are_base64_and_default_tags_are_left_out(
    level: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    level("DEBUG")
    async with running_broker(tmp_path) as broker:
        caplog.clear()
        protocols = [JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\x00\xff")]
        request = JoinGroupRequest(
            group_id="g", session_timeout_ms=10000, protocol_type="consumer", protocols=protocols
        )
        await ask(broker, request, 4)
        await ask(broker, FetchRequest(), 12)
        joined, fetched = completed(caplog)
    assert joined["request"]["protocols"] == [{"name": "range", "metadata": "AP8="}]
    assert "clusterId" not in fetched["request"]


async def test_a_heartbeat_of_a_consumer_group_shows_subscription_epoch_and_assignment(
    level: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with group_broker(tmp_path) as broker:
        topic_id = await create_topic(broker, "t")
        level("DEBUG")
        caplog.clear()
        await Member(broker, "m1").join("t", subscribed_topic_regex="t.*")
        (line,) = completed(caplog)
    assert line["requestHeader"]["requestApiKeyName"] == "CONSUMER_GROUP_HEARTBEAT"
    asked, returned = line["request"], line["response"]
    assert {name: asked[name] for name in ("groupId", "memberId", "memberEpoch", "subscribedTopicNames")} == {
        "groupId": "g",
        "memberId": "m1",
        "memberEpoch": 0,
        "subscribedTopicNames": ["t"],
    }
    assert asked["subscribedTopicRegex"] == "t.*"
    assert (returned["errorCode"], returned["memberId"], returned["memberEpoch"]) == (0, "m1", 2)
    (assigned,) = returned["assignment"]["topicPartitions"]
    assert assigned["partitions"] == [0]
    assert base64.urlsafe_b64decode(assigned["topicId"] + "==") == topic_id


async def test_a_frame_that_cannot_be_read_ends_its_connection_as_without_the_log(level: Any, tmp_path: Path) -> None:
    level("TRACE")
    async with running_broker(tmp_path) as broker:
        for header in (RequestHeader(3, 9, 1, "x"), RequestHeader(999, 0, 1, "x"), RequestHeader(0, 99, 1, "x")):
            frame = bytearray(encode_request_header(header) + b"\xff")
            with pytest.raises(ProtocolError):
                await broker.dispatcher.respond(frame, PlainConnectionInfo())


async def test_a_connection_that_ends_before_its_response_releases_its_request(level: Any, tmp_path: Path) -> None:
    level("DEBUG")
    async with running_broker(tmp_path, topics=["orders"]) as broker:
        await trio.testing.wait_all_tasks_blocked()
        assert isinstance(broker, Broker)
        frame = encode_request_header(RequestHeader(1, 12, 1, "x"))
        from kpybroker.wire.codec import encode

        partition = FetchRequest.FetchPartition(partition=0, partition_max_bytes=9999)
        topics = [FetchRequest.FetchTopic(topic="orders", partitions=[partition])]
        body = encode(FetchRequest(max_wait_ms=60_000, min_bytes=1, max_bytes=9999, topics=topics), 12)
        unfinished = broker.dispatcher.respond_now(bytearray(frame + body), PlainConnectionInfo())
        assert isinstance(unfinished, Pending)
        unfinished.close()


@pytest.mark.parametrize(
    ("ours", "kafkas"),
    [("topic_id", "topicId"), ("isr", "isr"), ("is_kraft_controller", "isKRaftController"), ("acks", "acks")],
)
def test_names_are_those_of_kafkas_schemas(ours: str, kafkas: str) -> None:
    assert kafka_name(ours) == kafkas


def test_the_log_is_off_at_info() -> None:
    assert not logging.getLogger(LOGGER).isEnabledFor(logging.DEBUG)
