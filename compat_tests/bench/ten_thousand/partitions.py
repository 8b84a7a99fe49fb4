"""Ten thousand partitions on one broker, and topics that are created and deleted one after the other."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any

from compat_tests.bench.measuring.costs import come_to_rest
from compat_tests.bench.ten_thousand import asked
from compat_tests.bench.ten_thousand.scene import (
    Bound,
    Figures,
    Place,
    Scene,
    descriptors,
    idle_share,
    resident_kb,
    stalls,
)
from compat_tests.support.services import Broker
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.records.builder import build_batch

IDLE_S = 20.0
ASKED = 11
UNFLUSHED_MB, QUICK_UNFLUSHED_MB = 1.0, 0.02
BATCH_BYTES = 16_000
PARTITIONS_A_REQUEST = 20
TOPICS = 1000

PARTITION_BOUNDS = (
    Bound("created, a second", "1/s"),
    Bound("memory of one", "KB", most=4.0),
    Bound("open files", ""),
    Bound("processor at rest", "% of a core", most=1.0),
    Bound("Metadata of all, median", "ms", most=50.0),
    Bound("loop held for it, longest", "ms", most=20.0),
    Bound("clean stop", "s"),
    Bound("start after a clean stop", "s", most=5.0),
    Bound("start after a kill, empty", "s", most=4.0),
    Bound("start after a kill, unflushed", "s", most=15.0),
)
TOPIC_BOUNDS = (
    Bound("created, a second", "1/s", least=100.0),
    Bound("deleted, a second", "1/s", least=100.0),
    Bound("loop held, longest", "ms"),
)


def scenes(quick: bool) -> list[Scene]:
    sizes = (20, 200) if quick else (100, 1000, 10_000)
    room_gb = 1.0 if quick else 13.0
    return [
        Scene("partitions", sizes, PARTITION_BOUNDS, partitions, room_gb=room_gb),
        Scene("topics", (50,) if quick else (100, TOPICS), TOPIC_BOUNDS, topics),
    ]


def partitions(place: Place) -> Figures:
    with place.broker() as broker:
        before_kb = resident_kb(broker)
        with asked.connection(broker) as raw:
            made_s = asked.seconds_of(asked.create, raw, asked.topic_names(place.size))
        asked.wait_until_led(broker, place.size)
        figures = {
            "created, a second": place.size / made_s,
            "memory of one": (resident_kb(broker) - before_kb) / place.size,
            "open files": descriptors(broker),
            "processor at rest": idle_share(broker, place.seconds(IDLE_S)),
        }
        figures |= _asked(broker)
        figures["clean stop"] = asked.seconds_of(broker.stop)
        figures["start after a clean stop"] = started_s(broker, place.size)
        come_to_rest([broker.service.pid])
        broker.kill()
        figures["start after a kill, empty"] = started_s(broker, place.size)
        _fill(broker, place)
        broker.kill()
        figures["start after a kill, unflushed"] = started_s(broker, place.size)
        return figures


def started_s(broker: Broker, partitions: int) -> float:
    """Until clients see a leader of each."""
    begin = time.perf_counter()
    broker.launch()
    asked.wait_until_led(broker, partitions)
    return time.perf_counter() - begin


def _asked(broker: Broker) -> dict[str, float]:
    stalls(broker)
    took = []
    with asked.connection(broker) as raw:
        for _ in range(ASKED):
            took.append(asked.seconds_of(asked.metadata, raw) * 1000)
    held = stalls(broker)
    figures = {"Metadata of all, median": statistics.median(took)}
    return figures if held is None else {**figures, "loop held for it, longest": held.longest_ms}


def _fill(broker: Broker, place: Place) -> None:
    """As much into each partition as the scene has; nothing is flushed."""
    rounds = max(1, int((QUICK_UNFLUSHED_MB if place.quick else UNFLUSHED_MB) * 1e6 / BATCH_BYTES))
    with asked.connection(broker) as raw:
        for response in asked.ask_all(raw, _produces(place.size, rounds), 7):
            for topic in response.responses:
                for one in topic.partition_responses:
                    asked.expect(one.error_code, f"{topic.name}-{one.index}")


def _produces(partitions: int, rounds: int) -> Iterator[Any]:
    batch = bytes(build_batch([(None, bytes(1000), int(time.time() * 1000))] * (BATCH_BYTES // 1000)))
    for _ in range(rounds):
        for name, count in asked.topic_names(partitions):
            for first in range(0, count, PARTITIONS_A_REQUEST):
                data = [
                    ProduceRequest.PartitionProduceData(index=index, records=batch)
                    for index in range(first, min(first + PARTITIONS_A_REQUEST, count))
                ]
                topic = ProduceRequest.TopicProduceData(name=name, partition_data=data)
                yield ProduceRequest(acks=1, timeout_ms=60_000, topic_data=[topic])


def topics(place: Place) -> Figures:
    """One request a topic, `IN_FLIGHT` of them before the first response."""
    names = [f"topic-{number}" for number in range(place.size)]
    with place.broker() as broker, asked.connection(broker) as raw:
        stalls(broker)
        made_s = asked.seconds_of(asked.create, raw, [(name, 1) for name in names])
        gone_s = asked.seconds_of(asked.delete, raw, names)
        held = stalls(broker)
        figures = {"created, a second": place.size / made_s, "deleted, a second": place.size / gone_s}
        return figures if held is None else {**figures, "loop held, longest": held.longest_ms}
