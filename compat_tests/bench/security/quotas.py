"""`make bench-quotas`: how near clients come to the rate that a quota sets, on Kafka and on kpybroker.

    python -m compat_tests.bench.security.quotas [--rate 1000000] [--seconds 30]

Kafka's producer-perf-test and consumer-perf-test and confluent-kafka, each alone on a topic of one partition, with a
client id that has `producer_byte_rate` and `consumer_byte_rate`. The bytes of records are counted: acknowledged ones by
the end of the partition, read ones by the client. Requests and responses have a little more than records, so a rate is
a little below the quota. Both brokers are measured at the same time, and are mostly idle.

Offered is a quarter more than the quota. Both brokers keep the quota over ten to twelve seconds: a client that could
do much more would use all of that at once, and then wait until the samples of its burst are old, so that one window of
thirty seconds has two bursts or three. Consumers fetch one batch of 50 KB at a time: what the quota counts is then what
they read. With larger fetches a response ends within a batch, and that part of it is fetched twice.

The first seconds do not count. Printed is the mean rate of all windows of thirty seconds that begin within two such
periods, and the lowest and highest. Exits with 1 when a mean of ours is further from the quota than 5 percent.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.bench.measuring.brokers import KIND_NAMES, Cores, both_brokers, compile_sources, scratch_directory
from compat_tests.support.quick import QUIET, create_topic
from compat_tests.support.services import Broker
from compat_tests.support.tools import Tools

CLIENT_ID = "limited"
RECORD_BYTES = 2_000
WARM_S = 15.0
OFFERED = 1.25
FETCH_BYTES = 1  # the first batch is sent whole
BATCH_BYTES = 50_000
PERIODS_S = 24.0
SAMPLE_S = 0.25
OFF_MAX = 0.05
DEADLINE_S = 120.0

Count = Callable[[], int]
"""Bytes of records so far."""


class Load:
    """One client at its quota on one broker; `topic` has what a consumer needs."""

    def __init__(self, broker: Broker, topic: str, rate: int) -> None:
        self.bootstrap = broker.bootstrap
        self.directory = broker.data_dir.parent
        self.topic = topic
        self.offered = int(rate * OFFERED)

    def client(self, **more: object) -> dict[str, object]:
        return {"bootstrap.servers": self.bootstrap, "client.id": CLIENT_ID, **QUIET, **more}


@contextmanager
def java_producer(load: Load) -> Iterator[Count]:
    arguments = ["--topic", load.topic, "--num-records", "100000000", "--record-size", str(RECORD_BYTES)]
    props = [f"bootstrap.servers={load.bootstrap}", f"client.id={CLIENT_ID}", "delivery.timeout.ms=600000"]
    command = Tools("3.9.1", load.bootstrap).command(
        "producer-perf-test", *arguments, "--throughput", str(load.offered // RECORD_BYTES), "--producer-props", *props
    )
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process, _end_of(load) as count:
        try:
            yield count
        finally:
            process.kill()


@contextmanager
def confluent_producer(load: Load) -> Iterator[Count]:
    with _offering(load, load.client()), _end_of(load) as count:
        yield count


@contextmanager
def _offering(load: Load, config: dict[str, object]) -> Iterator[None]:
    """Write records at the offered rate; what does not fit into the producer's queue is left out."""
    batches = {"linger.ms": 100, "batch.size": BATCH_BYTES, "queue.buffering.max.messages": 5_000}
    producer = Producer(config | batches | QUIET)
    stop = threading.Event()

    def produce() -> None:
        value, began, written = bytes(RECORD_BYTES), time.monotonic(), 0
        while not stop.wait(0.01):
            due = int((time.monotonic() - began) * load.offered / RECORD_BYTES)
            while written < due:
                written += 1
                with suppress(BufferError):
                    producer.produce(load.topic, value)
            producer.poll(0)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        producer.purge()


@contextmanager
def _end_of(load: Load) -> Iterator[Count]:
    consumer = Consumer({"bootstrap.servers": load.bootstrap, "group.id": "none", **QUIET})
    partition = TopicPartition(load.topic, 0)
    try:
        yield lambda: int(consumer.get_watermark_offsets(partition, timeout=DEADLINE_S)[1]) * RECORD_BYTES
    finally:
        consumer.close()


