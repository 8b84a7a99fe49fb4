"""`Exact`: the records that librdkafka cannot represent, read and written with the broker's own codec.

librdkafka takes a header's key for a text of C: it raises for bytes that are no UTF-8 and sends no bytes after a zero.
It also takes the timestamp 0 for "now". Such records are rare, so everything else goes through librdkafka, and a
connection is opened when the first of them is met.

A record is sent in a batch of its own, after everything before it was acknowledged, and is not sent again when the
connection fails: it may have been appended.

Not seen here: a header's key with a zero byte that is read, since librdkafka cuts it without an error.
"""

from __future__ import annotations

import operator
import random
import time
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kpybroker.client.connect.errors import DEFAULT_FIX, CommandError, check
from kpybroker.client.connect.settings import Settings
from kpybroker.client.connect.visible import is_text
from kpybroker.client.connect.wire import RETRY_S, WireCluster
from kpybroker.client.records.record import Headers, Record, of_parts
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.metadata import MetadataRequest
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.records.batch import iter_batches
from kpybroker.wire.records.builder import build_batch_of
from kpybroker.wire.records.default_record import Record as WireRecord
from kpybroker.wire.records.partitioner import murmur2_partition
from kpybroker.wire.records.record import iter_records

FETCH_BYTES: Final = 1 << 20
"""Of one partition at once; the headers of its records are kept until they are asked for."""
KEPT_MAX: Final = 16
"""Partitions of which headers are kept."""
BY_NAME_FETCH: Final = 12
BY_NAME_PRODUCE: Final = 12
"""The last versions that name topics; later ones need their ids."""
ALL_REPLICAS: Final = -1
ANY_PARTITION: Final = -1
INT64: Final = range(-(2**63), 2**63)
ELSEWHERE: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE)

Place = tuple[str, int]


_headers: Final = operator.methodcaller("headers")
"""To be asked once a message. For a key that is no UTF-8 confluent-kafka leaves an exception pending and returns a list
with a hole. A call that the interpreter has made fast does not look for the exception, and a later one fails with it;
`methodcaller` always looks.
"""


class Sent(NamedTuple):
    """Where a record was appended."""

    partition: int
    offset: int


def is_plain(record: Record) -> bool:
    """Whether librdkafka can send the record as it is."""
    return record.timestamp_ms != 0 and all("\0" not in key and is_text(key) for key, _ in record.headers)


