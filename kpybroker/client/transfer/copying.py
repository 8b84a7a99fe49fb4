"""`Target`: a producer that takes batches of records and returns when they are acknowledged; and the loop around it.

A batch is read, sent, flushed and only then marked as read. So a copy is at least once: a copy that dies has sent at
most one batch that it has not marked. The first failure ends it: what follows may depend on the order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaException, Producer

from kpybroker.client.actions.consume import Reader
from kpybroker.client.actions.interrupts import Interrupts
from kpybroker.client.actions.partitions import Place
from kpybroker.client.connect.admin import ErrorWatch, make
from kpybroker.client.connect.errors import CommandError, kafka_error, note
from kpybroker.client.connect.settings import Settings
from kpybroker.client.transfer.progress import Progress
from kpybroker.client.transfer.room import Room

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
TIMESTAMP_KNOWN: Final = (1, 2)

Where = Callable[[Any], tuple[str, int]]
"""From a message, the topic and the partition that get it; partition -1 leaves the choice to the key."""


class Target:
    """A producer. Records keep key, value, headers and timestamp; `where` says where each goes.

    librdkafka takes 0 for "now", so a record without a timestamp, or of 1970-01-01 00:00, gets the time of its copy.
    """

    def __init__(self, settings: Settings, where: Where, room: Room) -> None:
        own = {"message_timeout_ms": int(settings.timeout_s * 1000), **DEFAULTS}
        keys = {name: value for name, value in own.items() if name.replace("_", ".") not in settings.properties}
        self._watch = ErrorWatch()
        self._producer: Any = make(Producer, settings, self._watch, **keys)
        self._where = where
        self._room = room
        self._timeout_s = settings.timeout_s
        self._failure: tuple[Any, Any] | None = None
        self._delivered = 0

    def deliver(self, messages: Sequence[Any]) -> None:
        """Send all and wait for them. Raises CommandError with the first record that is not acknowledged."""
        self._delivered = 0
        self._make_room(messages)
        for message in messages:
            self._send(message)
        while self._delivered < len(messages):
            if self._failure is not None:
                source, error = self._failure
                place = f"{source.topic()}-{source.partition()} at offset {source.offset()}"
                found = self._cause(error)
                raise CommandError(f"the record of {place} was not copied: {found.cause}", found.fix)
            self._producer.flush(POLL_S)

    def _make_room(self, messages: Sequence[Any]) -> None:
        """The source may have partitions that it did not have at the start."""
        needed: dict[str, int] = {}
        for topic, partition in map(self._where, messages):
            needed[topic] = max(needed.get(topic, 0), partition + 1)
        for topic, count in needed.items():
            if self._room.require(topic, count):
                try:
                    self._producer.list_topics(topic, timeout=self._timeout_s)  # it remembers how many there were
                except KafkaException as error:
                    raise self._cause(error.args[0]) from None

    def _send(self, message: Any) -> None:
        topic, partition = self._where(message)
        kind, timestamp_ms = message.timestamp()
        keys: dict[str, Any] = {"timestamp": timestamp_ms} if kind in TIMESTAMP_KNOWN and timestamp_ms >= 0 else {}
        while self._failure is None:
            try:
                self._producer.produce(
                    topic,
                    message.value(),
                    message.key(),
                    partition,
                    on_delivery=partial(self._done, message),
                    headers=message.headers() or [],
                    **keys,
                )
                return
            except BufferError:  # the queue is full
                self._producer.poll(POLL_S)
            except KafkaException as error:
                self._done(message, error.args[0], None)

    def _done(self, source: Any, error: Any, message: Any) -> None:
        if error is None:
            self._delivered += 1
        elif self._failure is None:
            self._failure = source, error

    def _cause(self, error: Any) -> CommandError:
        """The connection's failure when that is why it timed out."""
        if error.name() == "_MSG_TIMED_OUT":
            try:
                self._watch.check()
            except CommandError as why:
                return why
        return kafka_error(error)


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
                target.deliver(messages)
                reader.printed(messages)
                count += len(messages)
                copied |= {(one.topic(), one.partition()): one.offset() + 1 for one in messages}
        finally:
            progress.clear()
            reader.close()
            _report(count, copied, is_whole=reader.is_done or group is not None)
    return INTERRUPTED if has_end and interrupts.requested and not (reader.is_done or count == limit) else 0


def _report(count: int, copied: dict[Place, int], *, is_whole: bool) -> None:
    parts = f" of {len(copied)} partition{'s' if len(copied) != 1 else ''}" if copied else ""
    note(f"copied {count} record{'s' if count != 1 else ''}{parts}")
    if not is_whole:
        for (topic, partition), offset in sorted(copied.items()):
            note(f"next: {topic}:{partition} at offset {offset}")
