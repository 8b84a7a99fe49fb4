"""How much is written to each partition, as any cluster says it: end offsets at two moments, and the size of a record.

Bytes on disk, after compression: what a leader has to append, and its followers to copy. What is read is not seen.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kpybroker.client.actions.clusters import log_dir_rows
from kpybroker.client.actions.interrupts import Interrupts
from kpybroker.client.actions.partitions import Partition, Place
from kpybroker.client.actions.placement.asking import by_topic
from kpybroker.client.connect.errors import CommandError, Failures, broker_error
from kpybroker.client.connect.wire import WireCluster
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.list_offsets import ListOffsetsRequest

LATEST, EARLIEST = -1, -2
LOOK_S: Final = 0.2


class Ends(NamedTuple):
    """The end offsets of partitions at one moment of the monotonic clock."""

    at_s: float
    offsets: Mapping[Place, int]


class Measured(NamedTuple):
    """Of each partition whose leader says it: bytes that are written to it in a second, and bytes that it has."""

    written: dict[Place, float]
    sizes: dict[Place, int]


def measure(
    wire: WireCluster, partitions: Mapping[Place, Partition], seconds: float, failures: Failures
) -> Measured | None:
    """Look at all of them for so long; None after Ctrl-C."""
    starts = _offsets(wire, partitions.values(), EARLIEST, failures)
    first = _ends(wire, partitions, failures)
    if not _wait(seconds):
        return None
    last = _ends(wire, partitions, failures)
    _, replicas = log_dir_rows(wire, sorted(wire.nodes), failures)
    held = {(row["topic"], row["partition"], row["broker"]): row["size"] for row in replicas if not row["future"]}
    found = Measured({}, {})
    for place in first.offsets.keys() & last.offsets.keys() & starts.keys():
        size = held.get((*place, partitions[place].leader))
        if size is not None:
            written = max(0, last.offsets[place] - first.offsets[place])
            records = max(1, last.offsets[place] - starts[place])
            found.sizes[place] = size
            found.written[place] = written * size / records / (last.at_s - first.at_s)
    return found


def _wait(seconds: float) -> bool:
    end = time.monotonic() + seconds
    with Interrupts() as interrupts:
        while (left := end - time.monotonic()) > 0 and not interrupts.requested:
            time.sleep(min(left, LOOK_S))
        return not interrupts.requested


def _ends(wire: WireCluster, partitions: Mapping[Place, Partition], failures: Failures) -> Ends:
    return Ends(time.monotonic(), _offsets(wire, partitions.values(), LATEST, failures))


def _offsets(
    wire: WireCluster, partitions: Iterable[Partition], timestamp: int, failures: Failures
) -> dict[Place, int]:
    """Each leader is asked for all of its partitions at once."""
    led: dict[int, list[Place]] = {}
    for one in partitions:
        if one.leader is not None:
            led.setdefault(one.leader, []).append(one.place)
    found: dict[Place, int] = {}
    for broker, places in sorted(led.items()):
        try:
            response = wire.broker(broker).request(ApiKey.LIST_OFFSETS, _request(places, timestamp))
        except CommandError as error:
            failures.add(f"broker {broker}", error)
            continue
        for topic in response.topics:
            for partition in topic.partitions:
                refusal = broker_error(partition.error_code)
                if refusal is None:
                    found[topic.name, partition.partition_index] = partition.offset
                else:
                    failures.add(f"{topic.name}-{partition.partition_index}", refusal)
    return found


def _request(places: Iterable[Place], timestamp: int) -> ListOffsetsRequest:
    partition, topic = ListOffsetsRequest.ListOffsetsPartition, ListOffsetsRequest.ListOffsetsTopic
    return ListOffsetsRequest(
        replica_id=-1,
        topics=[
            topic(name=name, partitions=[partition(partition_index=number, timestamp=timestamp) for number in numbers])
            for name, numbers in by_topic(places).items()
        ],
    )
