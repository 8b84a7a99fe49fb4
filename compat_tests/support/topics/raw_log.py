"""One partition as seen by a client that writes exact batches, and by a reader of its directory.

Sizes, times and formats of batches are the test's to say, so that two brokers get the same bytes and what they make of
them can be compared file by file.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, NamedTuple

from compat_tests.overload.raw import Raw
from compat_tests.support.quick import create_topic
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually
from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.delete_records import DeleteRecordsRequest
from kpybroker.wire.messages.fetch import FetchRequest, FetchResponse
from kpybroker.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kpybroker.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.records.batch import RECORD_BATCH_OVERHEAD, iter_batches
from kpybroker.wire.records.builder import BatchFields, build_batch

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
ALL_BROKERS = ""
SET, DELETE = 0, 1
EARLIEST = -2
PROBE_STEP = 10_000
FETCH_BYTES = 20_000_000


class Appended(NamedTuple):
    error: ErrorCode
    offset: int = -1
    append_time: int = -1


class RawLog:
    """Partition 0 of a topic that is made here, unless it exists; keys of `config` have `_` for `.`."""

    def __init__(
        self,
        broker: Broker,
        topic: str,
        *,
        max_message_bytes: int = 1_000_000,
        exists: bool = False,
        **config: Any,
    ) -> None:
        self._broker = broker
        self.topic = topic
        self._limit = max_message_bytes
        if not exists:
            create_topic(broker.bootstrap, topic, max_message_bytes=max_message_bytes, **config)
        self._raw = Raw(("127.0.0.1", broker.port))

    def alter_brokers(self, **config: Any) -> None:
        """Change the defaults of all brokers; what waits for their effect is the test's affair."""
        alter_configs(self._raw, BROKER_RESOURCE, ALL_BROKERS, config)

    @property
    def directory(self) -> Path:
        return self._broker.data_dir / f"{self.topic}-0"

    # --- configuration

    def alter(self, *, max_message_bytes: int | None = None, **config: Any) -> None:
        """Change keys (None deletes one) and wait until the broker goes by them.

        max.message.bytes always changes with them, for a batch with a false CRC shows which value is in effect: it is
        refused for its size or for its CRC, and never stored.
        """
        before, self._limit = self._limit, max_message_bytes or self._limit + PROBE_STEP
        probe = bytearray(batch(size=max(before, self._limit)))
        probe[17] ^= 1
        reported = ErrorCode.CORRUPT_MESSAGE if self._limit > before else ErrorCode.MESSAGE_TOO_LARGE
        self._alter({**config, "max_message_bytes": self._limit})
        eventually(lambda: self.produce(bytes(probe)).error is reported, f"{config} in effect")

    def _alter(self, config: dict[str, Any]) -> None:
        alter_configs(self._raw, TOPIC_RESOURCE, self.topic, config)

    # --- writing

    def produce(self, records: bytes, version: int = 9) -> Appended:
        data = ProduceRequest.PartitionProduceData(index=0, records=records)
        topic = ProduceRequest.TopicProduceData(name=self.topic, partition_data=[data])
        response = self._raw.ask(ProduceRequest(acks=1, timeout_ms=10_000, topic_data=[topic]), version)
        found = response.responses[0].partition_responses[0]
        return Appended(ErrorCode(found.error_code), found.base_offset, found.log_append_time_ms)

    def write(self, *timestamps: int, size: int = 200) -> list[int]:
        """A batch of one record and `size` bytes for each timestamp; their offsets."""
        offsets = []
        for timestamp in timestamps:
            appended = self.produce(batch(timestamp, size=size))
            assert appended.error is ErrorCode.NONE, appended
            offsets.append(appended.offset)
        return offsets

    def delete_records(self, offset: int) -> ErrorCode:
        wanted = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=offset)
        topic = DeleteRecordsRequest.DeleteRecordsTopic(name=self.topic, partitions=[wanted])
        response = self._raw.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=10_000), 2)
        return ErrorCode(response.topics[0].partitions[0].error_code)

    # --- looking

    def lookup(self, timestamp: int) -> ListOffsetsResponse.ListOffsetsPartitionResponse:
        wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        topic = ListOffsetsRequest.ListOffsetsTopic(name=self.topic, partitions=[wanted])
        response = self._raw.ask(ListOffsetsRequest(topics=[topic]), 7)
        found: ListOffsetsResponse.ListOffsetsPartitionResponse = response.topics[0].partitions[0]
        return found

    def offset_at(self, timestamp: int) -> int:
        found = self.lookup(timestamp)
        assert found.error_code == 0, found
        return found.offset

    @property
    def start(self) -> int:
        """The log start offset."""
        return self.offset_at(EARLIEST)

    def fetch(self, offset: int = 0, version: int = 11) -> FetchResponse.PartitionData:
        wanted = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
        topic = FetchRequest.FetchTopic(topic=self.topic, partitions=[wanted])
        response = self._raw.ask(FetchRequest(max_wait_ms=0, max_bytes=FETCH_BYTES, topics=[topic]), version)
        found: FetchResponse.PartitionData = response.responses[0].partitions[0]
        return found

    def files(self, suffix: str = ".log") -> dict[int, int]:
        """Base offset and size of each file that ends so; the broker may remove some at the same time."""
        sizes = {}
        for path in sorted(self.directory.iterdir()):
            if path.name.endswith(suffix):
                with contextlib.suppress(FileNotFoundError):
                    sizes[int(path.name.partition(".")[0])] = path.stat().st_size
        return sizes

    @property
    def segments(self) -> list[int]:
        """Base offsets."""
        return list(self.files())

    def holds(self, *segments: int, start: int) -> bool:
        """For `eventually`."""
        found = self.segments, self.start
        assert found == (list(segments), start), f"segments and log start are {found}"
        return True


def alter_configs(raw: Raw, resource_type: int, name: str, config: dict[str, Any]) -> None:
    """Set keys (with `_` for `.`), or delete those that are None."""
    entries = [
        IncrementalAlterConfigsRequest.AlterableConfig(
            name=key.replace("_", "."),
            config_operation=DELETE if value is None else SET,
            value=None if value is None else str(value),
        )
        for key, value in config.items()
    ]
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=resource_type, resource_name=name, configs=entries
    )
    response = raw.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert response.responses[0].error_code == 0, response.responses[0].error_message


def batch(timestamp: int = 0, *, size: int = 200, key: bytes | None = None, codec: Codec = Codec.NONE) -> bytes:
    """One record in a batch of exactly `size` bytes before compression."""
    for overhead in range(8, 30):
        value = b"v" * (size - RECORD_BATCH_OVERHEAD - overhead)
        if len(build_batch([(key, value, timestamp)])) == size:
            return bytes(build_batch([(key, value, timestamp)], BatchFields(codec=codec)))
    raise ValueError(f"no batch of one record has {size} bytes")


def codecs_of(records: Any) -> list[Codec]:
    return [header.codec for _, header in iter_batches(bytes(records or b""))]
