"""The log of requests: what an entry says, how much is kept, and what became of each request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.network.response import Response
from kpybroker.broker.requests.context import PlainConnectionInfo
from kpybroker.control.levers.movable_clock import MovableClock
from kpybroker.control.requests.request_log import FRAME_BYTES_MAX, HEAD_BYTES, Entry, RequestLog
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.headers import RequestHeader, encode_request_header, parse_request_header
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.heartbeat import HeartbeatRequest
from kpybroker.wire.messages.produce import ProduceRequest
from tests.support.brokers.faulty_broker import Faulty, faulty_broker
from tests.support.brokers.running_broker import ask, create_topic
from tests.support.storage.batches import batch


def produce(*values: bytes, acks: int = 1) -> ProduceRequest:
    data = ProduceRequest.PartitionProduceData(index=0, records=batch(*values))
    return ProduceRequest(acks=acks, topic_data=[ProduceRequest.TopicProduceData(name="orders", partition_data=[data])])


def last(faulty: Faulty) -> dict[str, Any]:
    """The newest entry as JSON, through JSON."""
    entry: dict[str, Any] = json.loads(json.dumps(list(faulty.log)[-1].as_json()))
    return entry


async def test_an_entry_says_who_asked_what_and_what_the_response_was(tmp_path: Path) -> None:
    clock = MovableClock()
    async with faulty_broker(tmp_path, clock=clock) as faulty:
        await create_topic(faulty.broker, "orders")
        fault = faulty.add({"error": "INVALID_RECORD"}, {"once": True}, api="Produce")
        await ask(faulty.broker, produce(b"hello", b"\xff\xfe"), 9, client_id="me")
        entry = last(faulty)
        expected = {
            "broker": 0,
            "api": "Produce",
            "version": 9,
            "correlation_id": 7,
            "client_id": "me",
            "client_software_name": "unknown",
            "principal": "User:ANONYMOUS",
            "listener": "PLAINTEXT",
            "connection": "test",
            "outcome": "answered",
            "errors": ["INVALID_RECORD"],
            "faults": [fault.id],
            "is_cut": False,
        }
        assert {name: entry[name] for name in expected} == expected
        assert abs(entry["time_ms"] - clock.time_ms()) < 60_000
        assert entry["duration_ms"] > 0
        (topic,) = entry["request"]["topic_data"]
        (partition,) = topic["partition_data"]
        (found,) = partition["records"]["batches"]
        assert [one["value"] for one in found["records"]] == ["hello", {"base64": "//4="}]
        assert entry["response"]["responses"][0]["partition_responses"][0]["error_code"] == 87
        assert entry["size"] > partition["records"]["bytes"]
        await ask(faulty.broker, produce(b"hello"), 9)
        assert (last(faulty)["errors"], last(faulty)["faults"]) == ([], [])


async def test_records_in_files_are_not_read_for_the_log(tmp_path: Path) -> None:
    async with faulty_broker(tmp_path) as faulty:
        await create_topic(faulty.broker, "orders")
        await ask(faulty.broker, produce(b"hello"), 9)
        partition = FetchRequest.FetchPartition(partition=0, partition_max_bytes=9999)
        topic = FetchRequest.FetchTopic(topic="orders", partitions=[partition])
        await ask(faulty.broker, FetchRequest(max_bytes=9999, topics=[topic]), 12)
        entry = last(faulty)
        (found,) = entry["response"]["responses"][0]["partitions"]
        assert found["records"] == {"bytes": len(batch(b"hello"))}
        assert (found["high_watermark"], entry["errors"], entry["is_cut"]) == (1, [], False)


async def test_a_request_is_there_before_its_response(tmp_path: Path) -> None:
    async with faulty_broker(tmp_path) as faulty, trio.open_nursery() as nursery:
        fault = faulty.add({"hold": True}, api="Heartbeat")
        nursery.start_soon(ask, faulty.broker, HeartbeatRequest(group_id="g"), 4)
        await fault.hits.wait(1)
        entry = last(faulty)
        assert (entry["outcome"], entry["duration_ms"], entry["response"]) == ("pending", None, None)
        assert entry["faults"] == [fault.id]
        fault.release(again=False)
        await trio.testing.wait_all_tasks_blocked()
        assert last(faulty)["outcome"] == "answered"


async def test_a_request_without_a_response(tmp_path: Path) -> None:
    async with faulty_broker(tmp_path) as faulty:
        await create_topic(faulty.broker, "orders")
        await ask(faulty.broker, produce(b"hello", acks=0), 9)
        assert last(faulty)["outcome"] == "no response"


async def test_a_request_that_ended_its_connection(tmp_path: Path) -> None:
    async with faulty_broker(tmp_path) as faulty:
        header = encode_request_header(RequestHeader(ApiKey.HEARTBEAT, 4, 1, "me"))
        with pytest.raises(ProtocolError):
            await faulty.broker.dispatcher.respond(bytearray(header + b"\x09short"), PlainConnectionInfo())
        entry = last(faulty)
        assert entry["outcome"].startswith("connection ended: HeartbeatRequest v4")
        assert (entry["request"], entry["errors"]) == (None, [])
        with pytest.raises(ProtocolError):
            await faulty.broker.dispatcher.respond(bytearray(b"\x7f\xff\0\0\0\0\0\1\xff\xff"), PlainConnectionInfo())
        assert (last(faulty)["api"], last(faulty)["request"]) == (0x7FFF, None)


def added(log: RequestLog, size: int) -> Entry:
    frame = encode_request_header(RequestHeader(ApiKey.HEARTBEAT, 4, 1, "me"))
    frame += bytes(size - len(frame))
    return log.begin(0, bytearray(frame), parse_request_header(frame), PlainConnectionInfo(), 0)


def test_the_oldest_go_first_by_count() -> None:
    log = RequestLog(count_max=3)
    ids = [added(log, 50).id for _ in range(5)]
    assert [entry.id for entry in log] == ids[2:] == [3, 4, 5]
    assert log.last_id == 5
    assert log.dropped == 2
    log.clear()
    assert log.dropped == 0


def test_the_oldest_go_first_by_bytes_of_requests_and_responses() -> None:
    log = RequestLog(bytes_max=20_000)
    entries = [added(log, 1000) for _ in range(5)]
    log.end(entries[0], Response(bytes(9000)))
    log.end(entries[1], Response(bytes(5000)))
    assert len(log) == 5
    added(log, 1000)  # makes room for itself
    assert next(iter(log)).id == 2
    log.end(entries[0], Response(bytes(9000)))  # it is no longer in the log
    for _ in range(100):
        added(log, 1000)
    assert len(log) == 20_000 // 1400


def test_of_a_large_frame_the_beginning_is_kept() -> None:
    log = RequestLog()
    entry = added(log, FRAME_BYTES_MAX + 1)
    log.end(entry, Response(bytes(FRAME_BYTES_MAX + 1)))
    assert len(entry.frame) == HEAD_BYTES
    shown = entry.as_json()
    assert (shown["size"], shown["response_size"]) == (FRAME_BYTES_MAX + 1, FRAME_BYTES_MAX + 1)
    assert (shown["request"], shown["response"], shown["errors"], shown["is_cut"]) == (None, None, None, True)
    whole = added(log, FRAME_BYTES_MAX)
    assert len(whole.frame) == FRAME_BYTES_MAX


async def test_a_change_can_be_waited_for() -> None:
    log = RequestLog()
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(log.wait_change)
        await trio.testing.wait_all_tasks_blocked()
        added(log, 50)
    log.clear()
    assert len(log) == 0
    assert added(log, 50).id == 2
