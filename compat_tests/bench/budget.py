"""Where the microseconds of one Produce and one Fetch go, stage by stage, in CPU time of this process.

    python -m compat_tests.bench.budget [--responses] [--profile NAME]

A broker runs in this process on a temporary directory. Each stage is the very function that the broker calls, called
many times with what a client sent; the least of several rounds counts, so that a busy machine matters little. An
indented stage is part of the one above it. The socket's share is one receive and one send on a loopback connection; the
wait between them is a stage of its own. With `--responses` only the responses to whole requests are measured, and their
mean: what a change adds to the request path. With `--profile` the responses to one request are profiled instead.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import socket
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any

import trio

from compat_tests.bench.load.raw_producer import request_frame
from kpybroker.broker.app import Broker
from kpybroker.broker.handlers.records import fetch, produce
from kpybroker.broker.loop.steps import run_steps
from kpybroker.broker.network.response import Response
from kpybroker.broker.network.transport import SocketStream
from kpybroker.broker.requests.context import PlainConnectionInfo, RequestContext
from kpybroker.config.broker import BrokerConfig
from kpybroker.storage.log.append import ProducedBatches
from kpybroker.storage.segments.file_records import FileRecords
from kpybroker.storage.segments.segment_files import SegmentFiles
from kpybroker.wire import fast_produce
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import decode, decode_from, encode, encode_parts
from kpybroker.wire.compression import Codec
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.headers import RequestHeader, encode_request_header, parse_request_header
from kpybroker.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kpybroker.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from kpybroker.wire.messages.fetch import FetchRequest, FetchResponse
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kpybroker.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kpybroker.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kpybroker.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kpybroker.wire.records.batch import computed_crc, parse_header
from kpybroker.wire.records.builder import BatchFields, build_batch
from kpybroker.wire.records.validate import validate_fast

TOPIC = "budget"
GROUP_VERSION, SYNC_VERSION, HEARTBEAT_VERSION = 5, 3, 3
PRODUCE_VERSION, WITH_TOPIC_IDS, FETCH_VERSION = 7, 13, 12
ADD_VERSION, END_VERSION = 2, 2
ROUNDS, CALLS = 12, 2_000

Stage = tuple[str, float]
Call = Callable[[], Any]


def microseconds(call: Call) -> float:
    """The least time of one call over the rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.thread_time()
        for _ in range(CALLS):
            call()
        best = min(best, time.thread_time() - begin)
    return best / CALLS * 1e6


async def microseconds_async(call: Callable[[], Awaitable[Any]], calls: int = CALLS) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.thread_time()
        for _ in range(calls):
            await call()
        best = min(best, time.thread_time() - begin)
    return best / calls * 1e6


def produce_frame(batch: bytes, version: int = PRODUCE_VERSION, topic_id: bytes = ZERO_UUID) -> bytearray:
    data = ProduceRequest.PartitionProduceData(index=0, records=memoryview(batch))
    topic = ProduceRequest.TopicProduceData(name=TOPIC, topic_id=topic_id, partition_data=[data])
    return _frame(ApiKey.PRODUCE, version, ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[topic]))


def fetch_frame(offset: int) -> bytearray:
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topic = FetchRequest.FetchTopic(topic=TOPIC, partitions=[partition])
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, session_epoch=-1, topics=[topic])
    return _frame(ApiKey.FETCH, FETCH_VERSION, request)


def _frame(key: ApiKey, version: int, request: Any) -> bytearray:
    header = RequestHeader(key, version, 1, "budget")
    return bytearray(encode_request_header(header) + encode(request, version))


def one_record() -> bytes:
    return bytes(build_batch([(None, b"x" * 100, int(time.time() * 1000))]))


def sixteen_kilobytes() -> bytes:
    now_ms = int(time.time() * 1000)
    return bytes(build_batch([(None, b"x" * 100, now_ms) for _ in range(150)]))


def compressed() -> bytes:
    """600 records of 100 bytes that compress to about a third."""
    now_ms = int(time.time() * 1000)
    values = [b"".join(b"%08x" % (n * 2654435761 % 2**32) for n in range(k, k + 4)) + b"y" * 68 for k in range(600)]
    return bytes(build_batch([(None, value, now_ms) for value in values], BatchFields(codec=Codec.LZ4)))


