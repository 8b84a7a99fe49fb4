"""What is asked of a broker with ten thousand of something: one connection, and many requests before their responses.

Kafka 3.9.1 and kpybroker get the same bytes. What fails ends the run: every response is looked at.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from compat_tests.bench.measuring.brokers import Measured
from compat_tests.overload.raw import Raw, api_key, frame_of
from compat_tests.support.waiting import eventually
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.create_topics import CreateTopicsRequest
from kpybroker.wire.messages.delete_topics import DeleteTopicsRequest
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.metadata import MetadataRequest

IN_FLIGHT = 50
DEADLINE_S = 600.0
PARTITIONS_EACH = 100
NOT_YET = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
GROUP, TRANSACTION = 0, 1


def connection(broker: Measured) -> Raw:
    return Raw(("127.0.0.1", broker.port), DEADLINE_S)


def ask_all(raw: Raw, requests: Iterable[Any], version: int) -> Iterator[Any]:
    """The responses, in order; `IN_FLIGHT` requests are sent before the first is read."""
    pending = iter(requests)
    while chunk := list(islice(pending, IN_FLIGHT)):
        raw.send(b"".join(frame_of(request, version) for request in chunk))
        for request in chunk:
            yield raw.response(api_key(request), version)


def expect(code: int, what: str) -> None:
    assert code == ErrorCode.NONE, f"{what}: {ErrorCode(code).name}"


def topic_names(partitions: int) -> list[tuple[str, int]]:
    """Names and numbers of partitions of as many topics as are needed."""
    names = []
    for number in range(0, partitions, PARTITIONS_EACH):
        names.append((f"many-{number // PARTITIONS_EACH:04}", min(PARTITIONS_EACH, partitions - number)))
    return names


def create(raw: Raw, topics: Sequence[tuple[str, int]], replicas: int = 1) -> None:
    """A request for each topic."""
    requests = (
        CreateTopicsRequest(
            topics=[CreateTopicsRequest.CreatableTopic(name=name, num_partitions=count, replication_factor=replicas)],
            timeout_ms=int(DEADLINE_S * 1000),
        )
        for name, count in topics
    )
    for response in ask_all(raw, requests, 5):
        expect(response.topics[0].error_code, response.topics[0].name)


def delete(raw: Raw, names: Sequence[str]) -> None:
    requests = (DeleteTopicsRequest(topic_names=[name], timeout_ms=int(DEADLINE_S * 1000)) for name in names)
    for response in ask_all(raw, requests, 5):
        expect(response.responses[0].error_code, response.responses[0].name or "")


def metadata(raw: Raw, *names: str) -> Any:
    """Of these topics, or of all."""
    topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names] or None
    return raw.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 9)


def led(raw: Raw, *names: str) -> int:
    """How many partitions of these topics, or of all, have a leader that lives."""
    found = metadata(raw, *names)
    alive = {broker.node_id for broker in found.brokers}
    return sum(one.leader_id in alive for topic in found.topics for one in topic.partitions)


def wait_until_led(broker: Measured, partitions: int) -> None:
    """By what the broker says to its clients."""
    with connection(broker) as raw:
        eventually(lambda: led(raw) >= partitions, f"{partitions} partitions have leaders", DEADLINE_S)


def wait_for_coordinator(raw: Raw, key: str, kind: int) -> None:
    request = FindCoordinatorRequest(key=key, key_type=kind)
    eventually(lambda: raw.ask(request, 2).error_code == ErrorCode.NONE, f"a coordinator of {key}", DEADLINE_S)


def seconds_of(work: Any, *arguments: Any) -> float:
    begin = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - begin
