"""What requests count against quotas, and what throttle times their responses have: through the dispatcher.

The broker's clock stands still unless a test moves it, so that every number is exact.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.broker.loop import loop_time
from kpybroker.broker.loop.clock import SystemClock
from kpybroker.broker.requests.context import PlainConnectionInfo
from kpybroker.core.authorizer import Principal
from kpybroker.core.features import SUPPORTED, Ranges
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.api_versions import ApiVersionsRequest
from kpybroker.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kpybroker.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kpybroker.wire.messages.create_partitions import CreatePartitionsRequest
from kpybroker.wire.messages.create_topics import CreateTopicsRequest
from kpybroker.wire.messages.delete_topics import DeleteTopicsRequest
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kpybroker.wire.messages.list_offsets import ListOffsetsRequest
from kpybroker.wire.messages.metadata import MetadataRequest
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.messages.push_telemetry import PushTelemetryRequest
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest
from tests.support.brokers.running_broker import ask, running_broker
from tests.support.storage.batches import batch

VALUE = bytes(10_000)


class StillClock(SystemClock):
    """Its wall clock is moved by hand."""

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000

    def time_ms(self) -> int:
        return self.now_ms


class Muted(PlainConnectionInfo):
    """Notes for how long it is muted, in seconds."""

    __slots__ = ("muted_s",)

    def __init__(self) -> None:
        super().__init__(connection_id="test")
        self.muted_s: list[float] = []

    def mute(self, deadline: float) -> None:
        self.muted_s.append(deadline - trio.current_time())


class Metered:
    """A broker with a topic `t`, and one connection to it."""

    def __init__(self, broker: Broker, clock: StillClock) -> None:
        self.broker = broker
        self.clock = clock
        self.connection = Muted()

    async def limit(self, entity: str, kind: str = "clients", **values: object) -> None:
        await self.broker.configs.write(kind, entity, {key: str(value) for key, value in values.items()})

    async def ask(self, request: Any, version: int, client_id: str = "c") -> Any:
        return await ask(self.broker, request, version, client_id, self.connection)

    async def produce(self, *, acks: int = 1, version: int = 9, client_id: str = "c") -> Any:
        data = ProduceRequest.PartitionProduceData(index=0, records=batch(VALUE, timestamp=self.clock.now_ms))
        topic = ProduceRequest.TopicProduceData(name="t", partition_data=[data])
        return await self.ask(ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic]), version, client_id)

    async def fetch(
        self, *, session: tuple[int, int] = (0, -1), version: int = 12, client_id: str = "c", **fields: Any
    ) -> Any:
        partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
        topics = [] if session[1] > 0 else [FetchRequest.FetchTopic(topic="t", partitions=[partition])]
        request = FetchRequest(
            max_wait_ms=0, max_bytes=1_000_000, topics=topics, session_id=session[0], session_epoch=session[1], **fields
        )
        return await self.ask(request, 12)


@asynccontextmanager
async def metered(directory: Path, partitions: str = "1", features: Ranges = SUPPORTED) -> AsyncIterator[Metered]:
    clock = StillClock()
    async with running_broker(
        directory, clock=clock, topics=["t"], features=features, num_partitions=partitions
    ) as broker:
        yield Metered(broker, clock)


def records_in(response: Any) -> int:
    return sum(len(data.records or b"") for topic in response.responses for data in topic.partitions)


async def test_without_a_quota_nothing_is_counted_and_no_module_is_loaded(tmp_path: Path) -> None:
    async with metered(tmp_path) as one:
        assert one.broker.quotas is None
        assert (await one.produce()).throttle_time_ms == 0
        await one.limit("other", producer_byte_rate=1)
        assert (await one.produce()).throttle_time_ms == 0
        assert one.broker.quotas is not None
        await one.limit("other")
        assert one.broker.quotas is None
        assert one.connection.muted_s == []


@pytest.mark.parametrize("acks", [0, 1, -1])
@pytest.mark.parametrize("version", [0, 1, 9])
async def test_a_producer_waits_for_its_bytes(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, acks: int, version: int
) -> None:
    """Kafka counts the body of the request, and ten full windows of a second at least: 500 a second are 5 000 at
    once. Every response is sent, with what it was asked for.
    """
    async with metered(tmp_path) as one:
        await one.limit("c", producer_byte_rate=500)
        first = await one.produce(acks=acks, version=max(version, 3) if version else 3)
        size = 10_000
        (muted_s,) = one.connection.muted_s
        assert muted_s == pytest.approx((size - 5000) / 500, abs=0.3)
        if acks == 0:
            assert first is None
            return
        assert first.responses[0].partition_responses[0].error_code == 0
        assert first.throttle_time_ms == round(muted_s * 1000)
        assert (await one.produce(acks=acks, client_id="d")).throttle_time_ms == 0
        one.clock.now_ms += 60_000
        await one.limit("c", producer_byte_rate=50_000)
        assert (await one.produce(acks=acks)).throttle_time_ms == 0


async def test_a_producer_with_errors_waits_too(tmp_path: Path) -> None:
    async with metered(tmp_path) as one:
        await one.limit("c", producer_byte_rate=1)
        request = ProduceRequest(
            acks=1,
            topic_data=[
                ProduceRequest.TopicProduceData(
                    name="missing", partition_data=[ProduceRequest.PartitionProduceData(records=batch(VALUE))]
                )
            ],
        )
        response = await one.ask(request, 9)
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert response.throttle_time_ms > 0


async def test_a_consumer_that_has_to_wait_gets_nothing(tmp_path: Path) -> None:
    """And what it did not get does not count; a session of its own is not made for it."""
    async with metered(tmp_path) as one:
        for _ in range(3):
            await one.produce()
        whole = await one.fetch()
        size = records_in(whole)
        assert size > 30_000
        await one.limit("c", consumer_byte_rate=5000)
        assert records_in(await one.fetch()) == pytest.approx(size, abs=1)
        second = await one.fetch(session=(0, 0))
        assert (records_in(second), second.responses, second.session_id) == (0, [], 0)
        assert second.throttle_time_ms == pytest.approx((2 * size - 50_000) / 5, rel=0.02)
        assert (await one.fetch()).throttle_time_ms == second.throttle_time_ms
        one.clock.now_ms += 12_000
        assert records_in(await one.fetch()) == size
        assert len(one.connection.muted_s) == 2


async def test_a_session_misses_nothing_of_a_fetch_that_had_to_wait(tmp_path: Path) -> None:
    async with metered(tmp_path) as one:
        first = await one.fetch(session=(0, 0))
        assert first.session_id
        await one.produce()
        await one.limit("c", consumer_byte_rate=900)
        throttled = await one.fetch(session=(first.session_id, 1))
        assert (throttled.session_id, throttled.responses, throttled.error_code) == (first.session_id, [], 0)
        assert throttled.throttle_time_ms > 0
        await one.limit("c", consumer_byte_rate=100_000)
        assert records_in(await one.fetch(session=(first.session_id, 2))) > 10_000


async def test_a_fetch_takes_no_more_than_its_quota_allows_at_once(tmp_path: Path) -> None:
    async with metered(tmp_path) as one:
        for _ in range(3):
            await one.produce()
        await one.limit("c", consumer_byte_rate=2500)
        first = await one.fetch()  # a part of the third batch, and a few bytes too many for what is around it
        assert 0 < first.throttle_time_ms < 50
        one.clock.now_ms += first.throttle_time_ms
        assert records_in(await one.fetch()) == 25_000


async def test_followers_are_exempt(tmp_path: Path) -> None:
    async with metered(tmp_path) as one:
        await one.produce()
        await one.limit("<default>", consumer_byte_rate=1, request_percentage=0.000001)
        assert (await one.fetch(replica_id=1)).throttle_time_ms == 0
        assert (await one.ask(UpdateMetadataRequest(broker_epoch=-1), 6)) is not None
        assert one.connection.muted_s == []


class Spent:
    """A clock of request time on which every look costs 10 ms."""

    def __init__(self) -> None:
        self.now_ns = 1

    def __call__(self) -> int:
        self.now_ns += 10_000_000
        return self.now_ns


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> Spent:
    made = Spent()
    monkeypatch.setattr(loop_time, "perf_counter_ns", made)
    return made


VERSIONS = {
    MetadataRequest: 4,
    ConsumerGroupHeartbeatRequest: 1,
    ConsumerGroupDescribeRequest: 1,
    GetTelemetrySubscriptionsRequest: 0,
    PushTelemetryRequest: 0,
}


@pytest.mark.parametrize(
    "request_",
    [
        ApiVersionsRequest(),
        MetadataRequest(topics=None, allow_auto_topic_creation=False),
        ListOffsetsRequest(topics=[]),
        CreateTopicsRequest(topics=[], timeout_ms=10),
        ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1),
        ConsumerGroupDescribeRequest(group_ids=["g"]),
        GetTelemetrySubscriptionsRequest(),
        PushTelemetryRequest(client_instance_id=b"a" * 16),
    ],
    ids=lambda request: type(request).__name__,
)
async def test_every_request_counts_its_time(tmp_path: Path, spent: Spent, request_: Any) -> None:
    """In percent of a second of the loop, over ten seconds and more; it waits for one window at most."""
    async with metered(tmp_path) as one:
        await one.limit("c", request_percentage=0.001)
        version = VERSIONS.get(type(request_), 2)
        first = await one.ask(request_, version)
        assert first.throttle_time_ms == 1000
        assert one.connection.muted_s == [pytest.approx(1.0, abs=0.1)]
        await one.limit("c", request_percentage=1000)
        assert (await one.ask(request_, version)).throttle_time_ms == 0


async def test_produce_and_fetch_wait_for_the_longer_of_two(tmp_path: Path, spent: Spent) -> None:
    async with metered(tmp_path) as one:
        await one.produce()
        await one.limit("c", request_percentage=0.001, producer_byte_rate=1500, consumer_byte_rate=1)
        assert (await one.produce()).throttle_time_ms == 1000
        assert await one.produce(acks=0) is None, "whose time does not count"
        assert one.connection.muted_s[1] > 1
        fetched = await one.fetch()
        assert fetched.throttle_time_ms > 1000
        assert fetched.responses == []


async def test_time_is_counted_in_handlers_that_wait_but_not_the_waiting(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with metered(tmp_path) as one:
        await one.limit("c", request_percentage=1000)
        assert one.broker.quotas is not None
        partition = FetchRequest.FetchPartition(partition=0, partition_max_bytes=10)
        topics = [FetchRequest.FetchTopic(topic="t", partitions=[partition])]
        waited = await one.ask(FetchRequest(max_wait_ms=30_000, min_bytes=1, topics=topics, session_epoch=-1), 12)
        assert waited.throttle_time_ms == 0
        ((rate, _),) = one.broker.quotas.request_time._rates._uses.values()
        assert 0 < rate.measure(one.clock.now_ms) < 10, "30 s on the loop were 300 percent"


def new_topic(name: str, partitions: int) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


def more_partitions(name: str, count: int) -> CreatePartitionsRequest:
    topic = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=count, assignments=None)
    return CreatePartitionsRequest(topics=[topic], timeout_ms=10_000)


async def test_strict_versions_refuse_what_exceeds_the_quota_on_mutations(tmp_path: Path) -> None:
    """KIP-599: one partition a second, and eleven at once; what is there may be exceeded once."""
    async with metered(tmp_path) as one:
        await one.limit("c", controller_mutation_rate=1)
        first = await one.ask(new_topic("a", 20), 6)
        assert (first.topics[0].error_code, first.throttle_time_ms) == (0, 0)
        second = await one.ask(new_topic("b", 1), 6)
        refused = ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert (second.topics[0].error_code, second.throttle_time_ms) == (refused, 9000)
        grown = await one.ask(more_partitions("a", 21), 3)
        assert (grown.results[0].error_code, grown.throttle_time_ms) == (refused, 9000)
        deleted = await one.ask(DeleteTopicsRequest(topic_names=["a"], timeout_ms=10_000), 5)
        assert (deleted.responses[0].error_code, deleted.throttle_time_ms) == (refused, 9000)
        assert one.connection.muted_s == [pytest.approx(9, abs=0.1)] * 3
        one.clock.now_ms += 9000
        assert (await one.ask(more_partitions("a", 21), 3)).results[0].error_code == 0


async def test_older_versions_do_it_and_wait(tmp_path: Path) -> None:
    async with metered(tmp_path) as one:
        await one.limit("c", controller_mutation_rate=1)
        first = await one.ask(new_topic("a", 20), 5)
        assert (first.topics[0].error_code, first.throttle_time_ms) == (0, 9000)
        grown = await one.ask(more_partitions("a", 21), 2)
        assert (grown.results[0].error_code, grown.throttle_time_ms) == (0, 10_000)
        deleted = await one.ask(DeleteTopicsRequest(topic_names=["a"], timeout_ms=10_000), 4)
        assert (deleted.responses[0].error_code, deleted.throttle_time_ms) == (0, 31_000)


async def test_a_topic_made_on_first_use_counts_and_its_request_does_not_wait(tmp_path: Path) -> None:
    async with metered(tmp_path, "20") as one:
        await one.limit("c", controller_mutation_rate=1)
        topics = [MetadataRequest.MetadataRequestTopic(name="a")]
        made = await one.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=True), 4)
        assert made.topics[0].error_code in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE)  # elected by then, or not
        assert made.throttle_time_ms == 0
        assert (await one.ask(new_topic("b", 1), 6)).throttle_time_ms == 9000


async def test_users_are_the_principals_of_connections(tmp_path: Path) -> None:
    async with metered(tmp_path) as one:
        await one.limit("ANONYMOUS", "users", producer_byte_rate=500)
        assert (await one.produce()).throttle_time_ms > 0
        await one.limit("ANONYMOUS/clients/c", "users", producer_byte_rate=5_000_000)
        assert (await one.produce()).throttle_time_ms == 0
        assert (await one.produce(client_id="d")).throttle_time_ms > 0


async def test_a_user_that_has_logged_in_has_its_own_quota(tmp_path: Path) -> None:
    """The user's name is the principal's, whatever characters it has, on every connection of the user."""
    async with metered(tmp_path) as one:
        await one.limit(znodes.sanitize("CN=alice, O=X"), "users", producer_byte_rate=500)
        assert (await one.produce()).throttle_time_ms == 0
        for client_id in ("c", "d"):
            one.connection = Muted()
            one.connection.principal = Principal("User", "CN=alice, O=X")
            assert (await one.produce(client_id=client_id)).throttle_time_ms > 0
