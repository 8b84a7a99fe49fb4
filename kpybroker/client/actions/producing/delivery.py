"""`Delivery`: records of an input are sent, and counted until each is acknowledged.

Nothing is lost without a line about it: a failed record is reported with its line in the input, and goes to the file
of `--undelivered`. Reading stops at a line that is no record, and at a failure that the next records will have too.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO, Final

from confluent_kafka import KafkaException

from kpybroker.client.actions.interrupts import InterruptibleSource, Interrupts
from kpybroker.client.actions.producing.creation import Creation
from kpybroker.client.actions.producing.options import ProduceOptions
from kpybroker.client.connect.admin import ErrorWatch, make_producer
from kpybroker.client.connect.errors import CommandError, kafka_error, note, report
from kpybroker.client.connect.settings import Settings
from kpybroker.client.records import json_lines
from kpybroker.client.records.exact import Exact, is_plain
from kpybroker.client.records.json_lines import BadLine
from kpybroker.client.records.lines import Parse, pieces
from kpybroker.client.records.record import Record, of_parts
from kpybroker.client.records.template import Part

INTERRUPTED: Final = 130
POLL_S: Final = 0.1
END_S_MAX: Final = 5.0
"""How long the end waits for acknowledgements after Ctrl-C."""
TOO_LARGE: Final = "MSG_SIZE_TOO_LARGE"
REFUSED_MAX: Final = 10_000
"""Records that are sent again alone; beyond that they fail with their batch."""
REQUEST_BYTES_MAX: Final = 100 * 1024 * 1024
"""A broker's own limit of a request, by default; the topic's limit is smaller, and the broker's to check."""
REPORTED_MAX: Final = 10
"""Failures that get a line each; the others are counted."""

OF_ONE_RECORD: Final = frozenset(
    {
        *("MESSAGE_TOO_LARGE", "INVALID_TIMESTAMP", "INVALID_RECORD", "CORRUPT_MESSAGE", "INVALID_TOPIC_EXCEPTION"),
        *("_UNKNOWN_PARTITION", "_INVALID_ARG", "_UNKNOWN_TOPIC"),
        *("UNKNOWN_TOPIC_OR_PARTITION", "TOPIC_AUTHORIZATION_FAILED"),
    }
)
"""Errors that say nothing about the next record, by `CommandError.name`."""


class Unreadable(BadLine):
    """The input ends with an error of the system."""


class NotMade(BadLine):
    """A topic or partition that the record needs could not be made."""

    def __init__(self, cause: str, fix: str) -> None:
        super().__init__(cause)
        self.fix = fix