class ProduceCalls:
    """One Produce request, as each stage gets it; a client sends base offset 0, and the append stamps its own."""

    def __init__(self, broker: Broker, batch: bytes, version: int = PRODUCE_VERSION) -> None:
        self.broker = broker
        self.version = version
        self.frame = memoryview(produce_frame(batch, version, broker.metadata.topic_id(TOPIC)))
        self.connection = PlainConnectionInfo()
        self.header = parse_request_header(self.frame)
        request = self.read()
        assert request is not None
        self.request, self.records = request, request[-1]
        self.partition = broker.replicas.hosted(TOPIC, 0)
        self.log = self.partition.leader_log()
        self.pristine = bytes(self.records)
        self.now_ms = broker.clock.time_ms()

    def reset(self) -> None:
        self.records[:12] = self.pristine[:12]

    def read(self) -> fast_produce.FastProduce | None:
        return fast_produce.read(self.frame, self.header.body_offset, self.version)

    def respond(self) -> None:
        self.reset()
        response = self.broker.dispatcher.respond_now(self.frame, self.connection)
        assert isinstance(response, Response)

    def handle(self) -> None:
        self.reset()
        response = produce.handle_fast(self.broker, self.frame, self.header, self.connection)
        assert isinstance(response, bytes)

    def encode(self) -> bytes:
        return fast_produce.encode_response(self.version, 1, self.request, 7, -1, 0)

    def append(self) -> None:
        self.reset()
        self.partition.append(ProducedBatches(self.records, self.now_ms, request_version=self.version), 1)

    def append_to_log(self) -> None:
        self.reset()
        self.log.append_as_leader(ProducedBatches(self.records, self.now_ms, request_version=self.version), 0)

    def validate(self) -> None:
        self.reset()
        assert validate_fast(self.records, self.log.rules, 7, 0, self.version) is not None


async def produce_stages(broker: Broker, batch: bytes) -> list[Stage]:
    calls = ProduceCalls(broker, batch)
    batch_header = parse_header(calls.pristine)
    scratch = FileRecords(SegmentFiles(broker.files, calls.log.directory, 0, ".scratch"))
    resetting = microseconds(calls.reset)
    stages = [
        ("wait: one turn of the loop", await turn()),
        ("socket: receive and send", await socket_share(len(calls.frame) + 4, 60)),
        ("respond", microseconds(calls.respond) - resetting),
        ("  header", microseconds(lambda: parse_request_header(calls.frame))),
        ("  handler", microseconds(calls.handle) - resetting),
        ("    read", microseconds(calls.read)),
        ("    partition", microseconds(calls.append) - resetting),
        ("      log", microseconds(calls.append_to_log) - resetting),
        ("        validate and stamp", microseconds(calls.validate) - resetting),
        ("          CRC-32C", microseconds(lambda: computed_crc(calls.records, 0, batch_header))),
        ("        write to the page cache", microseconds(lambda: scratch.append(calls.records))),
        ("    write the response", microseconds(calls.encode)),
    ]
    scratch.close()
    calls.respond()  # which moves the high watermark, as the bare appends did not
    return stages


async def fetch_stages(broker: Broker) -> list[Stage]:
    partition = broker.replicas.hosted(TOPIC, 0)
    log = partition.leader_log()
    frame = fetch_frame(log.log_end_offset - 1)
    connection = PlainConnectionInfo()
    header = parse_request_header(frame)
    request: FetchRequest
    request, _ = decode_from(FetchRequest, memoryview(frame), header.body_offset, FETCH_VERSION)

    def context() -> RequestContext:
        return RequestContext(connection, broker.authorizer, ApiKey.FETCH, FETCH_VERSION)

    def sent(spoken: RequestContext) -> None:
        for callback in spoken.on_sent or ():
            callback()

    def respond() -> None:
        outcome = broker.dispatcher.respond_now(memoryview(frame), connection)
        assert isinstance(outcome, Response)
        outcome.sent()

    def handle() -> None:
        spoken = context()
        run_steps(fetch.handle(broker, request, spoken))
        sent(spoken)

    def read() -> None:
        found = log.read(log.log_end_offset - 1, 1 << 20, max_offset=log.high_watermark, min_one_message=True)
        assert found.slice is not None
        found.slice.release()

    spoken = context()
    response = run_steps(fetch.handle(broker, request, spoken))
    assert isinstance(response, FetchResponse)
    sent(spoken)
    return [
        ("wait: one turn of the loop", await turn()),
        ("socket: receive and send", await socket_share(len(frame) + 4, 250)),
        ("respond", microseconds(respond)),
        ("  header", microseconds(lambda: parse_request_header(frame))),
        (
            "  decode",
            microseconds(lambda: decode_from(FetchRequest, memoryview(frame), header.body_offset, FETCH_VERSION)),
        ),
        ("  handler", microseconds(handle)),
        ("    log read", microseconds(read)),
        ("  encode", microseconds(lambda: encode_parts(response, FETCH_VERSION))),
    ]


