"""`TopicLog`: the topic itself. A thread reads it from its beginning and never stops; writers wait until their records
were read back.

Written with acks=all by an idempotent producer, so a retry is no second record. What a writer does not learn in time
may have been written nevertheless: the next one reads to the end first (`refresh`).

Reads go on from memory while the cluster is away. Not handled: a topic that is deleted under a running registry.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType

from kpybroker.client.connect.admin import Cluster, ErrorWatch, make
from kpybroker.client.connect.errors import CommandError, hide, kafka_error
from kpybroker.client.connect.settings import Settings
from kpybroker.registry.errors import SCHEMA_TOO_LARGE, STORE_ERROR, TIMED_OUT, RegistryError
from kpybroker.registry.store import records
from kpybroker.registry.store.records import Record

logger = logging.getLogger("kpybroker.registry")

REPLICAS: Final = 3
POLL_S: Final = 0.5
FLUSH_S: Final = 0.1
PARTITION_EOF: Final = "_PARTITION_EOF"
TOO_LARGE: Final = ("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_MSG_SIZE")

Apply = Callable[[bytes | None, bytes | None, int | None], str | None]
"""From a key, a value and a time: why a record is skipped; None for one that was understood."""


class TopicLog:
    """Of any threads. `apply` is called by the reading thread, with `lock` held."""

    def __init__(self, settings: Settings, topic: str, apply: Apply, lock: threading.Condition) -> None:
        self._settings = settings
        self._topic = topic
        self._apply = apply
        self._lock = lock
        self._position = 0
        """The offset after the last record that was applied."""
        self._end_seen = False
        self._is_closing = False
        self._failure: CommandError | None = None
        self._watch = ErrorWatch()
        self._producer: Any = None
        self._thread = threading.Thread(target=self._read, name="kpybroker-registry-reader", daemon=True)

    def start(self) -> None:
        """Create the topic where it is missing, and read it to its end. Raises CommandError."""
        ensure_topic(self._settings, self._topic)
        self._producer = self._new_producer()
        self._thread.start()
        with self._lock:
            done = self._lock.wait_for(lambda: self._end_seen or self._failure is not None, self._settings.timeout_s)
            if self._failure is not None:
                raise self._failure
            if not done:
                raise CommandError(f"the topic {self._topic} could not be read to its end in time", "raise --timeout")

    def refresh(self) -> None:
        """Wait until everything that is in the topic now was applied. Raises RegistryError."""
        self.append([records.noop()])

    def append(self, written: Sequence[Record]) -> None:
        """Write records in order and wait until they were applied. Raises RegistryError 50001, 50002 or 42209."""
        deadline = time.monotonic() + self._settings.timeout_s
        outcome = _Outcome(len(written))
        try:
            for record in written:
                self._producer.produce(
                    self._topic, record.value, record.key, partition=0, on_delivery=outcome.delivered
                )
            while outcome.waiting and time.monotonic() < deadline:
                self._producer.poll(FLUSH_S)
        except KafkaException as error:
            outcome.failed(error.args[0])
        except BufferError:
            raise RegistryError(STORE_ERROR, "the producer's queue is full") from None
        if outcome.error is not None:
            raise self._refusal(outcome.error)
        if outcome.waiting:
            raise RegistryError(TIMED_OUT, "the write to the topic timed out; it may have been done")
        with self._lock:
            if not self._lock.wait_for(lambda: self._position > outcome.offset, max(0.1, deadline - time.monotonic())):
                raise RegistryError(TIMED_OUT, "the write was done, and was not read back in time")

    def _refusal(self, error: Any) -> RegistryError:
        if error.fatal():
            self._producer = self._new_producer()
        if error.name() in TOO_LARGE:
            return RegistryError(SCHEMA_TOO_LARGE, "the schema is larger than the topic's max.message.bytes")
        code = TIMED_OUT if error.name() == "_MSG_TIMED_OUT" else STORE_ERROR
        return RegistryError(code, f"the write to the topic failed: {hide(kafka_error(error).cause)}")

    def _new_producer(self) -> Any:
        timeout_ms = int(self._settings.timeout_s * 1000)
        more = {"acks": "all", "enable_idempotence": True, "linger_ms": 0, "message_timeout_ms": timeout_ms}
        return make(Producer, self._settings, self._watch, **more)

    def _read(self) -> None:
        try:
            consumer = make(
                Consumer,
                self._settings,
                self._watch,
                group_id="schema-registry-reader",  # needed by the library, never joined
                enable_auto_commit=False,
                enable_partition_eof=True,
                auto_offset_reset="earliest",
                fetch_error_backoff_ms=100,
            )
            consumer.assign([TopicPartition(self._topic, 0, 0)])
            while not self._is_closing:
                message = consumer.poll(POLL_S)
                if message is not None:
                    self._take(message)
            consumer.close()
        except Exception as error:
            self._fail(error if isinstance(error, CommandError) else kafka_error(error))

    def _take(self, message: Any) -> None:
        error = message.error()
        if error is None:
            with self._lock:
                self._apply_one(message)
                self._position = message.offset() + 1
                self._lock.notify_all()
        elif error.name() == PARTITION_EOF:
            with self._lock:
                self._position = max(self._position, message.offset())
                self._end_seen = True
                self._lock.notify_all()
        elif not error.retriable() and not self._end_seen:
            self._fail(kafka_error(error))
        else:
            logger.warning("reading the topic failed topic=%s cause=%s", self._topic, hide(str(error.str())))

    def _apply_one(self, message: Any) -> None:
        """No record ends the reader: schemas after it are still wanted."""
        try:
            (_, timestamp) = message.timestamp()
            skipped = self._apply(message.key(), message.value(), timestamp if timestamp > 0 else None)
        except Exception as error:
            logger.exception("a record failed topic=%s offset=%d", self._topic, message.offset())
            skipped = type(error).__name__
        if skipped is not None:
            text = "a record was skipped topic=%s offset=%d cause=%s"
            logger.warning(text, self._topic, message.offset(), skipped[:200])

    def _fail(self, error: CommandError) -> None:
        logger.error("the topic is read no more topic=%s cause=%s", self._topic, hide(error.cause))
        with self._lock:
            self._failure = error
            self._lock.notify_all()

    def close(self) -> None:
        """End the thread; what was written is in the topic already."""
        self._is_closing = True
        if self._thread.is_alive():
            self._thread.join(4 * POLL_S)


class _Outcome:
    """What becomes of some records."""

    def __init__(self, count: int) -> None:
        self.waiting = count
        self.offset = -1
        self.error: Any = None

    def delivered(self, error: Any, message: Any) -> None:
        self.waiting -= 1
        if error is not None:
            self.failed(error)
        else:
            self.offset = max(self.offset, message.offset())

    def failed(self, error: Any) -> None:
        self.error = self.error or error


def ensure_topic(settings: Settings, topic: str) -> None:
    """A compacted topic of one partition is there afterwards. Raises CommandError, also for one that is another."""
    cluster = Cluster(settings)
    metadata = cluster.metadata()
    found = metadata.topics.get(topic)
    if found is None:
        replicas = min(REPLICAS, len(metadata.brokers))
        new = NewTopic(topic, 1, replicas, config={"cleanup.policy": "compact"})
        (_, _, error) = cluster.results(cluster.admin.create_topics([new], **cluster.timeouts))[0]
        if error is not None and "TOPIC_ALREADY_EXISTS" not in error.cause:
            raise CommandError(f"the topic {topic} cannot be created: {error.cause}", error.fix)
        return
    if len(found.partitions) != 1:
        raise CommandError(
            f"the topic {topic} has {len(found.partitions)} partitions, and schemas need an order",
            "name another topic: --topic; or delete this one",
        )
    resource = ConfigResource(ResourceType.TOPIC, topic)
    (_, config, error) = cluster.results(cluster.admin.describe_configs([resource], **cluster.timeout))[0]
    if error is not None:
        logger.warning("cleanup.policy cannot be checked topic=%s cause=%s", topic, hide(error.cause))
    elif "compact" not in config["cleanup.policy"].value.split(","):
        raise CommandError(
            f"the topic {topic} is not compacted: retention would delete schemas",
            f"kpybroker config set topic {topic} cleanup.policy=compact",
        )
