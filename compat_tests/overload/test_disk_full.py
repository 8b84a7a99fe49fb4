"""A full disk is no end: producers get an error, readers read on, and when there is space again everything goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import NewTopic

from compat_tests.conftest import Launcher
from compat_tests.overload.disk import SmallDisk
from compat_tests.support import quick
from compat_tests.support.machine.loop_disk import MIB
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually

SIZE = 16 * MIB
VALUE = "x" * 50_000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    made = SmallDisk(tmp_path / "disk", SIZE, 4 * SIZE)
    yield made
    made.close()


@pytest.fixture
def small_broker(launcher: Launcher, disk: SmallDisk) -> Iterator[Broker]:
    broker = launcher.broker(
        log_dirs=str(disk.path / "data"),
        log_flush_offset_checkpoint_interval_ms="300",
        log_flush_start_offset_checkpoint_interval_ms="300",
        replica_high_watermark_checkpoint_interval_ms="300",
        offsets_topic_num_partitions="1",
    )
    disk.apply(broker.service.pid)
    yield broker
    broker.service.kill()


class Reports:
    """What became of each record."""

    def __init__(self, bootstrap: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "acks": "all", "retries": 0, "batch.num.messages": 1}
        self.producer = Producer({**settings, **quick.QUIET})
        self.offsets: list[int] = []
        self.errors: list[KafkaError] = []

    def write(self, count: int) -> None:
        def report(error: KafkaError | None, message: object) -> None:
            if error is None:
                self.offsets.append(message.offset())  # type: ignore[attr-defined]
            else:
                self.errors.append(error)

        for _ in range(count):
            self.producer.produce("filling", VALUE.encode(), partition=0, on_delivery=report)
        assert self.producer.flush(120) == 0


def test_a_full_disk_refuses_appends_and_nothing_else(small_broker: Broker, disk: SmallDisk) -> None:
    quick.create_topic(small_broker.bootstrap, "filling", 1, segment_bytes=2 * MIB)
    quick.create_topic(small_broker.bootstrap, "other", 1)
    quick.fill(small_broker.bootstrap, "other", ["before"])
    quick.read(small_broker.bootstrap, [("other", 0)], 1, group="readers")
    reports = Reports(small_broker.bootstrap)
    for _ in range(2 * SIZE // len(VALUE) // 20):
        reports.write(20)
        if reports.errors:
            break
    assert {error.code() for error in reports.errors} == {KafkaError.KAFKA_STORAGE_ERROR}, reports.errors
    stored = len(reports.offsets)
    assert stored > 50
    # Full it stays, over several rounds of checkpoints, attempts to append, and reading.
    for _ in range(5):
        refused = len(reports.errors)
        reports.write(3)
        assert len(reports.errors) > refused
        stored = len(reports.offsets)
        found = quick.read(small_broker.bootstrap, [("filling", 0)], stored)
        assert [message.offset() for message in found] == reports.offsets
    assert len(quick.read(small_broker.bootstrap, [("other", 0)], 1)) == 1
    assert small_broker.service.running, small_broker.service.tail()

    disk.grow()

    def goes_on() -> bool:
        before = len(reports.offsets)
        reports.write(1)
        return len(reports.offsets) > before

    eventually(goes_on, "appends, now that there is space")
    reports.write(20)
    assert reports.offsets == list(range(len(reports.offsets)))
    quick.create_topic(small_broker.bootstrap, "later", 1)
    quick.fill(small_broker.bootstrap, "later", ["after"])
    small_broker.restart()
    found = quick.read(small_broker.bootstrap, [("filling", 0)], len(reports.offsets))
    assert {message.value() for message in found} == {VALUE.encode()}
    assert quick.committed(small_broker.bootstrap, "readers", [("other", 0)]) == [1]
    assert "Traceback" not in small_broker.service.output()


def test_a_stop_while_the_disk_is_full_is_orderly_and_keeps_what_was_acknowledged(
    small_broker: Broker, disk: SmallDisk
) -> None:
    quick.create_topic(small_broker.bootstrap, "filling", 1)
    reports = Reports(small_broker.bootstrap)
    while not reports.errors:
        reports.write(20)
    disk.fill()
    # The coordination file too, though its own pages may still have room for some topics.
    admin = quick.admin_client(small_broker.bootstrap)
    made = (admin.create_topics([NewTopic(f"more-{n}", 1, 1)])[f"more-{n}"] for n in range(500))
    assert any(topic.exception(timeout=120) for topic in made) or not disk.is_mounted
    assert small_broker.service.stop() == 0, small_broker.service.tail()
    assert "Traceback" not in small_broker.service.output()
    assert "shut down completed" in small_broker.service.output()

    disk.grow()
    small_broker.start()
    found = quick.read(small_broker.bootstrap, [("filling", 0)], len(reports.offsets))
    assert [message.offset() for message in found] == reports.offsets


def test_killed_on_a_full_disk_it_loses_nothing_and_starts_once_there_is_room(
    small_broker: Broker, disk: SmallDisk
) -> None:
    if not disk.is_mounted:
        pytest.skip("a limit on file size does not outlive the process")
    quick.create_topic(small_broker.bootstrap, "filling", 1, segment_bytes=2 * MIB)
    reports = Reports(small_broker.bootstrap)
    while not reports.errors:
        reports.write(20)
    disk.fill()
    small_broker.service.kill()
    with pytest.raises(RuntimeError, match="make space on its disk"):
        small_broker.start()
    assert "Traceback" not in small_broker.service.output()
    disk.grow()
    small_broker.start()
    found = quick.read(small_broker.bootstrap, [("filling", 0)], len(reports.offsets))
    assert [message.offset() for message in found] == reports.offsets
    reports.write(1)
    assert len(found) in reports.offsets
