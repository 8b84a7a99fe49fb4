"""Alerts that one broker causes: as in `test_cluster_faults`, what is scraped is real, and only time is made up."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from compat_tests.alerts.conftest import MakeMeasured
from compat_tests.alerts.promtool import OF_THE_MACHINE, firing
from compat_tests.alerts.scraped import Course, Page, scrape, total
from compat_tests.alerts.test_cluster_faults import QUIET_MINUTES, check, page_with
from compat_tests.support import quick
from compat_tests.support.machine.loop_disk import MIB, LoopDisk, may_mount
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually
from kpybroker.system import IS_PORTABLE

BUSY_S_MAX = 400
BEGIN_S = QUIET_MINUTES * 60
LAG = "kafka_consumergroup_lag_sum"
IDLE = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
UNCLEANABLE = "kafka_log_logcleanermanager_uncleanable_partitions_count"
USABLE, VOLUME = (f"kpybroker_log_directory_{name}_bytes" for name in ("usable", "total"))


@pytest.fixture(scope="module")
def lone(measured: MakeMeasured) -> Broker:
    return measured(log_cleaner_backoff_ms="100", offsets_topic_num_partitions="1")


def page_of(broker: Broker) -> Page:
    return scrape({"broker": broker})


def test_a_group_falls_behind(lone: Broker, tmp_path: Path) -> None:
    """It reads nothing any more, and records arrive. A console consumer that was ended does not count."""
    quick.create_topic(lone.bootstrap, "behind")
    quick.fill(lone.bootstrap, "behind", ["first"])
    for group in ("readers", "console-consumer-12345"):
        quick.read(lone.bootstrap, [("behind", 0)], 1, group=group)
    pages = [page_of(lone)]
    for count in (1100, 100, 100, 100):
        quick.fill(lone.bootstrap, "behind", ["later"] * count)
        pages.append(page_of(lone))
    lags = [total(page, LAG, consumergroup="readers") for page in pages]
    assert lags == [0, 1100, 1200, 1300, 1400]
    course = Course().hold(pages[0], QUIET_MINUTES)
    for page in pages[1:]:
        course.hold(page, 5)
    check(tmp_path, course, [firing(BEGIN_S + 9 * 60), firing(course.end_s, "KafkaGroupLagGrows")])


def test_a_group_commits_nothing(lone: Broker, tmp_path: Path) -> None:
    """Its member keeps its partition by heartbeats, and does not move on."""
    quick.create_topic(lone.bootstrap, "stuck")
    quick.fill(lone.bootstrap, "stuck", ["read"] * 5)
    settings = {"bootstrap.servers": lone.bootstrap, "group.id": "stuck", "enable.auto.commit": False}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", **quick.QUIET})
    try:
        consumer.subscribe(["stuck"])
        assert len(consumer.consume(5, quick.DEADLINE_S)) == 5
        consumer.commit(offsets=[TopicPartition("stuck", 0, 5)], asynchronous=False)
        before = page_of(lone)
        quick.fill(lone.bootstrap, "stuck", ["not read"] * 50)
        during = page_of(lone)
    finally:
        consumer.close()
    after = page_of(lone)
    assert [total(page, LAG, consumergroup="stuck") for page in (before, during, after)] == [0, 50, 50]
    course = Course().hold(before, QUIET_MINUTES).hold(during, 10).hold(after, 1)
    begin_s, end_s = BEGIN_S + 5 * 60, BEGIN_S + 10 * 60 - 1
    check(tmp_path, course, [firing(begin_s - 15), firing(end_s, "KafkaGroupStalled"), firing(course.end_s)])


def test_a_log_cannot_be_compacted(lone: Broker, tmp_path: Path) -> None:
    """A batch of an old segment is damaged."""
    quick.create_topic(lone.bootstrap, "damaged", segment_bytes=2000, min_cleanable_dirty_ratio=0.01)
    for number in range(6):
        quick.fill(lone.bootstrap, "damaged", [f"{number:01000}"])
    before = page_of(lone)
    segment = lone.data_dir / "damaged-0" / f"{0:020}.log"
    with segment.open("r+b") as file:
        file.seek(-10, os.SEEK_END)
        file.write(b"?" * 10)
    resource = ConfigResource(
        ResourceType.TOPIC,
        "damaged",
        incremental_configs=[ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)],
    )
    admin = quick.admin_client(lone.bootstrap)
    admin.incremental_alter_configs([resource])[resource].result(quick.DEADLINE_S)
    during = page_with(lambda page: total(page, UNCLEANABLE) == 1, "a partition that fails", lambda: page_of(lone))
    course = Course().hold(before, QUIET_MINUTES).hold(during, 7)
    check(tmp_path, course, [firing(BEGIN_S + 4 * 60), firing(course.end_s, "KafkaLogsUncleanable")])


def test_a_disk_fills_up(measured: MakeMeasured, tmp_path: Path) -> None:
    """A small disk of its own. Where mounting is not allowed, what was scraped is changed: a twentieth is free."""
    disk = LoopDisk(tmp_path, 32 * MIB) if may_mount() else None
    if disk is not None:
        disk.mount()
    try:
        broker = measured(**{} if disk is None else {"log_dirs": str(disk.path / "data")})
        before = page_of(broker)
        if disk is None:
            during: Page = {
                series: value / 20 if series.name == USABLE else value
                for series, value in {**before, **_usable_is_all(before)}.items()
            }
            before = {**before, **_usable_is_all(before)}
        else:
            with (disk.path / "other").open("wb") as other:
                os.posix_fallocate(other.fileno(), 0, int(total(before, USABLE) * 0.95))
            during = page_of(broker)
        broker.stop()
    finally:
        if disk is not None:
            disk.close()
    assert total(before, USABLE) / total(before, VOLUME) > 0.5
    course = Course().hold(before, QUIET_MINUTES).hold(during, 7)
    loop = OF_THE_MACHINE - {"KafkaDiskNearlyFull"}
    questions = [firing(BEGIN_S + 4 * 60, leaving_out=loop)]
    check(tmp_path, course, [*questions, firing(course.end_s, "KafkaDiskNearlyFull", leaving_out=loop)])


def _usable_is_all(page: Page) -> Page:
    return {series: page[series._replace(name=VOLUME)] for series in page if series.name == USABLE}


@pytest.mark.skipif(IS_PORTABLE, reason="how many descriptors are open is known on Linux only")
def test_descriptors_run_out(measured: MakeMeasured, tmp_path: Path) -> None:
    """Connections take more than seven tenths of a limit that was lowered."""
    broker = measured()
    process = psutil.Process(broker.service.pid)
    limit = 400
    process.rlimit(psutil.RLIMIT_NOFILE, (limit, limit))
    before = page_of(broker)
    with contextlib.ExitStack() as stack:
        for _ in range(limit * 7 // 10):
            stack.enter_context(socket.create_connection(("127.0.0.1", broker.port), timeout=quick.DEADLINE_S))
        during = page_with(
            lambda page: total(page, "process_open_fds") > 0.7 * limit, "open descriptors", lambda: page_of(broker)
        )
    assert total(during, "process_max_fds") == limit
    broker.stop()
    course = Course().hold(before, QUIET_MINUTES).hold(during, 7)
    check(tmp_path, course, [firing(BEGIN_S + 4 * 60), firing(course.end_s, "KafkaDescriptorsNearlyUsedUp")])


@contextlib.contextmanager
def flood(broker: Broker) -> Iterator[None]:
    """Requests of one record each, as many as two producers send."""
    ended = threading.Event()

    def send() -> None:
        settings = {"bootstrap.servers": broker.bootstrap, "batch.num.messages": 1, "acks": 1, "linger.ms": 0}
        producer = Producer({**settings, **quick.QUIET})
        while not ended.is_set():
            with contextlib.suppress(BufferError):
                producer.produce("flood", b"x")
                continue
            producer.poll(0.01)
        producer.purge()

    threads = [threading.Thread(target=send) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def test_the_loop_is_busy(measured: MakeMeasured, tmp_path: Path) -> None:
    """The share is that of the last minute, and at first that of the first five seconds: the load begins with the
    broker. If it begins later, it needs more than a minute.
    """
    broker = measured()
    before = page_of(broker)
    with flood(broker):
        during = page_with(lambda page: 0 < total(page, IDLE) < 0.3, "a busy loop", lambda: page_of(broker), BUSY_S_MAX)
    broker.service.kill()
    disk = OF_THE_MACHINE - {"KafkaLoopBusy"}
    course = Course().hold(before, QUIET_MINUTES).hold(during, 13)
    questions = [firing(BEGIN_S + 9 * 60, leaving_out=disk)]
    check(tmp_path, course, [*questions, firing(course.end_s, "KafkaLoopBusy", leaving_out=disk)])


def test_a_page_is_as_prometheus_has_it(lone: Broker) -> None:
    """The labels of the target, and `up`."""
    page = page_of(lone)
    assert total(page, "up", instance="broker", job="kafka") == 1
    eventually(lambda: total(page_of(lone), IDLE, instance="broker") > 0, "some idle time")
