"""`Target`: a producer that takes batches of records and returns when they are acknowledged; and the loop around it.

A batch is read, sent, flushed and only then marked as read. So a copy is at least once: a copy that dies has sent at
most one batch that it has not marked. The first failure ends it: what follows may depend on the order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaException

from kpybroker.client.actions.consume import Reader
from kpybroker.client.actions.interrupts import Interrupts
from kpybroker.client.actions.partitions import Place
from kpybroker.client.actions.producing.room import Room
from kpybroker.client.connect.admin import ErrorWatch, make_producer
from kpybroker.client.connect.errors import CommandError, note
from kpybroker.client.connect.settings import Settings
from kpybroker.client.records.exact import Exact, is_plain
from kpybroker.client.records.record import Record
from kpybroker.client.transfer.progress import Progress

INTERRUPTED: Final = 130
BATCH_RECORDS: Final = 2000
POLL_S: Final = 0.1
REQUEST_BYTES_MAX: Final = 100 * 1024 * 1024
DEFAULTS: Final[dict[str, Any]] = {
    "acks": "all",
    "enable_idempotence": True,
    "partitioner": "murmur2_random",
    "linger_ms": 5,
    "message_max_bytes": REQUEST_BYTES_MAX,
}

Where = Callable[[Record], tuple[str, int]]
"""From a record, the topic and the partition that get it; partition -1 leaves the choice to the key."""


class Target:
    """A producer. Records keep key, value, headers and timestamp; `where` says where each goes.

    A record of before 0.10 has no timestamp, and gets the time of its copy.
    """

    def __init__(self, settings: Settings, where: Where, room: Room) -> None:
        own = {"message_timeout_ms": int(settings.timeout_s * 1000), **DEFAULTS}
        keys = {name: value for name, value in own.items() if name.replace("_", ".") not in settings.properties}
        self._watch = ErrorWatch()
        self._producer: Any = make_producer(settings, self._watch, **keys)
        self._exact = Exact(settings)
        self._where = where
        self._room = room
        self._timeout_s = settings.timeout_s
        self._failure: tuple[Record, CommandError] | None = None
        self._delivered = 0

    def deliver(self, records: Sequence[Record]) -> None:
        """Send all and wait for them. Raises CommandError with the first record that is not acknowledged."""
        self._delivered = 0
        self._make_room(records)
        for number, record in enumerate(records):
            if is_plain(record):
                self._send(record)
            else:
                self._wait_for(number)
                self._send_exactly(record)
        self._wait_for(len(records))

    def _wait_for(self, count: int) -> None:
        """Until so many of the records are acknowledged."""
        while self._delivered < count or self._failure is not None:
            if self._failure is not None:
                source, found = self._failure
                place = f"{source.topic}-{source.partition} at offset {source.offset}"
                raise CommandError(f"the record of {place} was not copied: {found.cause}", found.fix)
            self._producer.flush(POLL_S)

    def close(self) -> None:
        """Close the connections that are this class's own."""
        self._exact.close()

    def _make_room(self, records: Sequence[Record]) -> None:
        """The source may have partitions that it did not have at the start."""
        needed: dict[str, int] = {}
        for topic, partition in map(self._where, records):
            needed[topic] = max(needed.get(topic, 0), partition + 1)
        for topic, count in needed.items():
            if self._room.require(topic, count):
                try:
                    self._producer.list_topics(topic, timeout=self._timeout_s)  # it remembers how many there were
                except KafkaException as error:
                    raise self._watch.cause(error.args[0]) from None

    def _send(self, record: Record) -> None:
        topic, partition = self._where(record)
        keys: dict[str, Any] = {} if record.timestamp_ms is None else {"timestamp": record.timestamp_ms}
        while self._failure is None:
            try:
                self._producer.produce(
                    topic,
                    record.value,
                    record.key,
                    partition,
                    on_delivery=partial(self._done, record),
                    headers=record.headers,
                    **keys,
                )
                return
            except BufferError:  # the queue is full
                self._producer.poll(POLL_S)
            except KafkaException as error:
                self._done(record, error.args[0], None)

    def _send_exactly(self, record: Record) -> None:
        try:
            self._exact.send(*self._where(record), record)
            self._delivered += 1
        except CommandError as error:
            self._failure = record, error

    def _done(self, source: Record, error: Any, message: Any) -> None:
        if error is None:
            self._delivered += 1
        elif self._failure is None:
            self._failure = source, self._watch.cause(error)


def copy(
    reader: Reader, target: Target, limit: int | None = None, *, group: str | None = None, has_end: bool = True
) -> int:
    """Copy until the reader has all, `limit` records, or Ctrl-C; the exit code. Raises CommandError.

    What was copied is reported in any case, and where to go on unless the offsets of `group` say it. Ctrl-C is the end
    of a copy that has no other (`has_end`), else the exit code is 130.
    """
    copied: dict[Place, int] = {}
    count = 0
    progress = Progress()
    with Interrupts() as interrupts:
        try:
            while not (interrupts.requested or reader.is_done or count == limit):
                messages = reader.read(BATCH_RECORDS if limit is None else min(BATCH_RECORDS, limit - count))
                progress.show(count, reader.left(copied))
                if not messages:
                    continue
                target.deliver([reader.exact.record(message) for message in messages])
                reader.printed(messages)
                count += len(messages)
                copied |= {(one.topic(), one.partition()): one.offset() + 1 for one in messages}
        finally:
            progress.clear()
            target.close()
            reader.close()
            _report(count, copied, is_whole=reader.is_done or group is not None)
    return INTERRUPTED if has_end and interrupts.requested and not (reader.is_done or count == limit) else 0


def _report(count: int, copied: dict[Place, int], *, is_whole: bool) -> None:
    parts = f" of {len(copied)} partition{'s' if len(copied) != 1 else ''}" if copied else ""
    note(f"copied {count} record{'s' if count != 1 else ''}{parts}")
    if not is_whole:
        for (topic, partition), offset in sorted(copied.items()):
            note(f"next: {topic}:{partition} at offset {offset}")
