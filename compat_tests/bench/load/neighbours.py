"""What a hot producer has to live next to: each a context manager that makes the broker busy for as long as its block,
and says afterwards for which share of that time it did.

Clients among them run with the idle scheduling policy, so that they do not keep the measuring client from its core.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from compat_tests.bench.load import page_cache
from compat_tests.bench.load.clients import IDLE_PRIORITY, Run, kcat
from compat_tests.bench.load.workloads import KILOBYTE, RAW_BATCH
from compat_tests.support.quick import admin_client
from compat_tests.support.tools import run_process

# What the brokers are started with, so that their background work begins when it is asked for.
OVERRIDES = {
    "log.cleaner.backoff.ms": "500",
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
}
COMPACTED_MB, COMPACTED_SEGMENT_BYTES, KEYS = 600, 64 << 20, 40_000
EXPIRED_MB, EXPIRED_SEGMENT_BYTES = 400, 1 << 20
REPLAYED_MB = 1000
SLOW_CONSUMERS, SLOW_BYTES_PER_S = 16, 2_000_000
LOOK_S = 0.05


class Busy:
    """Filled by a neighbour: the share of its block in which it had something to do."""

    share = 0.0


Neighbour = Callable[[Run], AbstractContextManager[Busy]]


def _fill(here: Run, megabytes: float, **options: object) -> None:
    size = RAW_BATCH["records"] * RAW_BATCH["record_bytes"]
    here.raw(in_flight=5, requests=max(int(here.scale * megabytes * 1e6 / size), 1), **RAW_BATCH, **options)


def _set_topic_config(here: Run, key: str, value: str) -> None:
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, here.topic, incremental_configs=[entry])
    admin = admin_client(here.bootstrap)
    admin.incremental_alter_configs([resource])[resource].result(timeout=30)


@contextmanager
def no_neighbour(_: Run) -> Iterator[Busy]:
    yield Busy()


@contextmanager
def compaction(here: Run) -> Iterator[Busy]:
    """One long, dirty log, which may be cleaned from the beginning of the block on."""
    config: dict[str, Any] = {
        "cleanup_policy": "compact",
        "segment_bytes": COMPACTED_SEGMENT_BYTES,
        "min_cleanable_dirty_ratio": 1,
    }
    checkpoint = here.broker.data_dir / "cleaner-offset-checkpoint"
    with here.own_topic(**config):
        _fill(here, COMPACTED_MB, keys=KEYS)
        page_cache.sync(here.partition_dir(here.topic))
        with _busy_until(lambda: checkpoint.exists() and f"{here.topic} 0 " in checkpoint.read_text()) as busy:
            _set_topic_config(here, "min.cleanable.dirty.ratio", "0.01")
            yield busy


@contextmanager
def retention(here: Run) -> Iterator[Busy]:
    """Hundreds of segments, all of which but the last may go from the beginning of the block on."""
    with here.own_topic(segment_bytes=EXPIRED_SEGMENT_BYTES, file_delete_delay_ms=500):
        _fill(here, EXPIRED_MB)
        page_cache.sync(here.partition_dir(here.topic))
        partition = here.partition_dir(here.topic)
        with _busy_until(lambda: _log_files(partition) <= 2) as busy:
            _set_topic_config(here, "retention.bytes", "1")
            yield busy


def _log_files(partition: Path) -> int:
    """Those marked as deleted too."""
    return sum(".log" in file.name for file in partition.iterdir())


@contextmanager
def cold_replay(here: Run) -> Iterator[Busy]:
    """kcat reads a log that is not in the page cache, again and again."""
    with here.own_topic() as topic:
        _fill(here, REPLAYED_MB)
        partition = here.partition_dir(topic)
        page_cache.sync(partition)
        count = str(int(here.scale * REPLAYED_MB * 1e6 / KILOBYTE) - RAW_BATCH["records"])
        command = kcat(here.bootstrap, topic, "-p", "0", "-o", "beginning", "-c", count)

        def replay() -> None:
            page_cache.drop(partition)
            run_process(["taskset", "-c", ",".join(map(str, here.client_cores)), *IDLE_PRIORITY, *command])

        with _again_and_again(replay) as busy:
            yield busy


@contextmanager
def slow_consumers(here: Run) -> Iterator[Busy]:
    """Each asks for megabytes and takes them in at a trickle."""
    with here.own_topic() as topic:
        _fill(here, REPLAYED_MB)
        arguments = (here.bootstrap, topic, str(SLOW_CONSUMERS), str(SLOW_BYTES_PER_S))
        module = "compat_tests.bench.load.slow_consumer"
        with here.running([*IDLE_PRIORITY, sys.executable, "-m", module, *arguments]):
            busy = Busy()
            busy.share = 1.0  # `running` fails if one of them was cut off
            yield busy


NEIGHBOURS: dict[str, Neighbour] = {
    "alone": no_neighbour,
    "a compaction": compaction,
    "retention": retention,
    "a cold replay": cold_replay,
    f"{SLOW_CONSUMERS} slow consumers": slow_consumers,
}


@contextmanager
def _busy_until(done: Callable[[], bool]) -> Iterator[Busy]:
    """Looks again and again whether it is done."""
    busy, ended, stop = Busy(), time.monotonic() + 1e9, threading.Event()
    begin = time.monotonic()

    def look() -> None:
        nonlocal ended
        while not stop.wait(LOOK_S):
            if done():
                ended = time.monotonic()
                return

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield busy
    finally:
        stop.set()
        watcher.join()
        now = time.monotonic()
        busy.share = (min(ended, now) - begin) / (now - begin)


@contextmanager
def _again_and_again(act: Callable[[], None]) -> Iterator[Busy]:
    """In a thread; what it does when the block ends, it does to the end. Its failure is the block's."""
    busy, stop = Busy(), threading.Event()
    failures: list[BaseException] = []

    def repeat() -> None:
        try:
            while not stop.is_set():
                act()
                busy.share = 1.0
        except BaseException as error:
            failures.append(error)

    worker = threading.Thread(target=repeat)
    worker.start()
    try:
        yield busy
    finally:
        stop.set()
        worker.join()
    if failures:
        raise failures[0]
