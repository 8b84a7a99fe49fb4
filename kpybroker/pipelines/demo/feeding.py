"""Writing the input of a demo to a topic, with librdkafka, and a bar that shows how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TextIO

from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime.event_time import HEARTBEAT_KEY

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

END_OF_TIME = "9999-01-01T00:00:00Z"
"""The last heartbeat: it advances event time past the end of every window."""
DELIVERY_SECONDS_MAX = 60.0


class Progress:
    """`label: done of total`, on one line of a terminal, or a line for each quarter elsewhere."""

    def __init__(self, label: str, total: int, out: TextIO) -> None:
        self._label, self._total, self._out = label, max(total, 1), out
        self._shown = -1

    def at(self, done: int) -> None:
        """Show that `done` lines are done, if that changes what is shown."""
        percent = done * 100 // self._total
        step = percent if self._out.isatty() else percent // 25
        if step == self._shown:
            return
        self._shown = step
        filled = percent * 30 // 100
        bar = f"{self._label}  [{'#' * filled}{'.' * (30 - filled)}] {percent:3d} %  {done} of {self._total}"
        self._out.write(f"\r{bar}" if self._out.isatty() else f"{bar}\n")
        if self._out.isatty() and done >= self._total:
            self._out.write("\n")
        self._out.flush()


def feed(
    bootstrap: str,
    topic: str,
    lines: Iterable[str],
    count: int,
    progress: Callable[[int], None],
    heartbeat: str = END_OF_TIME,
) -> None:
    """Write `count` lines, then the heartbeat that closes them; return when all of it is acknowledged.

    The topic has one partition, because the heartbeat must follow every line. `progress` is called with the number of
    lines acknowledged so far.
    """
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])[topic].result(DELIVERY_SECONDS_MAX)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "compression.type": "gzip"})
    done = 0
    failures: list[str] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        nonlocal done
        done += 1
        if error is not None:
            failures.append(str(error))
        progress(min(done, count))

    for line in lines:
        _produce(producer, topic, None, line, delivered)
    _produce(producer, topic, HEARTBEAT_KEY, heartbeat, delivered)
    left = producer.flush(DELIVERY_SECONDS_MAX)
    if left or failures:
        reason = failures[0] if failures else f"no response within {DELIVERY_SECONDS_MAX:.0f} s"
        raise PipelineError(f"{left + len(failures)} lines were not delivered: {reason}.", "See the broker's log.")


def _produce(
    producer: Producer, topic: str, key: str | None, value: str, delivered: Callable[[KafkaError | None, Message], None]
) -> None:
    """Produce one record; waits while the queue of the client is full."""
    while True:
        try:
            producer.produce(topic, value.encode(), key, on_delivery=delivered)
        except BufferError:
            producer.poll(1.0)
        else:
            producer.poll(0)
            return
