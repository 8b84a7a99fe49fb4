"""The suggestions of compacted topics in memory, kept up to date by a thread that follows the topics.

Committed records are read, from the beginning; the last of a key counts, and one without a value removes it. No offsets
are committed: each start reads all, which in a compacted topic is about a record a key. New partitions are found while
it follows; a topic that is deleted ends it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kpybroker.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

KINDS = ("product", "user")
RESPONSE_SECONDS_MAX = 30.0
POLL_S = 0.5
LOOK_S = 10.0
"""How often partitions are looked for."""


@dataclass(slots=True)
class Store:
    """Kind -> key -> the value as it is in the topic: JSON in bytes. Written by one thread, read by any."""

    rows: Mapping[str, dict[str, bytes]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    left_out: int = 0
    """Records that are no suggestions."""
    _kinds: dict[tuple[str, str], str] = field(default_factory=dict)

    def apply(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Take in one record. Its value says what it is for; without one, what the topic had under its key goes."""
        name = (key or b"").decode(errors="replace")
        kind = self._kinds.get((topic, name)) if value is None else _kind(name, value)
        if kind is None:
            self.left_out += value is not None
        elif value is None:
            del self._kinds[topic, name]
            self.rows[kind].pop(name, None)
        else:
            self._kinds[topic, name] = kind
            self.rows[kind][name] = value


def _kind(name: str, value: bytes) -> str | None:
    try:
        row = json.loads(value)
    except ValueError:
        return None
    if not isinstance(row, dict) or "suggestions" not in row:
        return None
    return next((kind for kind in KINDS if row.get(kind) == name), None)


class Follower:
    """Reads `topics` into a store. `catch_up` first; then `start` and `stop`."""

    def __init__(self, client: Mapping[str, str], topics: Sequence[str], store: Store) -> None:
        """`client`: settings of librdkafka. Raises `PipelineError` without confluent-kafka."""
        try:
            from confluent_kafka import Consumer
        except ImportError:
            raise PipelineError("confluent-kafka is not installed.", "pip install 'kpybroker[spark]'") from None
        own = {"group.id": "suggestion-service", "enable.auto.commit": False, "enable.partition.eof": True}
        own |= {"isolation.level": "read_committed", "auto.offset.reset": "error", "log_level": "0"}
        self._consumer: Consumer = Consumer({**own, **client})
        self._topics, self._store = topics, store
        self._partitions: dict[str, int] = dict.fromkeys(topics, 0)
        self._behind: set[tuple[str, int]] = set()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.failure: PipelineError | None = None
        """Why following has ended by itself."""

    def catch_up(self) -> None:
        """Read what is there now. Raises `PipelineError`, also where nothing arrives for half a minute."""
        self._look()
        heard = time.monotonic()
        while self._behind:
            if self._poll():
                heard = time.monotonic()
            elif time.monotonic() - heard > RESPONSE_SECONDS_MAX:
                raise PipelineError(f"{', '.join(self._topics)} cannot be read: no response.", _CHECK)

    def start(self, when_failed: Callable[[], object]) -> None:
        """Follow in a thread of its own, which calls `when_failed` if it ends by itself."""
        self._thread = threading.Thread(target=self._follow, args=(when_failed,), name="follower", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, if there is one, and close the connections."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        self._consumer.close()

    def _follow(self, when_failed: Callable[[], object]) -> None:
        looked = time.monotonic()
        try:
            while not self._stopping.is_set():
                self._poll()
                if time.monotonic() - looked > LOOK_S:
                    self._look()
                    looked = time.monotonic()
        except PipelineError as error:
            self.failure = error
            when_failed()

    def _look(self) -> None:
        """Read the partitions that are new from their beginning."""
        from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition

        try:
            found = self._consumer.list_topics(timeout=RESPONSE_SECONDS_MAX).topics
        except KafkaException as error:
            if self._partitions[self._topics[0]]:
                return  # the broker is away for a while: it is tried again
            raise PipelineError(f"The broker does not respond ({error.args[0].str()}).", _CHECK) from None
        for topic in self._topics:
            if topic not in found or found[topic].error is not None:
                raise PipelineError(f"The topic {topic} does not exist.", "Run the pipeline first, or correct --topic.")
            new = range(self._partitions[topic], len(found[topic].partitions))
            if new:
                self._consumer.incremental_assign([TopicPartition(topic, one, OFFSET_BEGINNING) for one in new])
                self._behind |= {(topic, one) for one in new}
                self._partitions[topic] = new.stop

    def _poll(self) -> bool:
        """Take in the next record, or the news that there are no more; False if there was neither."""
        from confluent_kafka import KafkaError

        message: Message | None = self._consumer.poll(POLL_S)
        if message is None:
            return False
        error = message.error()
        if error is None:
            self._store.apply(message.topic(), message.key(), message.value())
        elif error.code() == KafkaError._PARTITION_EOF:
            self._behind.discard((message.topic(), message.partition()))
        else:
            _judge(error)
            return False
        return True


_CHECK = "Check --bootstrap-servers, and that the broker runs."


def _judge(error: KafkaError) -> None:
    """Raise `PipelineError` for what does not pass by itself."""
    from confluent_kafka import KafkaError

    gone = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC)
    if error.code() in gone:
        raise PipelineError("A topic of suggestions was deleted.", "Run the pipeline, then start the service again.")
    if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
        raise PipelineError("A topic of suggestions was made again.", "Start the service again.")
    if error.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._AUTHENTICATION):
        raise PipelineError(f"The broker refuses: {error.str()}.", "Correct --kafka, or allow Read on the topics.")