class Exact:
    """Connections for such records, opened when they are needed; close it at the end."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._cluster: WireCluster | None = None
        self._leaders: dict[str, list[int]] = {}
        self._kept: dict[Place, dict[int, Headers]] = {}

    def record(self, message: Any) -> Record:
        """confluent-kafka's message as a record. Raises CommandError if its headers cannot be read."""
        try:
            headers = _headers(message) or []
        except (SystemError, UnicodeError):
            headers = self.headers((message.topic(), message.partition()), message.offset())
        return of_parts(message, headers)

    def headers(self, place: Place, offset: int) -> Headers:
        """The headers of the record at an offset. Raises CommandError if there is none, or it cannot be read."""
        where = f"{place[0]}-{place[1]} at offset {offset}"
        if offset not in self._kept.get(place, {}):
            while len(self._kept) >= KEPT_MAX:
                del self._kept[next(iter(self._kept))]
            try:
                self._kept[place] = self._fetched(place, offset)
            except CommandError as error:
                cause = f"a header's key in {where} is no UTF-8, and reading its bytes failed: {error.cause}"
                raise CommandError(cause, error.fix) from None
        found = self._kept[place].pop(offset, None)
        if found is None:
            raise CommandError(f"a header's key in {where} is no UTF-8, and the record is gone", DEFAULT_FIX)
        return found

    def _fetched(self, place: Place, offset: int) -> dict[int, Headers]:
        partition = FetchRequest.FetchPartition(
            partition=place[1], fetch_offset=offset, partition_max_bytes=FETCH_BYTES
        )
        topic = FetchRequest.FetchTopic(topic=place[0], partitions=[partition])
        request = FetchRequest(
            replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=FETCH_BYTES, session_epoch=-1, topics=[topic]
        )
        response = self._ask_leader(
            place, ApiKey.FETCH, request, BY_NAME_FETCH, lambda one: one.responses[0].partitions
        )
        found = {}
        try:
            for record in _records(bytes(response.records or b"")):
                if record.offset >= offset:
                    found[record.offset] = list(record.headers)
        except KafkaError as error:
            if offset not in found:
                raise CommandError(f"its batch cannot be read: {error}") from None
        return found

    def send(self, topic: str, partition: int, record: Record) -> Sent:
        """Append the record to the topic, acknowledged by all in-sync replicas; -1 leaves the partition to the key.

        Raises CommandError if it was not acknowledged.
        """
        if partition == ANY_PARTITION:
            count = len(self._leaders_of(topic))
            partition = murmur2_partition(record.key, count) if record.key is not None else random.randrange(count)
        timestamp = time.time_ns() // 1_000_000 if record.timestamp_ms is None else record.timestamp_ms
        if timestamp not in INT64:
            raise CommandError(f"{timestamp} is no timestamp", "write milliseconds since 1970")
        one = WireRecord(0, timestamp, record.key, record.value, tuple(record.headers))
        data = ProduceRequest.PartitionProduceData(index=partition, records=bytes(build_batch_of([one])))
        request = ProduceRequest(
            acks=ALL_REPLICAS,
            timeout_ms=int(self._settings.timeout_s * 1000),
            topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[data])],
        )
        response = self._ask_leader(
            (topic, partition),
            ApiKey.PRODUCE,
            request,
            BY_NAME_PRODUCE,
            lambda one: one.responses[0].partition_responses,
        )
        return Sent(partition, response.base_offset)

    def _ask_leader(self, place: Place, key: ApiKey, request: Any, version_max: int, part: Any) -> Any:
        """The leader's response for the one partition, once there is a leader. Raises CommandError."""
        deadline = time.monotonic() + self._settings.timeout_s
        while True:
            leaders = self._leaders_of(place[0])
            if not 0 <= place[1] < len(leaders):
                raise CommandError(
                    f"topic {place[0]} has no partition {place[1]}", "kpybroker topic describe shows them"
                )
            error = int(ErrorCode.LEADER_NOT_AVAILABLE)
            if leaders[place[1]] >= 0:
                broker = self._opened().broker(leaders[place[1]])
                version = min(broker.version_of(key), version_max)
                (found,) = part(broker.request_in(key, request, version))
                error = found.error_code
            if error not in ELSEWHERE or time.monotonic() > deadline:
                check(error)
                return found
            self._leaders.pop(place[0])
            time.sleep(RETRY_S)

    def _leaders_of(self, topic: str) -> list[int]:
        """By partition the leader's id, -1 for none."""
        if topic not in self._leaders:
            wanted = [MetadataRequest.MetadataRequestTopic(name=topic)]
            request = MetadataRequest(topics=wanted, allow_auto_topic_creation=True)  # as librdkafka asks
            deadline = time.monotonic() + self._settings.timeout_s
            while True:
                (found,) = self._opened().any().request(ApiKey.METADATA, request).topics
                if found.error_code not in ELSEWHERE or time.monotonic() > deadline:
                    break
                time.sleep(RETRY_S)
            check(found.error_code)
            leaders = {one.partition_index: one.leader_id for one in found.partitions}
            self._leaders[topic] = [leaders.get(number, -1) for number in range(len(leaders))]
        return self._leaders[topic]

    def _opened(self) -> WireCluster:
        if self._cluster is None:
            self._cluster = WireCluster(self._settings)
        return self._cluster

    def close(self) -> None:
        """Close the connections."""
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None


def _records(data: bytes) -> Iterator[WireRecord]:
    for position, header in iter_batches(data):
        if not header.is_control:
            yield from iter_records(data, header, position)
