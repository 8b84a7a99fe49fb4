"""The broker's side of compaction, with real processes: what it cleans, and what happens after a cleaning fails."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.broker.cluster.config_repository import ConfigRepository
from kpybroker.broker.maintenance import cleaner_process
from kpybroker.broker.maintenance.log_cleaner import LogCleaner
from kpybroker.config.broker import BrokerConfig
from kpybroker.config.topic import LogConfig
from kpybroker.storage.cleaning.process import IO_ERROR, NO_SPACE, Failed, encode_event
from kpybroker.storage.disk.checkpoints import decode_offsets
from kpybroker.storage.log.append import ProducedBatches
from kpybroker.storage.log.log import Log
from kpybroker.wire.messages.delete_topics import DeleteTopicsRequest
from kpybroker.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kpybroker.wire.records.builder import build_batch
from tests.support.brokers.host import fake_host
from tests.support.brokers.running_broker import ask, create_topic, settings
from tests.support.network.memory_transport import MemoryTransport
from tests.support.storage.keyed_load import all_records

WITHIN_S = 60
COMPACT: dict[str, Any] = {"cleanup_policy": "compact", "segment_bytes": "3000", "min_cleanable_dirty_ratio": "0.01"}
TOPIC, BROKER = 2, 4


async def until(condition: Callable[[], object]) -> None:
    """Polls, because another process may be what changes the condition."""
    with trio.fail_after(WITHIN_S):
        while True:
            if condition():
                return
            await trio.sleep(0.01)


@asynccontextmanager
async def cleaning_broker(directory: Path, **keys: str) -> AsyncIterator[Broker]:
    """Its tree is in the directory, so that topics survive a restart."""
    config = BrokerConfig(settings(directory, **{"log_cleaner_backoff_ms": "20", **keys}))
    async with Broker.open(config, transport=MemoryTransport()) as broker:
        yield broker


def fill(broker: Broker, topic: str = "t", count: int = 200, keys: int = 5) -> Log:
    partition = broker.replicas.partition(topic, 0)
    assert partition is not None
    now_ms = broker.clock.time_ms()
    for number in range(count):
        batch = build_batch([(b"key %d" % (number % keys), b"value %d" % number, now_ms)])
        partition.append(ProducedBatches(batch, now_ms, 9), 1)
    return partition.online_log()


def dirty_end(log: Log) -> int:
    return log.active_segment.base_offset


def is_clean(log: Log) -> bool:
    return log.cleaner_offset == dirty_end(log) and log.cleaning is None


def checkpoint(directory: Path) -> dict[str, int]:
    path = directory / "cleaner-offset-checkpoint"
    found = decode_offsets(path.read_bytes(), str(path)) if path.exists() else {}
    return {partition.topic: offset for partition, offset in found.items()}


def leftovers(directory: Path) -> list[str]:
    return [path.name for path in directory.glob("*/*.cleaned")]


async def alter(broker: Broker, kind: int, name: str, key: str, value: str) -> None:
    config = IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=0, value=value)
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=[config]
    )
    response = await ask(broker, IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert response.responses[0].error_code == 0, response


def instead(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Run a process with this code instead of the cleaner."""
    monkeypatch.setattr(cleaner_process, "COMMAND", (sys.executable, "-c", code))


def failing(kind: str) -> str:
    line = encode_event(Failed(kind, "it failed", "here"))
    return f"import sys\nfor job in sys.stdin.buffer: sys.stdout.buffer.write({line!r}); sys.stdout.flush()"


DYING = "import sys; sys.stdin.buffer.readline(); sys.exit(7)"


async def test_dirty_logs_are_cleaned_checkpointed_and_left_alone(tmp_path: Path) -> None:
    async with cleaning_broker(tmp_path, log_cleaner_threads="2") as broker:
        await create_topic(broker, "plain", segment_bytes="3000")
        plain = fill(broker, "plain")
        logs = []
        for name in ("t", "u", "v"):
            await create_topic(broker, name, **COMPACT)
            logs.append(fill(broker, name))
        await until(lambda: all(is_clean(log) for log in logs))
        await until(lambda: checkpoint(tmp_path) == {name: dirty_end(logs[0]) for name in ("t", "u", "v")})
        for log in logs:
            end = dirty_end(log)
            assert [r.offset for r in all_records(log) if r.offset < end] == list(range(end - 5, end))
        assert len(all_records(plain)) == 200
        assert leftovers(tmp_path) == []
    async with cleaning_broker(tmp_path) as broker:
        found = broker.logs.get("t", 0)
        assert found is not None
        assert is_clean(found)
        assert len(all_records(fill(broker))) > 200
        await until(partial(is_clean, found))
        assert len(all_records(found)) < 60


