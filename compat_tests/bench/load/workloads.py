"""What is measured: one entry a run of a client, with one or more lines of the table. DESIGN §7 has the floors."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from compat_tests.bench.load import page_cache
from compat_tests.bench.load.clients import (
    Consumed,
    Run,
    ages_s,
    console_consumer,
    consumed_rate,
    consumer_performance,
    end_to_end,
    first_output,
    kcat,
    produced_reports,
    producer_performance,
    raw_arguments,
    seconds_of,
)
from compat_tests.bench.load.raw_producer import percentiles_ms
from compat_tests.support.quick import admin_client, create_topic, fill
from compat_tests.support.waiting import eventually

CONSUMED_TOPIC = "bench-consume"
CONSUMED_RECORDS, REPLAYED_RECORDS, REPLAY_WARM_SHARE = 600_000, 4_000_000, 0.6
KILOBYTE = 1024
FOLLOWED_RATE = 1000
RAW_BATCH = {"records": 16, "record_bytes": KILOBYTE}
END_TO_END_WARM_UP = 1000
ENDLESS = 1_000_000_000
JAVA_REPORTS, JAVA_WARM_UP_REPORTS = 2, 4

PRODUCE_FLOOR, CONSUME_FLOOR, LATENCY_FLOOR = 1.2, 1.0, 1.0
FEW_CONNECTIONS_FLOOR, MANY_CONNECTIONS_FLOOR = 0.8, 0.4
CPU_SHARE_MAX = 0.8


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of one client: a value for each figure of its workload, and the broker's CPU seconds per GB, or per
    million requests."""

    values: tuple[float, ...]
    cpu: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A line of the table. `floor` is the least ratio to Kafka; with `less_is_better` the ratio is turned round."""

    name: str
    unit: str
    floor: float | None = None
    less_is_better: bool = False


@dataclass(frozen=True, slots=True)
class Workload:
    """A client to run; `cpu_share_max` is the largest share of Kafka's CPU."""

    figures: tuple[Figure, ...]
    run: Callable[[Run], Sample]
    cpu_share_max: float | None = None


def produce(name: str, run: Callable[[Run], Sample], floor: float | None = PRODUCE_FLOOR) -> Workload:
    return Workload((Figure(name, "MB/s", floor),), run, CPU_SHARE_MAX)


def consume(name: str, run: Callable[[Run], Sample]) -> Workload:
    return Workload((Figure(name, "MB/s", CONSUME_FLOOR),), run, CPU_SHARE_MAX)


def latency(name: str, run: Callable[[Run], Sample]) -> Workload:
    return Workload(tuple(Figure(f"{name}, {p}", "ms", LATENCY_FLOOR, True) for p in ("p50", "p99")), run)


# --- producing


def java_producer(record_bytes: int, warm_up_reports: int, **properties: object) -> Callable[[Run], Sample]:
    """`kafka-producer-perf-test` once it is warm: its first reports, of 5 s each, do not count."""

    def run(here: Run) -> Sample:
        with (
            here.own_topic() as topic,
            here.running(producer_performance(here.bootstrap, topic, ENDLESS, record_bytes, properties)) as client,
        ):
            reports = produced_reports(client)
            for _ in range(here.count(warm_up_reports)):
                next(reports)
            began_s, before = time.monotonic(), here.cpu()
            sent = sum(next(reports) for _ in range(here.count(JAVA_REPORTS)))
            took_s, used = time.monotonic() - began_s, here.cpu() - before
        megabytes = sent * record_bytes / 1e6
        return Sample((megabytes / took_s,), used / (megabytes / 1000))

    return run


def python_producer(library: str, full: int, record_bytes: int = KILOBYTE) -> Callable[[Run], Sample]:
    def run(here: Run) -> Sample:
        with here.own_topic() as topic:
            before = here.cpu()
            done = here.python(
                "compat_tests.bench.load.python_producer",
                *(library, here.bootstrap, topic, str(here.count(full)), str(record_bytes)),
            )
            used = here.cpu() - before
        megabytes = done["count"] * record_bytes / 1e6
        return Sample((megabytes / done["seconds"],), used / (megabytes / 1000))

    return run


def raw_batches(records: int, record_bytes: int) -> Callable[[Run], Sample]:
    """Batches of 16 KB that were made before, five in flight as a stock producer has."""

    def run(here: Run) -> Sample:
        with here.own_topic():
            before = here.cpu()
            size = {"records": records, "record_bytes": record_bytes}
            done = here.raw(in_flight=5, seconds=here.seconds(2), warm_up=0.3, **size)
            used = here.cpu() - before
        sent_gb = done["with_warm_up"] * records * record_bytes / 1e9
        return Sample((done["megabytes"] / done["seconds"],), used / sent_gb)

    return run


