"""Each act on a connection, over sockets and in memory; what a fault holds; what it leaves alone."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio.testing

from kpybroker.broker.network.transport import SocketTransport, Transport
from kpybroker.control.levers.movable_clock import MovableClock
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.api_versions import ApiVersionsRequest
from kpybroker.wire.messages.fetch import FetchRequest, FetchResponse
from kpybroker.wire.messages.heartbeat import HeartbeatRequest
from kpybroker.wire.messages.list_groups import ListGroupsRequest
from kpybroker.wire.messages.list_offsets import ListOffsetsRequest
from kpybroker.wire.messages.metadata import MetadataRequest
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.records.batch import iter_batches, verify_crc
from tests.support.brokers.faulty_broker import Faulty, faulty_broker
from tests.support.brokers.running_broker import create_topic
from tests.support.network.memory_transport import MemoryTransport
from tests.support.network.raw_client import RawClient
from tests.support.storage.batches import batch

PRODUCE, FETCH, HEARTBEAT, LIST_GROUPS, METADATA = 9, 12, 4, 4, 9


@pytest.fixture(params=[SocketTransport, MemoryTransport])
def transport(request: pytest.FixtureRequest) -> Transport:
    made: Transport = request.param()
    return made


@asynccontextmanager
async def serving(directory: Path, transport: Transport, **options: Any) -> AsyncIterator[Faulty]:
    """With the topics `orders` and `others`, of two partitions each."""
    listeners = "PLAINTEXT://127.0.0.1:0"
    async with faulty_broker(directory, transport=transport, listeners=listeners, **options) as faulty:
        for name in ("orders", "others"):
            await create_topic(faulty.broker, name, partitions=2)
        faulty.log.clear()
        yield faulty


def produce(*partitions: tuple[str, int], acks: int = 1, **fields: Any) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=5000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=name,
                partition_data=[ProduceRequest.PartitionProduceData(index=index, records=batch(b"value", **fields))],
            )
            for name, index in partitions
        ],
    )


def fetch(*partitions: tuple[str, int], offset: int = 0, **fields: Any) -> FetchRequest:
    return FetchRequest(
        topics=[
            FetchRequest.FetchTopic(
                topic=name,
                partitions=[
                    FetchRequest.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=9999)
                ],
            )
            for name, index in partitions
        ],
        **{"max_bytes": 99999, **fields},
    )


def codes(response: Any) -> dict[tuple[str, int], int]:
    """Of a Produce or Fetch response."""
    found = {}
    for topic in response.responses:
        if isinstance(response, FetchResponse):
            found.update({(topic.topic, one.partition_index): one.error_code for one in topic.partitions})
        else:
            found.update({(topic.name, one.index): one.error_code for one in topic.partition_responses})
    return found


def end_of(faulty: Faulty, topic: str, partition: int = 0) -> int:
    log = faulty.broker.replicas.hosted(topic, partition).log
    assert log is not None
    return log.log_end_offset


async def nothing_from(client: RawClient) -> bool:
    """Whether the client has no response when all that can be done is done."""
    await trio.testing.wait_all_tasks_blocked()
    return client.client.stream.receive_now(memoryview(bytearray(10))) is None


BUSY = ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_only_the_named_partition_fails_and_the_rest_is_appended(tmp_path: Path, transport: Transport) -> None:
    async with serving(tmp_path, transport) as faulty:
        fault = faulty.add({"error": BUSY.name}, {"times": 1}, api="Produce", topic="orders", partition=1)
        client = await RawClient.to(faulty.broker, transport)
        wanted = [("orders", 0), ("orders", 1), ("others", 0)]
        assert codes(await client.ask(produce(*wanted), PRODUCE)) == {wanted[0]: 0, wanted[1]: BUSY, wanted[2]: 0}
        assert [end_of(faulty, *one) for one in wanted] == [1, 0, 1]
        assert codes(await client.ask(produce(*wanted), PRODUCE)) == dict.fromkeys(wanted, 0)
        assert (fault.hits.count, fault.matches) == (1, 1)


async def test_an_error_after_the_work_hides_that_it_was_done(tmp_path: Path, transport: Transport) -> None:
    async with serving(tmp_path, transport) as faulty:
        faulty.add({"error": "NOT_ENOUGH_REPLICAS_AFTER_APPEND"}, api="Produce")
        client = await RawClient.to(faulty.broker, transport)
        response = await client.ask(produce(("orders", 0)), PRODUCE)
        assert codes(response) == {("orders", 0): ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND}
        assert response.responses[0].partition_responses[0].base_offset == -1
        assert end_of(faulty, "orders") == 1


@pytest.mark.parametrize("act", [{"error": BUSY.name}, {"error": BUSY.name, "level": "top"}], ids=str)
async def test_batches_behind_one_that_is_refused_are_refused_as_by_a_broker_that_refuses_it(
    tmp_path: Path, transport: Transport, act: dict[str, Any]
) -> None:
    """An idempotent producer has five requests in flight: the four others would leave a gap in the log."""
    async with serving(tmp_path, transport) as faulty:
        fault = faulty.add(act, {"nth": 2}, api="Produce", topic="orders")
        client = await RawClient.to(faulty.broker, transport)

        async def send(*sequences: int) -> list[int]:
            for sequence in sequences:
                await client.send(
                    produce(("orders", 0), producer_id=7, producer_epoch=0, base_sequence=sequence), PRODUCE
                )
            return [codes(await client.receive())["orders", 0] for _ in sequences]

        assert await send(0, 1, 2, 3, 4) == [0, BUSY, BUSY, BUSY, BUSY]
        assert await send(1, 2, 3, 4) == [0, 0, 0, 0]
        assert end_of(faulty, "orders") == 5
        assert fault.hits.count == 1


@pytest.mark.parametrize("act", [{"error": BUSY.name}, {"error": BUSY.name, "level": "top"}], ids=str)
async def test_an_error_without_acknowledgement_ends_the_connection(
    tmp_path: Path, transport: Transport, act: dict[str, Any]
) -> None:
    async with serving(tmp_path, transport) as faulty:
        faulty.add(act, api="Produce", topic="orders")
        client = await RawClient.to(faulty.broker, transport)
        await client.send(produce(("orders", 0), ("others", 0), acks=0), PRODUCE)
        assert await client.receive() is None
        assert end_of(faulty, "orders") == 0


async def test_a_delay_lets_others_pass(tmp_path: Path, transport: Transport) -> None:
    async with serving(tmp_path, transport) as faulty:
        fault = faulty.add({"delay_ms": 60_000}, {"once": True}, api="Heartbeat")
        slow, fast = [await RawClient.to(faulty.broker, transport) for _ in range(2)]
        await slow.send(HeartbeatRequest(group_id="g"), HEARTBEAT)
        await fault.hits.wait(1)
        assert (await fast.ask(HeartbeatRequest(group_id="g"), HEARTBEAT)) is not None
        assert await nothing_from(slow)
        fault.remove()
        assert (await slow.receive()).error_code != 0


@pytest.mark.parametrize("after_work", [False, True])
async def test_a_moved_clock_ends_a_delay(tmp_path: Path, transport: Transport, after_work: bool) -> None:
    clock = MovableClock()
    async with serving(tmp_path, transport, clock=clock) as faulty:
        fault = faulty.add({"delay_ms": 3_600_000, "jitter_ms": 1000, "after_work": after_work}, api="Produce")
        client = await RawClient.to(faulty.broker, transport)
        await client.send(produce(("orders", 0)), PRODUCE)
        await fault.hits.wait(1)
        assert end_of(faulty, "orders") == int(after_work)
        await clock.advance(3_599_000 - 60_000, trio.testing.wait_all_tasks_blocked)
        assert await nothing_from(client)
        await clock.advance(62_000, trio.testing.wait_all_tasks_blocked)
        assert codes(await client.receive()) == {("orders", 0): 0}


async def test_a_fault_for_a_time_ends_on_the_brokers_clock(tmp_path: Path, transport: Transport) -> None:
    clock = MovableClock()
    async with serving(tmp_path, transport, clock=clock) as faulty:
        fault = faulty.add({"error": BUSY.name}, {"for_ms": 60_000}, api="Produce")
        client = await RawClient.to(faulty.broker, transport)
        assert codes(await client.ask(produce(("orders", 0)), PRODUCE)) == {("orders", 0): BUSY}
        await clock.advance(60_000, trio.testing.wait_all_tasks_blocked)
        assert codes(await client.ask(produce(("orders", 0)), PRODUCE)) == {("orders", 0): 0}
        assert fault.is_over


async def test_a_hold_ends_with_its_release(tmp_path: Path, transport: Transport) -> None:
    async with serving(tmp_path, transport) as faulty:
        fault = faulty.add({"hold": True}, api="Produce", topic="orders")
        clients = [await RawClient.to(faulty.broker, transport) for _ in range(3)]
        for client in clients[:2]:
            await client.send(produce(("orders", 0)), PRODUCE)
        await fault.hits.wait(2)
        assert codes(await clients[2].ask(produce(("others", 0)), PRODUCE)) == {("others", 0): 0}
        assert end_of(faulty, "orders") == 0
        assert fault.release(again=True) == 2
        assert [codes(await client.receive()) for client in clients[:2]] == [{("orders", 0): 0}] * 2
        await clients[0].send(produce(("orders", 0)), PRODUCE)
        await fault.hits.wait(3)
        assert fault.release(again=False) == 1
        assert codes(await clients[0].receive()) == {("orders", 0): 0}
        assert codes(await clients[0].ask(produce(("orders", 0)), PRODUCE)) == {("orders", 0): 0}
        assert fault.hits.count == 3


async def test_an_error_has_nothing_to_release(tmp_path: Path, transport: Transport) -> None:
    async with serving(tmp_path, transport) as faulty:
        fault = faulty.add({"error": BUSY.name}, api="Produce")
        assert fault.release(again=False) == 0
        client = await RawClient.to(faulty.broker, transport)
        assert codes(await client.ask(produce(("orders", 0)), PRODUCE)) == {("orders", 0): BUSY}


async def test_a_black_hole_for_a_time(tmp_path: Path, transport: Transport) -> None:
    clock = MovableClock()
    async with serving(tmp_path, transport, clock=clock) as faulty:
        fault = faulty.add({"blackhole": True}, {"for_ms": 60_000}, client_id="doomed")
        client, again = [await RawClient.to(faulty.broker, transport, "doomed") for _ in range(2)]
        await client.send(ListGroupsRequest(), LIST_GROUPS)
        await fault.hits.wait(1)
        await clock.advance(60_000, trio.testing.wait_all_tasks_blocked)
        assert (await again.ask(ListGroupsRequest(), LIST_GROUPS)).error_code == 0
        assert await nothing_from(client)


async def test_a_held_request_keeps_its_place_on_the_connection(tmp_path: Path, transport: Transport) -> None:
    async with serving(tmp_path, transport) as faulty:
        fault = faulty.add({"hold": True, "after_work": True}, {"nth": 2}, api="Produce")
        client = await RawClient.to(faulty.broker, transport)
        for _ in range(3):
            await client.send(produce(("orders", 0)), PRODUCE)
        await client.send(ListGroupsRequest(), LIST_GROUPS)
        await fault.hits.wait(1)
        assert codes(await client.receive()) == {("orders", 0): 0}
        assert await nothing_from(client)
        assert end_of(faulty, "orders") == 2
        fault.release(again=False)
        assert [codes(await client.receive()) for _ in range(2)] == [{("orders", 0): 0}] * 2
        assert (await client.receive()).error_code == 0


@pytest.mark.parametrize("reading", [True, False])
async def test_a_request_without_any_response_silences_its_connection(
    tmp_path: Path, transport: Transport, reading: bool
) -> None:
    async with serving(tmp_path, transport) as faulty:
        fault = faulty.add({"never_answer": True, "reading": reading}, {"once": True}, api="Heartbeat")
        silenced, other = [await RawClient.to(faulty.broker, transport) for _ in range(2)]
        await silenced.send(HeartbeatRequest(group_id="g"), HEARTBEAT)
        await fault.hits.wait(1)
        await silenced.send(produce(("orders", 0)), PRODUCE)
        assert (await other.ask(HeartbeatRequest(group_id="g"), HEARTBEAT)) is not None
        assert await nothing_from(silenced)
        assert end_of(faulty, "orders") == 0
        received = [entry for entry in faulty.log if entry.header.api_key == 0]
        assert len(received) == int(reading)
        fault.remove()
        assert await silenced.receive() is None
        again = await RawClient.to(faulty.broker, transport)
        assert (await again.ask(HeartbeatRequest(group_id="g"), HEARTBEAT)) is not None


async def test_a_response_that_is_lost_after_the_work(tmp_path: Path, transport: Transport) -> None:
    async with serving(tmp_path, transport) as faulty:
        fault = faulty.add({"never_answer": True, "after_work": True}, {"once": True}, api="Produce")
        client, again = [await RawClient.to(faulty.broker, transport) for _ in range(2)]
        await client.send(produce(("orders", 0)), PRODUCE)
        await fault.hits.wait(1)
        assert await nothing_from(client)
        assert end_of(faulty, "orders") == 1
        assert codes(await again.ask(produce(("orders", 0)), PRODUCE)) == {("orders", 0): 0}
        assert end_of(faulty, "orders") == 2


async def test_a_black_hole_takes_every_connection_of_its_client(tmp_path: Path, transport: Transport) -> None:
    async with serving(tmp_path, transport) as faulty:
        fault = faulty.add({"blackhole": True}, {"once": True}, api="Produce", client_id="doomed-*")
        clients = [await RawClient.to(faulty.broker, transport, f"doomed-{number}") for number in (1, 1, 2)]
        await clients[0].send(produce(("orders", 0)), PRODUCE)
        await fault.hits.wait(1)
        await clients[1].send(ListGroupsRequest(), LIST_GROUPS)
        await fault.hits.wait(2)
        assert await nothing_from(clients[0])
        assert await nothing_from(clients[1])
        assert (await clients[2].ask(ListGroupsRequest(), LIST_GROUPS)).error_code == 0
        assert end_of(faulty, "orders") == 0
        fault.remove()
        assert [await client.receive() for client in clients[:2]] == [None, None]
        again = await RawClient.to(faulty.broker, transport, "doomed-1")
        assert codes(await again.ask(produce(("orders", 0)), PRODUCE)) == {("orders", 0): 0}


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("how", ["disconnect", "reset"])
async def test_a_disconnect(tmp_path: Path, transport: Transport, how: str, side: str) -> None:
    async with serving(tmp_path, transport) as faulty:
        fault = faulty.add({how: side}, api="Produce", topic="orders")
        client, other = [await RawClient.to(faulty.broker, transport) for _ in range(2)]
        assert (await client.ask(ListGroupsRequest(), LIST_GROUPS)).error_code == 0
        await client.send(produce(("orders", 0)), PRODUCE)
        if how == "reset" and isinstance(transport, SocketTransport):
            with pytest.raises(OSError) as raised:
                await client.client.stream.receive_into(memoryview(bytearray(10)))
            assert raised.value.errno == errno.ECONNRESET
        else:
            assert await client.client.stream.receive_into(memoryview(bytearray(10))) == 0
        assert end_of(faulty, "orders") == int(side == "after")
        assert fault.hits.count == 1
        assert codes(await other.ask(produce(("others", 0)), PRODUCE)) == {("others", 0): 0}


@pytest.mark.parametrize("size", [0, 3, 20, 100_000])
async def test_a_truncated_response(tmp_path: Path, transport: Transport, size: int) -> None:
    async with serving(tmp_path, transport) as faulty:
        faulty.add({"truncate_bytes": size}, api="Metadata")
        client, other = [await RawClient.to(faulty.broker, transport) for _ in range(2)]
        await client.send(MetadataRequest(topics=None), METADATA)
        received, scratch = b"", bytearray(100_000)
        while count := await client.client.stream.receive_into(memoryview(scratch)):
            received += scratch[:count]
        if size < 100_000:
            assert len(received) == size
        else:
            assert int.from_bytes(received[:4], "big") == len(received) - 4
        assert (await other.ask(ListGroupsRequest(), LIST_GROUPS)).error_code == 0


async def test_a_response_in_pieces_arrives_whole_and_in_order(tmp_path: Path, transport: Transport) -> None:
    async with serving(tmp_path, transport) as faulty:
        fault = faulty.add({"slice_bytes": 7, "every_ms": 0}, api="Fetch")
        client = await RawClient.to(faulty.broker, transport)
        for _ in range(50):
            await client.ask(produce(("orders", 0)), PRODUCE)
        await client.send(fetch(("orders", 0), session_epoch=-1), FETCH)
        await client.send(ListGroupsRequest(), LIST_GROUPS)
        response = await client.receive()
        records = response.responses[0].partitions[0].records
        assert [header.base_offset for _, header in iter_batches(records)] == list(range(50))
        assert (await client.receive()).error_code == 0
        assert fault.hits.count == 1


async def test_a_corrupt_batch_of_the_named_partition_only(tmp_path: Path, transport: Transport) -> None:
    async with serving(tmp_path, transport) as faulty:
        fault = faulty.add({"corrupt_batch": "crc"}, {"times": 1}, api="Fetch", topic="orders")
        client = await RawClient.to(faulty.broker, transport)
        both = [("orders", 0), ("others", 0)]
        assert codes(await client.ask(fetch(*both), FETCH)) == dict.fromkeys(both, 0)
        assert fault.hits.count == 0  # there was no batch to damage yet
        await client.ask(produce(*both), PRODUCE)
        damaged = await client.ask(fetch(*both, session_epoch=-1), FETCH)
        assert {topic.topic: is_sound(topic.partitions[0].records) for topic in damaged.responses} == {
            "orders": False,
            "others": True,
        }
        again = await client.ask(fetch(*both, session_epoch=-1), FETCH)
        assert all(is_sound(topic.partitions[0].records) for topic in again.responses)
        assert (fault.hits.count, fault.is_over) == (1, True)


def is_sound(records: memoryview) -> bool:
    try:
        for position, header in iter_batches(records):
            verify_crc(records, position, header)
    except Exception:
        return False
    return True


async def test_throttle_time_in_the_versions_that_have_it(tmp_path: Path, transport: Transport) -> None:
    async with serving(tmp_path, transport) as faulty:
        fault = faulty.add({"throttle_ms": 500}, api="Produce")
        client = await RawClient.to(faulty.broker, transport)
        assert (await client.ask(produce(("orders", 0)), PRODUCE)).throttle_time_ms == 500
        await client.ask(HeartbeatRequest(group_id="g"), HEARTBEAT)
        assert fault.hits.count == 1
        faulty.add({"throttle_ms": 9}, api="ListOffsets")
        assert (await client.ask(ListOffsetsRequest(), 1)).throttle_time_ms == 0
        assert (await client.ask(ListOffsetsRequest(), 2)).throttle_time_ms == 9


async def test_an_observer_counts_and_changes_nothing(tmp_path: Path, transport: Transport) -> None:
    async with serving(tmp_path, transport) as faulty:
        fault = faulty.add({"observe": True}, api="Produce", topic="orders", when={"acks": 1})
        client = await RawClient.to(faulty.broker, transport)
        assert codes(await client.ask(produce(("orders", 0)), PRODUCE)) == {("orders", 0): 0}
        assert codes(await client.ask(produce(("others", 0)), PRODUCE)) == {("others", 0): 0}
        assert codes(await client.ask(produce(("orders", 0), acks=-1), PRODUCE)) == {("orders", 0): 0}
        assert fault.hits.count == 1


async def test_faults_act_in_the_order_in_which_they_were_added(tmp_path: Path, transport: Transport) -> None:
    async with serving(tmp_path, transport) as faulty:
        first = faulty.add({"delay_ms": 0}, api="Produce")
        second = faulty.add({"error": BUSY.name}, api="Produce", partition=0)
        third = faulty.add({"throttle_ms": 7}, api="Produce")
        last = faulty.add({"disconnect": "before"}, api="Produce", topic="others")
        hidden = faulty.add({"observe": True}, api="Produce")
        client = await RawClient.to(faulty.broker, transport)
        response = await client.ask(produce(("orders", 0)), PRODUCE)
        assert codes(response) == {("orders", 0): BUSY}
        assert response.throttle_time_ms == 7
        assert await client.ask(produce(("others", 0)), PRODUCE) is None
        counts = [fault.hits.count for fault in (first, second, third, last, hidden)]
        assert counts == [2, 1, 1, 1, 1]  # the second request ended at `last`, before its error was sent


async def test_an_api_version_that_is_not_served_can_be_matched(tmp_path: Path, transport: Transport) -> None:
    """A client of a later Kafka asks for versions first, in a version of its own (KIP-511)."""
    async with serving(tmp_path, transport) as faulty:
        fault = faulty.add({"observe": True}, api="ApiVersions")
        client = await RawClient.to(faulty.broker, transport)
        await client.client.send(b"\x00\x12\x00\x63\x00\x00\x00\x01\x00\x00\x00\xff\xfe")
        frame = await client.client.receive()
        assert frame is not None
        assert frame[4:6] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
        assert fault.hits.count == 1
        client.sent.append((18, 0))  # type: ignore[arg-type]
        client.received = 1
        assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0


async def test_a_fault_does_not_outlive_the_end_of_its_broker(tmp_path: Path, transport: Transport) -> None:
    async with serving(tmp_path, transport) as faulty:
        fault = faulty.add({"hold": True}, api="Produce")
        client = await RawClient.to(faulty.broker, transport)
        await client.send(produce(("orders", 0)), PRODUCE)
        await fault.hits.wait(1)
    assert fault.described()["holds"] == 0
    entry = next(entry for entry in faulty.log if entry.header.api_key == 0)
    assert entry.outcome.startswith("connection ended")
