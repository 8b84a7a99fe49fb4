"""Trials with librdkafka: does a stock client connect, and with `--write`, does a record make the round trip.

`--write` makes a topic of its own with a partition on each broker, writes, reads and commits, and deletes the topic
and the group again. The topic stamps records with the brokers' clocks, which is how their skew is measured.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition, libversion
from confluent_kafka.admin import NewTopic

from kpybroker.client.connect.admin import Cluster, ErrorWatch, make
from kpybroker.client.connect.errors import CommandError, kafka_error
from kpybroker.client.connect.settings import Settings
from kpybroker.client.doctor.findings import Findings, counted

SKEW_WARNING_MS: Final = 1_000
SKEW_FAILED_MS: Final = 60_000
CLOCK_FIX: Final = "synchronize the clocks (NTP) of this machine and of the broker"


class Written(NamedTuple):
    """A record that a broker has stamped: its time, and ours before it was sent and after it was acknowledged."""

    partition: int
    timestamp_ms: int
    sent_ms: int
    acknowledged_ms: int

    @property
    def skew_ms(self) -> int:
        """How far the broker's clock is ahead: 0 if its time is between our two."""
        if self.sent_ms <= self.timestamp_ms <= self.acknowledged_ms:
            return 0
        return self.timestamp_ms - (self.sent_ms if self.timestamp_ms < self.sent_ms else self.acknowledged_ms)


def check_client(settings: Settings, findings: Findings) -> bool:
    """Whether librdkafka gets the list of topics, with the configuration as it is."""
    try:
        found = Cluster(settings).metadata()
    except CommandError as error:
        findings.failed("client", f"librdkafka {libversion()[0]}: {error.cause}", error.fix)
        return False
    findings.ok("client", f"librdkafka {libversion()[0]} connects and sees {counted(len(found.topics), 'topic')}")
    return True


def check_round_trip(settings: Settings, findings: Findings) -> None:
    """Write, read and commit, and compare the clocks."""
    cluster = Cluster(settings)
    name = f"kpybroker-doctor-{secrets.token_hex(4)}"
    try:
        brokers = sorted(cluster.metadata().brokers)
        with _topic(cluster, name, brokers):
            written = _write(settings, name, len(brokers))
            findings.ok("write", f"{counted(len(brokers), 'record')} acknowledged, one by each broker")
            for broker, one in zip(brokers, written, strict=True):
                _check_clock(broker, one, findings)
            _read(settings, cluster, name, len(brokers))
            findings.ok("read", "the records were read, and their offsets committed by a group")
    except CommandError as error:
        findings.failed("round trip", error.cause, error.fix)
    except KafkaException as error:
        failed = kafka_error(error)
        findings.failed("round trip", failed.cause, failed.fix)


@contextlib.contextmanager
def _topic(cluster: Cluster, name: str, brokers: Sequence[int]) -> Iterator[None]:
    topic = NewTopic(
        name,
        len(brokers),
        replica_assignment=[[broker] for broker in brokers],
        config={"message.timestamp.type": "LogAppendTime", "min.insync.replicas": "1"},
    )
    cluster.result(cluster.admin.create_topics([topic], **cluster.timeouts)[name])
    try:
        yield
    finally:
        with contextlib.suppress(CommandError):
            cluster.result(cluster.admin.delete_topics([name], **cluster.timeouts)[name])


def _write(settings: Settings, name: str, count: int) -> list[Written]:
    timeout_ms = int(settings.timeout_s * 1000)
    watch = ErrorWatch()
    producer: Any = make(Producer, settings, watch, acks="all", linger_ms=0, message_timeout_ms=timeout_ms)
    written: list[Written] = []
    for partition in range(count):
        failures: list[Any] = []
        sent = time.time_ns() // 1_000_000

        def done(
            error: Any, message: Any, partition: int = partition, sent: int = sent, failures: list[Any] = failures
        ) -> None:
            now = time.time_ns() // 1_000_000
            if error is not None:
                failures.append(error)
            else:
                written.append(Written(partition, message.timestamp()[1], sent, now))

        producer.produce(name, b"kpybroker doctor", partition=partition, on_delivery=done)
        producer.flush(settings.timeout_s)
        if failures:
            raise kafka_error(failures[0])
    if len(written) < count:
        raise CommandError(f"{count - len(written)} records were not acknowledged in time")
    return written


def _check_clock(broker: int, one: Written, findings: Findings) -> None:
    skew = abs(one.skew_ms)
    where = "ahead of" if one.skew_ms > 0 else "behind"
    text = f"broker {broker} is {skew / 1000:.1f} s {where} this machine"
    if skew >= SKEW_FAILED_MS:
        findings.failed("clock", text, CLOCK_FIX)
    elif skew >= SKEW_WARNING_MS:
        findings.warning("clock", text, CLOCK_FIX)
    else:
        findings.ok("clock", f"broker {broker} agrees with this machine")


def _read(settings: Settings, cluster: Cluster, name: str, count: int) -> None:
    consumer: Any = make(
        Consumer, settings, ErrorWatch(), group_id=name, auto_offset_reset="earliest", enable_auto_commit=False
    )
    try:
        consumer.assign([TopicPartition(name, partition, 0) for partition in range(count)])
        deadline, seen = time.monotonic() + settings.timeout_s, 0
        while seen < count:
            if time.monotonic() > deadline:
                raise CommandError(f"{count - seen} of {count} records could not be read in time")
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                seen += 1
        consumer.commit(offsets=[TopicPartition(name, partition, 1) for partition in range(count)], asynchronous=False)
    finally:
        consumer.close()
    with contextlib.suppress(CommandError):
        cluster.result(cluster.admin.delete_consumer_groups([name], **cluster.timeout)[name])