def one_record(connections: int, in_flight: int = 1, full_seconds: float = 1.7) -> Callable[[Run], Sample]:
    """Requests of one record of 100 bytes."""

    def run(here: Run) -> Sample:
        with here.own_topic():
            before = here.cpu()
            seconds = here.seconds(full_seconds)
            done = here.raw(connections=connections, in_flight=in_flight, seconds=seconds, warm_up=0.3)
            used = here.cpu() - before
        return Sample((done["count"] / done["seconds"],), used / (done["with_warm_up"] / 1e6))

    return run


# --- consuming what is there


def fill_consumed_topic(here: Run) -> None:
    """What every consumer reads: 1 KB records in batches of 16 KB, still in the page cache."""
    create_topic(here.bootstrap, CONSUMED_TOPIC)
    requests = here.count(REPLAYED_RECORDS) // RAW_BATCH["records"] + 1
    here.python(*raw_arguments(here.bootstrap, CONSUMED_TOPIC, in_flight=5, requests=requests, **RAW_BATCH))
    page_cache.sync(here.partition_dir(CONSUMED_TOPIC))


def _made_cold(here: Run, cold: bool) -> None:
    if cold:
        page_cache.drop(here.partition_dir(CONSUMED_TOPIC))


def java_consumer(*, cold: bool) -> Callable[[Run], Sample]:
    """`kafka-consumer-perf-test` once it is warm: its rate over the last part. CPU is for all that it reads."""

    def run(here: Run) -> Sample:
        _made_cold(here, cold)
        count = here.count(REPLAYED_RECORDS)
        before = here.cpu()
        out = here.client(consumer_performance(here.bootstrap, CONSUMED_TOPIC, count, detailed=True))
        used = here.cpu() - before
        rate = consumed_rate(out, count * REPLAY_WARM_SHARE)
        return Sample((rate * KILOBYTE / 1e6,), used / (count * KILOBYTE / 1e9))

    return run


def kcat_consumer(*, cold: bool) -> Callable[[Run], Sample]:
    """The whole run of kcat, its start too, into /dev/null."""

    def run(here: Run) -> Sample:
        _made_cold(here, cold)
        count = here.count(CONSUMED_RECORDS)
        before = here.cpu()
        options = ("-p", "0", "-o", "beginning", "-c", str(count))
        took_s = float(here.client(seconds_of(kcat(here.bootstrap, CONSUMED_TOPIC, *options))))
        used = here.cpu() - before
        megabytes = count * KILOBYTE / 1e6
        return Sample((megabytes / took_s,), used / (megabytes / 1000))

    return run


# --- following a producer


def _tail_rate(requests: int, began_ns: float, ended_ns: float, used: float) -> Sample:
    """From the producer's first byte until the consumer has the last. CPU is for taking and giving a GB."""
    megabytes = requests * RAW_BATCH["records"] * RAW_BATCH["record_bytes"] / 1e6
    return Sample((megabytes / ((ended_ns - began_ns) / 1e9),), used / (megabytes / 1000))


def java_tail(full_requests: int) -> Callable[[Run], Sample]:
    """`kafka-consumer-perf-test` in its group before a raw producer begins."""

    def run(here: Run) -> Sample:
        requests = here.count(full_requests)
        with here.own_topic() as topic:
            count, group = requests * RAW_BATCH["records"], f"{topic}-group"
            with here.running(consumer_performance(here.bootstrap, topic, count, group)) as consumer:
                admin = admin_client(here.bootstrap)
                eventually(lambda: _is_stable(admin, group), "the consumer in its group")
                before = here.cpu()
                done = here.raw(in_flight=5, requests=requests, **RAW_BATCH)
                out, _ = consumer.communicate(timeout=60)
                used = here.cpu() - before
        read = Consumed.read(out.decode())
        assert read.count == count, f"{read.count} of {count} records read"
        return _tail_rate(requests, done["began_ns"], read.ended_ns, used)

    return run


def _is_stable(admin: AdminClient, group: str) -> bool:
    future = admin.describe_consumer_groups([group], request_timeout=10)[group]
    try:
        return bool(future.result(timeout=15).state.name == "STABLE")
    except KafkaException:  # on one core Kafka may take longer than that to make the topic of offsets
        return False


def kcat_tail(full_requests: int) -> Callable[[Run], Sample]:
    """kcat has read a first record before a raw producer begins. It prints keys, which only that one has, and offsets:
    the long first key comes through its output's buffer at once, the rest costs it little."""

    def run(here: Run) -> Sample:
        requests = here.count(full_requests)
        count = requests * RAW_BATCH["records"]
        with here.own_topic() as topic:
            first = Producer({"bootstrap.servers": here.bootstrap})
            first.produce(topic, key=b"k" * 16_384)
            assert first.flush(30) == 0
            options = ("-p", "0", "-o", "beginning", "-c", str(count + 1), "-f", "%k%o\n")
            with here.running(kcat(here.bootstrap, topic, *options)) as consumer:
                first_output(consumer)
                before = here.cpu()
                raw = raw_arguments(here.bootstrap, topic, in_flight=5, requests=requests, **RAW_BATCH)
                with here.running([sys.executable, "-m", *raw]) as producer:
                    last = _last_line(consumer)
                    ended_ns = time.time_ns()
                    done = json.loads(producer.communicate(timeout=60)[0])
                used = here.cpu() - before
        assert int(last) == count, f"{last!r} is not the last of {count} records"
        return _tail_rate(requests, done["began_ns"], ended_ns, used)

    return run