async def socket_share(request_bytes: int, response_bytes: int) -> float:
    """One `receive_into` and one `send_parts`; the peer's own calls are not counted."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        peer = socket.create_connection(listener.getsockname())
        ours, _ = listener.accept()
    stream = SocketStream(ours)
    scratch = memoryview(bytearray(256 * 1024))
    request, response = bytes(request_bytes), [bytes(response_bytes)]
    into = bytearray(256 * 1024)

    spent = float("inf")
    try:
        for _ in range(ROUNDS):
            total = 0.0
            for _ in range(CALLS):
                peer.send(request)
                begin = time.thread_time()
                await stream.receive_into(scratch)
                await stream.send_parts(response)
                total += time.thread_time() - begin
                peer.recv_into(into)
            spent = min(spent, total)
        return spent / CALLS * 1e6 - microseconds(time.thread_time)
    finally:
        stream.close()
        peer.close()


async def turn() -> float:
    """What it costs to wait for the next request when it is the only one: register, poll, wake."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        peer = socket.create_connection(listener.getsockname())
        ours, _ = listener.accept()
    peer.send(b"x")  # and never received: the socket stays readable

    async def wait() -> None:
        await trio.lowlevel.wait_readable(ours)

    try:
        return await microseconds_async(wait)
    finally:
        ours.close()
        peer.close()


class GroupCalls:
    """Heartbeat and JoinGroup of the only member of a group."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.connection = PlainConnectionInfo()
        self.member_id, self.generation = "", 0

    async def find(self) -> None:
        request = FindCoordinatorRequest(key=TOPIC, key_type=0)
        await self._ask(ApiKey.FIND_COORDINATOR, 2, request, FindCoordinatorResponse)

    async def join(self) -> None:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=bytes(40))
        request = JoinGroupRequest(
            group_id=TOPIC,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=300_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[protocol],
        )
        response = await self._ask(ApiKey.JOIN_GROUP, GROUP_VERSION, request, JoinGroupResponse)
        self.member_id, self.generation = response.member_id, response.generation_id

    async def sync(self) -> None:
        assignment = SyncGroupRequest.SyncGroupRequestAssignment(member_id=self.member_id, assignment=bytes(40))
        request = SyncGroupRequest(
            group_id=TOPIC, generation_id=self.generation, member_id=self.member_id, assignments=[assignment]
        )
        await self._ask(ApiKey.SYNC_GROUP, SYNC_VERSION, request, SyncGroupResponse)

    async def heartbeat(self) -> HeartbeatResponse:
        request = HeartbeatRequest(group_id=TOPIC, generation_id=self.generation, member_id=self.member_id)
        response: HeartbeatResponse = await self._ask(ApiKey.HEARTBEAT, HEARTBEAT_VERSION, request, HeartbeatResponse)
        return response

    async def _ask(self, key: ApiKey, version: int, request: Any, response_class: Any) -> Any:
        received = await self.broker.dispatcher.respond(_frame(key, version, request), self.connection)
        response = decode(response_class, received.read()[8:], version)
        return response


async def group_stages(broker: Broker) -> list[Stage]:
    """The client's share, making the request and reading the response, is included."""
    calls = GroupCalls(broker)
    await calls.find()
    while calls.generation < 1:  # until the coordinator is there, and has given an id
        await calls.join()
        await trio.sleep(0.01)
    await calls.sync()
    assert (await calls.heartbeat()).error_code == 0
    heartbeat = await microseconds_async(calls.heartbeat)
    return [("response to Heartbeat", heartbeat), ("response to JoinGroup", await microseconds_async(calls.join))]