async def test_without_the_cleaner_nothing_is_cleaned(tmp_path: Path) -> None:
    async with cleaning_broker(tmp_path, log_cleaner_enable="false") as broker:
        await create_topic(broker, "t", **COMPACT)
        log = fill(broker)
        await trio.testing.wait_all_tasks_blocked()
        assert "log_cleaner" not in broker.__dict__
        assert log.cleaner_offset is None


async def test_a_damaged_log_becomes_uncleanable_and_the_others_are_cleaned(tmp_path: Path) -> None:
    async with cleaning_broker(tmp_path) as broker:
        await create_topic(broker, "bad", cleanup_policy="delete", segment_bytes="3000")
        bad = fill(broker, "bad")
        path = tmp_path / "bad-0" / f"{0:020d}.log"
        data = bytearray(path.read_bytes())
        data[500] ^= 0xFF
        path.write_bytes(data)
        await create_topic(broker, "t", **COMPACT)
        await alter(broker, TOPIC, "bad", "cleanup.policy", "compact")
        await until(lambda: bad in broker.log_cleaner.uncleanable)
        log = fill(broker)
        await until(lambda: is_clean(log))
        assert bad.cleaner_offset is None
        assert path.read_bytes() == data
        assert leftovers(tmp_path) == []


async def test_a_process_that_dies_is_restarted_and_then_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    instead(monkeypatch, DYING)
    caplog.set_level(logging.WARNING)
    async with cleaning_broker(tmp_path) as broker:
        await create_topic(broker, "t", **COMPACT)
        log = fill(broker)
        await until(lambda: "log_cleaner" in broker.__dict__ and log in broker.log_cleaner.uncleanable)
        assert len(all_records(log)) == 200
    said = [record.getMessage() for record in caplog.records if record.name == "kafka.log.LogCleaner"]
    assert len([line for line in said if "is tried again" in line and "exit code 7" in line]) == 2
    assert len([line for line in said if "Marking its partition (t-0) as uncleanable" in line]) == 1


async def test_a_process_that_recovers_is_forgiven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = cleaner_process.COMMAND
    instead(monkeypatch, DYING)
    async with cleaning_broker(tmp_path) as broker:
        await create_topic(broker, "t", **COMPACT)
        log = fill(broker)
        await until(lambda: "log_cleaner" in broker.__dict__ and broker.log_cleaner._crashes)
        monkeypatch.setattr(cleaner_process, "COMMAND", whole)
        await until(lambda: is_clean(log))
        assert not broker.log_cleaner._crashes


async def test_a_full_disk_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = cleaner_process.COMMAND
    instead(monkeypatch, failing(NO_SPACE))
    async with cleaning_broker(tmp_path) as broker:
        await create_topic(broker, "t", **COMPACT)
        log = fill(broker)
        await until(lambda: "log_cleaner" in broker.__dict__ and log in broker.log_cleaner._not_before)
        assert log not in broker.log_cleaner.uncleanable
        monkeypatch.setattr(cleaner_process, "COMMAND", whole)
        await until(lambda: is_clean(log))


async def test_an_input_output_error_takes_the_directory_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instead(monkeypatch, failing(IO_ERROR))
    async with cleaning_broker(tmp_path, log_dirs=f"{tmp_path / 'a'},{tmp_path / 'b'}") as broker:
        await create_topic(broker, "t", **COMPACT)
        log = fill(broker)
        await until(lambda: log.log_dir in broker.logs.dirs.offline)
        assert len(broker.logs.dirs.live) == 1


# --- cleanings that are called off: at a byte a second they would take hours

SLOW = {"log_cleaner_io_max_bytes_per_second": "1"}


async def under_way(broker: Broker, **configs: Any) -> Log:
    await create_topic(broker, "t", **{**COMPACT, **configs})
    log = fill(broker)
    await until(lambda: log.cleaning is not None)
    return log


def is_idle(broker: Broker) -> bool:
    return not (broker.log_cleaner._busy or broker.log_cleaner._workers)