class Delivery:
    """A producer and what became of its records. Callbacks run in a thread, so that a quiet input delays no report."""

    def __init__(
        self,
        settings: Settings,
        options: ProduceOptions,
        show: Part | None,
        undelivered: BinaryIO | None,
        creation: Creation | None,
    ) -> None:
        self._options = options
        self._creation = creation
        self._timeout_s = settings.timeout_s
        self._show = show
        self._undelivered = undelivered
        self._watch = ErrorWatch()
        defaults: dict[str, Any] = {
            "acks": "all",
            "enable_idempotence": True,
            "partitioner": "murmur2_random",
            "linger_ms": 5,
            "message_max_bytes": REQUEST_BYTES_MAX,
            "message_timeout_ms": int(settings.timeout_s * 1000),
        }
        if options.compression is not None:
            defaults["compression_type"] = options.compression
        keys = {name: value for name, value in defaults.items() if name.replace("_", ".") not in settings.properties}
        self._producer: Any = make_producer(settings, self._watch, **keys)
        self._exact = Exact(settings)
        self._lock = threading.Lock()
        self.delivered = 0
        self.failed = 0
        self._places: set[tuple[str, int]] = set()
        self._fixes: dict[str, None] = {}
        self._hopeless = threading.Event()
        self._is_fatal = False
        self._is_unwritten = False
        self._lines = 0
        self._refused: list[tuple[Record, int, Any]] | None = []
        """Refused as too large, in a batch with others; None once each is sent alone."""

    def run(self, source: Any, delimiter: bytes, parse: Parse) -> int:
        """Send all of the source; the exit code."""
        with Interrupts() as interrupts:
            return self._run(InterruptibleSource(source, interrupts), delimiter, parse, interrupts)

    def _run(self, source: InterruptibleSource, delimiter: bytes, parse: Parse, interrupts: Interrupts) -> int:
        closed = threading.Event()
        poller = threading.Thread(target=self._poll_until, args=(closed,), daemon=True)
        poller.start()
        bad = None
        try:
            bad = self._read(source, delimiter, parse, interrupts)
            while self._served(self._producer.flush, POLL_S) and not interrupts.requested:
                pass
            self._send_alone()
            if self._is_fatal:
                self._end_soon()
        except KeyboardInterrupt:
            interrupts.requested = True
        if interrupts.requested:
            self._end_soon()
        code = INTERRUPTED if interrupts.requested else 0
        closed.set()
        poller.join()
        self._exact.close()
        return self._finish(code, bad)

    def _poll_until(self, closed: threading.Event) -> None:
        while not closed.is_set():
            self._served(self._producer.poll, POLL_S)
            if self._is_fatal:
                closed.wait()

    def _served(self, call: Callable[[float], int], timeout_s: float) -> int:
        """What `poll` or `flush` returns; 0 after an error with which the producer cannot go on, reported once."""
        try:
            return call(timeout_s)
        except KafkaException as error:
            with self._lock:
                if not self._is_fatal:
                    self._is_fatal = True
                    self._hopeless.set()
                    found = kafka_error(error.args[0])
                    self._fixes.setdefault(found.fix)
                    report(f"the producer cannot go on: {found.cause}")
            return 0

    def _read(
        self, source: InterruptibleSource, delimiter: bytes, parse: Parse, interrupts: Interrupts
    ) -> BadLine | None:
        """Send record after record; the reason if one is not one."""
        try:
            for piece in pieces(source, delimiter):
                if self._hopeless.is_set() or interrupts.requested:
                    return None
                self._send(parse(piece), self._lines + 1)
                self._lines += 1
        except BadLine as error:
            return error
        except OSError as error:
            return Unreadable(f"the input cannot be read: {error.strerror or error}")
        except CommandError as error:
            return NotMade(error.cause, error.fix)
        return None

    def _send(self, record: Record, line: int) -> None:
        topic = self._options.topic or record.topic
        if topic is None:
            raise BadLine("it names no topic, and the command names none either")
        partition = record.partition if self._options.partition is None else self._options.partition
        if self._creation is not None and self._creation.require(record, topic, partition):
            self._learn(topic)
        if not is_plain(record):
            self._send_exactly(record._replace(topic=topic, partition=-1 if partition is None else partition), line)
            return
        keys: dict[str, Any] = {} if record.timestamp_ms is None else {"timestamp": record.timestamp_ms}
        done = partial(self._done, record._replace(topic=topic), line)
        while True:
            try:
                self._producer.produce(
                    topic,
                    record.value,
                    record.key,
                    -1 if partition is None else partition,
                    on_delivery=done,
                    headers=record.headers,
                    **keys,
                )
                return
            except BufferError:  # the queue is full
                self._served(self._producer.poll, POLL_S)
            except KafkaException as error:
                self._done(record._replace(topic=topic), line, error.args[0], None)
                return
            except (TypeError, ValueError, OverflowError) as error:
                raise BadLine(str(error)) from None

    def _learn(self, topic: str) -> None:
        """The producer remembers how many partitions a topic had."""
        try:
            self._producer.list_topics(topic, timeout=self._timeout_s)
        except KafkaException as error:
            raise kafka_error(error.args[0]) from None

    def _send_exactly(self, record: Record, line: int) -> None:
        """One that librdkafka cannot send as it is, after all before it."""
        while self._served(self._producer.flush, POLL_S) and not self._hopeless.is_set():
            pass
        assert record.topic is not None, "_send has named it"
        assert record.partition is not None, "_send has named it"
        try:
            sent = self._exact.send(record.topic, record.partition, record)
        except CommandError as error:
            with self._lock:
                self._fail(record, line, error)
        else:
            with self._lock:
                self._keep(record._replace(partition=sent.partition, offset=sent.offset))

    def _send_alone(self) -> None:
        """Again, and each in a batch of its own: a broker refuses a whole batch for one record that is too large."""
        refused, self._refused = self._refused, None
        for record, line, _ in refused or ():
            self._send(record, line)
            while self._served(self._producer.flush, POLL_S):
                pass

    def _end_soon(self) -> None:
        """What is not acknowledged in END_S_MAX, or before a second Ctrl-C, is reported as failed."""
        with suppress(KeyboardInterrupt):
            self._served(self._producer.flush, END_S_MAX)
        self._producer.purge()
        self._served(self._producer.flush, END_S_MAX)
        refused, self._refused = self._refused, None
        for record, line, error in refused or ():
            self._done(record, line, error, None)

    def _may_send_again(self) -> bool:
        return self._refused is not None and len(self._refused) < REFUSED_MAX

    def _done(self, record: Record, line: int, error: Any, message: Any) -> None:
        with self._lock:
            if error is not None and error.name() == TOO_LARGE and self._may_send_again():
                assert self._refused is not None
                self._refused.append((record, line, error))
                return
            if error is None:
                self._keep(of_parts(message, record.headers))  # delivery reports have none
            else:
                self._fail(record, line, self._watch.cause(error))

    def _fail(self, record: Record, line: int, found: CommandError) -> None:
        self.failed += 1
        self._fixes.setdefault(found.fix)
        if self.failed <= REPORTED_MAX:
            report(f"line {line}: not delivered to {record.topic}: {found.cause}")
        if self._undelivered is not None:
            self._set_aside(record)
        elif found.name not in OF_ONE_RECORD:
            self._hopeless.set()

    def _set_aside(self, record: Record) -> None:
        assert self._undelivered is not None
        try:
            self._undelivered.write(json_lines.dump(record))
            self._undelivered.flush()
        except OSError as error:
            report(f"{self._options.undelivered} cannot be written: {error.strerror}")
            self._undelivered = None
            self._hopeless.set()

    def _keep(self, sent: Record) -> None:
        """Count it, and print it with its place."""
        self.delivered += 1
        self._places.add((sent.topic or "", sent.partition or 0))
        if self._show is None:
            return
        try:
            sys.stdout.buffer.write(self._show(sent, self.delivered - 1))
            sys.stdout.buffer.flush()
        except OSError as error:
            self._show = None
            if not isinstance(error, BrokenPipeError):
                report(f"standard output cannot be written: {error.strerror}; more records are sent without a line")
                self._is_unwritten = True

    def _finish(self, code: int, bad: BadLine | None) -> int:
        parts = f" to {len(self._places)} partition{'s' if len(self._places) != 1 else ''}" if self._places else ""
        note(f"delivered {self.delivered} record{'s' if self.delivered != 1 else ''}{parts}")
        if self.failed:
            kept = f"; they are in {self._options.undelivered}" if self._undelivered is not None else ""
            note(f"not delivered: {self.failed}{kept}")
        if bad is not None:
            self._report_bad(bad)
        elif self._hopeless.is_set() or code:
            note(f"stopped after line {self._lines} of the input")
        for fix in self._fixes:
            note(f"fix: {fix}")
        return code or int(bool(self.failed or bad or self._is_unwritten))

    def _report_bad(self, bad: BadLine) -> None:
        next_line = f"tail -n +{self._lines + 1}"
        if isinstance(bad, Unreadable):
            report(f"{bad}, after line {self._lines}")
        elif isinstance(bad, NotMade):
            report(f"line {self._lines + 1}: {bad}")
            self._fixes.setdefault(bad.fix)
            self._fixes.setdefault(f"then go on from there: {next_line}")
        else:
            report(f"line {self._lines + 1} is no record: {bad}")
            self._fixes.setdefault(f"correct it, and go on from there: {next_line}")
