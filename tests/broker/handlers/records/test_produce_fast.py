"""Produce without messages is Produce: the same responses, and the same log, as the way that every request can go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kpybroker.broker.app import Broker
from kpybroker.broker.handlers.records import produce
from kpybroker.broker.loop.steps import Pending
from kpybroker.broker.requests.context import PlainConnectionInfo
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.topic_names import GROUP_METADATA_TOPIC_NAME
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.compression import Codec
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.headers import RequestHeader, encode_request_header
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.produce import ProduceRequest, ProduceResponse
from kpybroker.wire.records.builder import BatchFields, build_batch
from tests.support.brokers.fake_broker import Denying
from tests.support.brokers.running_broker import CLIENT, ask, create_topic, running_broker
from tests.support.storage.batches import NOW_MS, batch

IDEMPOTENT = {"producer_id": 9, "producer_epoch": 3}
GOOD = batch(b"a", b"b")
CUT_OFF = GOOD[:-1]
DAMAGED = CUT_OFF + b"\xff"
OFFSET_5 = (5).to_bytes(8, "big") + GOOD[8:]
NO_LENGTH = GOOD[:8] + bytes(4) + GOOD[12:]
MAGIC_9 = GOOD[:16] + b"\x09" + GOOD[17:]
TOPICS: dict[str, dict[str, Any]] = {
    "plain": {},
    "flushed": {"flush_messages": "1"},
    "stamped": {"message_timestamp_type": "LogAppendTime"},
    "compacted": {"cleanup_policy": "compact"},
    "squeezed": {"compression_type": "lz4"},
    "short": {"segment_bytes": "200"},
}
BATCHES: list[bytes | bytearray] = [
    GOOD,
    batch(b"z" * 50, codec=Codec.ZSTD),
    batch(b"l" * 50, codec=Codec.LZ4),
    batch(b"big" * 100),
    batch(b"too big" * 200_000),
    *(batch(b"%d" % sequence, base_sequence=sequence, **IDEMPOTENT) for sequence in (0, 1, 1, 0, 7, 2)),
    batch(b"fenced", base_sequence=3, producer_id=9, producer_epoch=2),
    batch(b"no sequence", **IDEMPOTENT),
    batch(b"transactional", base_sequence=3, is_transactional=True, **IDEMPOTENT),
    batch(b"control", is_control=True),
    GOOD + GOOD,
    b"",
    b"short",
    *(CUT_OFF, DAMAGED, OFFSET_5, NO_LENGTH, MAGIC_9),
]
VERSIONS = range(5, 14)
UNKNOWN_ID = b"unknown topic id"


def request(
    topic: str, records: bytes | bytearray, *, index: int = 0, acks: int = 1, topic_id: bytes = ZERO_UUID
) -> ProduceRequest:
    data = ProduceRequest.PartitionProduceData(index=index, records=bytes(records))
    topic_data = ProduceRequest.TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic_data])


class Scenario:
    """The requests that a broker receives, and all its responses."""

    def __init__(self, broker: Broker, version: int) -> None:
        self.broker = broker
        self.version = version
        self.heard: list[bytes] = []
        self.connection = PlainConnectionInfo(connection_id="scenario")

    async def ask(
        self, topic: str, records: bytes | bytearray, **changes: int
    ) -> ProduceResponse.PartitionProduceResponse:
        topic_id = self.broker.metadata.snapshot.topic_ids.get(topic, UNKNOWN_ID)
        asked = request(topic, records, topic_id=topic_id, **changes)
        response = await ask(self.broker, asked, self.version, connection=self.connection)
        if self.version >= 13:
            assert response.responses[0].topic_id == topic_id
            response.responses[0].topic_id = ZERO_UUID  # each broker draws its own
        self.heard.append(encode(response, self.version))
        partition_response: ProduceResponse.PartitionProduceResponse
        (partition_response,) = response.responses[0].partition_responses
        return partition_response

    def logs(self) -> list[bytes]:
        """What stands in every log, but for the times of appending."""
        found = []
        for topic in TOPICS:
            log = self.broker.logs.get(topic, 0)
            assert log is not None
            segments = [segment.records.read(0, segment.size) for segment in log.segments()]
            found.append(repr([len(s) if topic == "stamped" else s for s in segments]).encode())
        return found


async def everything(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = scenario.broker
    for topic, configs in TOPICS.items():
        await create_topic(broker, topic, **configs)
        for acks in (-1, 1):
            for records in BATCHES:
                response = await scenario.ask(topic, records, acks=acks)
                if topic == "stamped":
                    assert (response.log_append_time_ms < 0) == bool(response.error_code)
                    scenario.heard.pop()
    await ask(broker, FindCoordinatorRequest(key="g", key_type=0), 3)
    await scenario.ask(GROUP_METADATA_TOPIC_NAME, GOOD)
    for changes in ({"index": 1}, {"index": -1}, {"acks": 2}):
        await scenario.ask("plain", GOOD, **changes)
    await scenario.ask("missing", GOOD)
    broker.authorizer, allowing = Denying([(Operation.WRITE, ResourceType.TOPIC, "plain")]), broker.authorizer
    assert (await scenario.ask("plain", GOOD)).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    broker.authorizer = allowing
    scenario.heard += scenario.logs()
    await failures(scenario, monkeypatch)


async def failures(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = scenario.broker.replicas.partition("plain", 0)
    assert partition is not None
    for error in (RuntimeError("a mistake of ours"), LogDirError("elsewhere", "a broken disk")):

        def fail(*_: Any, error: Exception = error, **__: Any) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(type(partition), "append", fail)
            assert (await scenario.ask("plain", GOOD)).error_code != 0
    leader, partition.leader = partition.leader, None
    assert (await scenario.ask("plain", GOOD)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    first, *behind = (batch(b"%d" % sequence, base_sequence=sequence, **IDEMPOTENT) for sequence in range(3, 9))
    assert (await scenario.ask("plain", first)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    partition.leader = leader
    codes = [(await scenario.ask("plain", records)).error_code for records in behind]
    assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 4 + [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert (await scenario.ask("plain", first)).error_code == 0
    assert partition.log is not None
    scenario.broker.replicas.log_dir_failed(partition.log.log_dir)
    assert (await scenario.ask("plain", GOOD)).error_code == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_response_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    scenarios = []
    for way in ("plain", "long"):
        if way == "long":
            monkeypatch.setattr(produce, "FAST_VERSIONS", (0, -1))
        async with running_broker(tmp_path / way) as broker:
            scenario = Scenario(broker, version)
            await everything(scenario, monkeypatch)
            scenarios.append(scenario.heard)
    assert scenarios[0] == scenarios[1]


async def test_a_plain_request_never_becomes_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the test above would compare the long way with itself."""
    async with running_broker(tmp_path, topics=["t"]) as broker:
        monkeypatch.setattr(produce, "handle", None)
        for version in VERSIONS:
            for records in (GOOD, batch(b"z" * 50, codec=Codec.GZIP)):
                asked = request("t", records, topic_id=broker.metadata.topic_id("t"))
                response = await ask(broker, asked, version)
                assert response.responses[0].partition_responses[0].error_code == 0
        assert broker.dispatcher.requests[0, 9] == 2


async def test_a_borrowed_frame_may_change_while_its_response_waits(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        await create_topic(broker, "flushed", flush_messages="1")
        await create_topic(broker, "walked", cleanup_policy="compact")
        keyed = build_batch([(b"key", b"v" * 100, NOW_MS)], BatchFields(codec=Codec.GZIP))
        for topic, records in (("flushed", GOOD), ("walked", keyed)):
            head = encode_request_header(RequestHeader(ApiKey.PRODUCE, 9, 7, "test"))
            frame = bytearray(head + encode(request(topic, records), 9))
            outcome: Any = broker.dispatcher.respond_now(memoryview(frame), CLIENT)
            assert isinstance(outcome, Pending)
            frame[:] = bytes(len(frame))
            response = decode(ProduceResponse, (await outcome).frame[9:], 9)
            assert response.responses[0].partition_responses[0].error_code == 0