async def test_the_end_of_the_broker_cancels_a_cleaning(tmp_path: Path) -> None:
    async with cleaning_broker(tmp_path, **SLOW) as broker:
        log = await under_way(broker)
    assert log.is_closed
    assert leftovers(tmp_path) == []
    assert checkpoint(tmp_path) == {}


async def test_a_deleted_topic_is_not_cleaned_and_its_checkpoint_is_removed(tmp_path: Path) -> None:
    async with cleaning_broker(tmp_path, log_cleaner_backoff_ms="3600000") as broker:
        await create_topic(broker, "t", **COMPACT)
        log = fill(broker)
        await until(lambda: checkpoint(tmp_path) == {"t": dirty_end(log)})
        response = await ask(broker, DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000), 4)
        assert response.responses[0].error_code == 0
        await until(lambda: checkpoint(tmp_path) == {})
    async with cleaning_broker(tmp_path, **SLOW) as broker:
        log = await under_way(broker)
        response = await ask(broker, DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000), 4)
        assert response.responses[0].error_code == 0
        await until(lambda: log.is_closed and is_idle(broker))
        await create_topic(broker, "t", **COMPACT)
        again = fill(broker, count=10)
        assert again.cleaner_offset is None
        assert len(all_records(again)) == 10


async def test_a_topic_that_is_not_compacted_any_more_is_left_alone(tmp_path: Path) -> None:
    async with cleaning_broker(tmp_path, **SLOW) as broker:
        log = await under_way(broker)
        await alter(broker, TOPIC, "t", "cleanup.policy", "delete")
        await until(lambda: is_idle(broker))
        assert len(all_records(log)) == 200
        assert log not in broker.log_cleaner.uncleanable
        assert leftovers(tmp_path) == []


async def test_a_truncation_cancels_the_cleaning_and_the_rest_is_cleaned_again(tmp_path: Path) -> None:
    async with cleaning_broker(tmp_path, **SLOW) as broker:
        log = await under_way(broker)
        log.truncate_to(100, now_ms=broker.clock.time_ms())
        await until(lambda: log.cleaning is not None)
        assert len(all_records(log)) <= 100
        await alter(broker, BROKER, "", "log.cleaner.io.max.bytes.per.second", "1e12")
        await until(lambda: is_clean(log))
        assert len(all_records(log)) < 50


async def test_a_changed_configuration_restarts_the_cleaner(tmp_path: Path) -> None:
    """The running cleaning is cancelled, and the cleaner does not wait for its backoff."""
    async with cleaning_broker(tmp_path, log_cleaner_backoff_ms="3600000", **SLOW) as broker:
        log = await under_way(broker)
        await alter(broker, BROKER, "", "log.cleaner.io.max.bytes.per.second", "1e12")
        await until(lambda: is_clean(log))


async def test_retention_of_a_compacted_topic_is_the_cleaners(tmp_path: Path) -> None:
    both: dict[str, Any] = {**COMPACT, "cleanup_policy": "compact,delete", "retention_ms": "3600000"}
    async with cleaning_broker(tmp_path, log_retention_check_interval_ms="3600000") as broker:
        await create_topic(broker, "t", **both)
        log = fill(broker)
        await until(lambda: is_clean(log))
        for segment in log.segments():
            os.utime(segment.records.path, (1, 1))
        log.increment_log_start_offset(dirty_end(log))
        await until(lambda: log.segments()[0].base_offset == dirty_end(log))


async def test_the_cleaner_works_without_a_broker(tmp_path: Path) -> None:
    async with fake_host(tmp_path, log_cleaner_backoff_ms="20") as host:
        config = LogConfig.from_props(
            {name.replace("_", "."): value for name, value in COMPACT.items()}, host.config.log_defaults
        )
        log = host.logs.get_or_create("t", 0, bytes(15) + b"t", config, host.clock.time_ms(), is_new=True)
        for number in range(200):
            now_ms = host.clock.time_ms()
            batch = build_batch([(b"key %d" % (number % 5), b"value", now_ms)])
            log.append_as_leader(ProducedBatches(batch, now_ms), 0)
        log.update_high_watermark(log.log_end_offset)
        cleaner = LogCleaner(host, ConfigRepository(host), [])
        host.spawn("cleaner", cleaner.run)
        await until(lambda: is_clean(log))
        assert len(all_records(log)) < 60
        assert host.failed_dirs == []
        await cleaner.stop()