def _last_line(consumer: subprocess.Popen[bytes]) -> bytes:
    assert consumer.stdout is not None
    return deque(consumer.stdout, maxlen=1).pop()


def following(
    command: Callable[[str, str], list[str]], full_seconds: float, warm_up_seconds: float
) -> Callable[[Run], Sample]:
    """Records at a steady rate, each with the time of its making; its age when the consumer prints it. The first
    seconds are the warm-up of the clients and do not count."""

    def run(here: Run) -> Sample:
        count = int(here.seconds(full_seconds) * FOLLOWED_RATE)
        with here.own_topic() as topic:
            fill(here.bootstrap, topic, ["first"])
            with here.running(command(here.bootstrap, topic)) as consumer:
                first_output(consumer)
                producer = raw_arguments(
                    here.bootstrap, topic, stamped=True, rate=FOLLOWED_RATE, seconds=count / FOLLOWED_RATE
                )
                with here.running([sys.executable, "-m", *producer]):
                    ages = list(ages_s(consumer, count))
        found = percentiles_ms(ages[int(count * warm_up_seconds / full_seconds) :])
        return Sample((found["p50_ms"], found["p99_ms"]))

    return run


def kcat_lines(bootstrap: str, topic: str) -> list[str]:
    return kcat(bootstrap, topic, "-u", "-p", "0", "-o", "beginning", "-f", "%s\n")


def java_end_to_end(full: int = 4_000) -> Callable[[Run], Sample]:
    """One record, acks=1, until the consumer has it, one after the other: EndToEnd.java."""

    def run(here: Run) -> Sample:
        with here.own_topic() as topic:
            command = end_to_end(here.bootstrap, topic, here.count(END_TO_END_WARM_UP), here.count(full))
            done = json.loads(here.client(command))
        return Sample((done["p50_ms"], done["p99_ms"]))

    return run


def _one_record_line(connections: int, in_flight: int) -> Workload:
    many = connections >= 32
    plural = "s" if connections > 1 else ""
    name = f"one-record requests, {connections} connection{plural}, {in_flight} in flight"
    floor = MANY_CONNECTIONS_FLOOR if many else FEW_CONNECTIONS_FLOOR
    return Workload((Figure(name, "requests/s", floor),), one_record(connections, in_flight))


def java_producers(warm_up_reports: int) -> tuple[Workload, ...]:
    def line(what: str, record_bytes: int, **properties: object) -> Workload:
        return produce(f"Java produce {what}", java_producer(record_bytes, warm_up_reports, **properties))

    return (
        line("100 B, 16 KB batches, acks=1", 100, acks=1),
        line("100 B, 256 KB batches, acks=1", 100, acks=1, batch_size=262_144, linger_ms=10),
        line("1 KB, acks=1", KILOBYTE, acks=1),
        line("1 KB, acks=all, idempotent", KILOBYTE, acks="all", enable_idempotence="true"),
        line("1 KB, lz4", KILOBYTE, acks=1, compression_type="lz4"),
        line("1 KB, zstd", KILOBYTE, acks=1, compression_type="zstd"),
    )


PINNED = (
    *java_producers(JAVA_WARM_UP_REPORTS),
    produce("confluent-kafka produce 1 KB, acks=1", python_producer("confluent", 300_000), None),
    produce("kafka-python produce 1 KB, acks=1", python_producer("kafka-python", 50_000), None),
    produce("raw produce, 16 KB batches of 100 B", raw_batches(150, 100), None),
    produce("raw produce, 16 KB batches of 1 KB", raw_batches(16, KILOBYTE), None),
    consume("Java consume 1 KB, warm replay", java_consumer(cold=False)),
    consume("kcat consume 1 KB, warm replay", kcat_consumer(cold=False)),
    consume("Java consume 1 KB, cold replay", java_consumer(cold=True)),
    consume("kcat consume 1 KB, cold replay", kcat_consumer(cold=True)),
    consume("Java consume 1 KB, tail", java_tail(25_000)),
    consume("kcat consume 1 KB, tail", kcat_tail(25_000)),
    *(_one_record_line(connections, 1) for connections in (1, 4, 32, 200)),
    *(_one_record_line(connections, 8) for connections in (1, 4, 32)),
    latency("end-to-end, one record at a time", java_end_to_end()),
    latency(f"end-to-end, Java tail at {FOLLOWED_RATE} records/s", following(console_consumer, 20.0, 15.0)),
    latency(f"end-to-end, kcat tail at {FOLLOWED_RATE} records/s", following(kcat_lines, 6.0, 1.0)),
)

UNPINNED = java_producers(warm_up_reports=1)
"""The client's one core is the limit of these where it has only one, which its compiler has for longer."""