@contextmanager
def java_consumer(load: Load) -> Iterator[Count]:
    """What it has read is in its lines, one a second: `time, thread, MB, MB/s, records, ...`."""
    settings = load.directory / f"{load.topic}.properties"
    settings.write_text(f"client.id={CLIENT_ID}\n")
    arguments = ["--topic", load.topic, "--messages", "100000000", "--timeout", "600000", "--show-detailed-stats"]
    arguments += ["--fetch-size", str(FETCH_BYTES)]
    command = Tools("3.9.1", load.bootstrap).command(
        "consumer-perf-test", *arguments, "--reporting-interval", "1000", "--consumer.config", str(settings)
    )
    read = 0

    def follow(lines: Iterator[str]) -> None:
        nonlocal read
        for line in lines:
            cells = re.split(r",\s+", line.strip())
            if len(cells) > 5 and cells[4].isdigit():
                read = int(cells[4]) * RECORD_BYTES

    with (
        _offering(load, {"bootstrap.servers": load.bootstrap}),
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        thread = threading.Thread(target=follow, args=[process.stdout])
        thread.start()
        try:
            yield lambda: read
        finally:
            process.kill()
            thread.join()


@contextmanager
def confluent_consumer(load: Load) -> Iterator[Count]:
    consumer = Consumer(
        load.client(**{"group.id": load.topic, "auto.offset.reset": "earliest", "fetch.message.max.bytes": FETCH_BYTES})
    )
    consumer.subscribe([load.topic])
    stop = threading.Event()
    read = 0

    def consume() -> None:
        nonlocal read
        while not stop.is_set():
            read += sum(len(message.value() or b"") for message in consumer.consume(1_000, 0.1))

    thread = threading.Thread(target=consume)
    thread.start()
    try:
        with _offering(load, {"bootstrap.servers": load.bootstrap}):
            yield lambda: read
    finally:
        stop.set()
        thread.join()
        consumer.close()


CLIENTS = {
    "producer-perf-test": java_producer,
    "confluent-kafka producer": confluent_producer,
    "consumer-perf-test": java_consumer,
    "confluent-kafka consumer": confluent_consumer,
}


def limit(broker: Broker, rate: int) -> None:
    values = f"producer_byte_rate={rate},consumer_byte_rate={rate}"
    Tools("3.9.1", broker.bootstrap).run(
        "configs", "--alter", "--entity-type", "clients", "--entity-name", CLIENT_ID, "--add-config", values
    )


def rates_of(name: str, broker: Broker, options: argparse.Namespace) -> list[float]:
    """In each window, as a share of the quota."""
    topic = name.replace(" ", "-")
    create_topic(broker.bootstrap, topic, 1)
    with CLIENTS[name](Load(broker, topic, options.rate)) as count:
        deadline = time.monotonic() + DEADLINE_S
        while count() == 0 and time.monotonic() < deadline:
            time.sleep(SAMPLE_S)
        time.sleep(WARM_S)
        samples = [(time.monotonic(), count())]
        while samples[-1][0] < samples[0][0] + PERIODS_S + options.seconds:
            time.sleep(SAMPLE_S)
            samples.append((time.monotonic(), count()))
    width = round(len(samples) * options.seconds / (PERIODS_S + options.seconds))
    windows = zip(samples, samples[width:], strict=False)
    return [(last - first) / (end - begin) / options.rate for (begin, first), (end, last) in windows]


def described(rates: list[float]) -> str:
    return f"{statistics.mean(rates):.1%} ({min(rates):.1%} to {max(rates):.1%})"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rate", type=int, default=1_000_000, help="bytes a second [1000000]")
    parser.add_argument("--seconds", type=float, default=30.0, help="that count, of each client [30]")
    parser.add_argument("--only", default="", help="only the clients with this in their name")
    parser.add_argument("--dir", help="where the brokers keep their files [the system's temporary directory]")
    options = parser.parse_args()
    compile_sources()
    table = [f"| of {options.rate:,} bytes/s | Kafka 3.9.1 | kpybroker |", "| --- | --- | --- |"]
    met = True
    with scratch_directory(options.dir) as scratch, both_brokers(scratch, Cores.shared()) as brokers:
        for broker in brokers.values():
            limit(broker, options.rate)
        for name in CLIENTS:
            if options.only not in name:
                continue
            with ThreadPoolExecutor(len(brokers)) as pool:
                running = {kind: pool.submit(rates_of, name, broker, options) for kind, broker in brokers.items()}
            rates = {kind: one.result() for kind, one in running.items()}
            table.append(f"| {name} | {' | '.join(described(rates[kind]) for kind in KIND_NAMES)} |")
            print(table[-1], file=sys.stderr, flush=True)
            met = met and abs(statistics.mean(rates["kpybroker"]) - 1) <= OFF_MAX
    print("\n".join(table))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