class TransactionCalls:
    """Transactions of one producer in one partition, nothing written: AddPartitionsToTxn, then EndTxn."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.connection = PlainConnectionInfo()
        self.producer_id, self.producer_epoch = -1, -1

    async def find(self) -> None:
        request = FindCoordinatorRequest(key=TOPIC, key_type=1)
        await self._ask(ApiKey.FIND_COORDINATOR, 2, request, FindCoordinatorResponse)

    async def begin(self) -> None:
        request = InitProducerIdRequest(transactional_id=TOPIC, transaction_timeout_ms=60_000)
        response = await self._ask(ApiKey.INIT_PRODUCER_ID, 1, request, InitProducerIdResponse)
        self.producer_id, self.producer_epoch = response.producer_id, response.producer_epoch

    async def add(self) -> ErrorCode:
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=TOPIC,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=[topic],
        )
        response = await self._ask(ApiKey.ADD_PARTITIONS_TO_TXN, ADD_VERSION, request, AddPartitionsToTxnResponse)
        return ErrorCode(response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

    async def transaction(self) -> None:
        """From its first request until the next one can begin: two records of the coordinator, and the marker."""
        while await self.add() is ErrorCode.CONCURRENT_TRANSACTIONS:
            await trio.lowlevel.checkpoint()
        request = EndTxnRequest(
            transactional_id=TOPIC,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=True,
        )
        response = await self._ask(ApiKey.END_TXN, END_VERSION, request, EndTxnResponse)
        assert response.error_code == 0

    async def _ask(self, key: ApiKey, version: int, request: Any, response_class: Any) -> Any:
        received = await self.broker.dispatcher.respond(_frame(key, version, request), self.connection)
        return decode(response_class, received.read()[8:], version)


async def transaction_stages(broker: Broker) -> list[Stage]:
    """The client's share is included, as of groups."""
    calls = TransactionCalls(broker)
    await calls.find()
    while calls.producer_id < 0:  # until the coordinator is there
        await calls.begin()
        await trio.sleep(0.01)
    await calls.transaction()
    return [("transaction: AddPartitionsToTxn, EndTxn", await microseconds_async(calls.transaction, 250))]


def table(title: str, stages: list[Stage]) -> str:
    lines = [f"{title:40} µs"]
    lines += [f"{name:38} {value:6.1f}" for name, value in stages]
    return "\n".join(lines)


async def profile(broker: Broker, name: str) -> None:
    frame = fetch_frame(0) if name == "fetch" else produce_frame(one_record())
    connection = PlainConnectionInfo()
    profiler = cProfile.Profile()
    for enabled in (False, True):
        if enabled:
            profiler.enable()
        for _ in range(CALLS * 5):
            response = await broker.dispatcher.respond(bytearray(frame), connection)
            response.sent()
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(35)


async def responses(broker: Broker) -> list[Stage]:
    """Whole requests only, and their mean; then a transaction."""
    stages: list[Stage] = []
    for name, batch, version in (
        ("Produce, one record", one_record(), PRODUCE_VERSION),
        ("Produce 13, one record", one_record(), WITH_TOPIC_IDS),
        ("Produce, 16 KB", sixteen_kilobytes(), PRODUCE_VERSION),
        ("Produce, compressed", compressed(), PRODUCE_VERSION),
    ):
        calls = ProduceCalls(broker, batch, version)
        stages.append((name, microseconds(calls.respond) - microseconds(calls.reset)))
    stages += [("Fetch", one) for name, one in await fetch_stages(broker) if name == "respond"]
    stages += await group_stages(broker)
    mean = ("mean of these", sum(spent for _, spent in stages) / len(stages))
    return [*stages, mean, *await transaction_stages(broker)]


async def measure(directory: str, profiled: str | None, responses_only: bool) -> None:
    props = {
        "broker.id": "0",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": directory,
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    async with Broker.open(BrokerConfig(props)) as broker:
        await broker.topics.auto_create([TOPIC])
        await broker.dispatcher.respond(bytearray(request_frame(TOPIC)[4:]), PlainConnectionInfo())
        if profiled is not None:
            await profile(broker, profiled)
            return
        if responses_only:
            print(table("Responses", await responses(broker)))
            return
        print(table("Produce, one 100-byte record", await produce_stages(broker, one_record())))
        print(table("Produce, a batch of 16 KB", await produce_stages(broker, sixteen_kilobytes())))
        print(table("Produce, a compressed batch", await produce_stages(broker, compressed())))
        print(table("Fetch, one small batch", await fetch_stages(broker)))
        print(table("Groups", await group_stages(broker)))
        print(table("Transactions", await transaction_stages(broker)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--responses", action="store_true")
    parser.add_argument("--profile", choices=("produce", "fetch"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kpybroker-budget-") as directory:
        trio.run(measure, directory, options.profile, options.responses)


if __name__ == "__main__":
    main()
