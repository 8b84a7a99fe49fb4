"""The configuration repository: reading, watching, applying, keeping notifications in order."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.broker.cluster.config_repository import NOTIFICATION_AGE_MAX_MS
from kpybroker.broker.loop.clock import Clock
from kpybroker.config.topic import LogConfig
from kpybroker.core import tree as t
from kpybroker.wire import znodes
from tests.support.brokers.configured_broker import configured_broker


async def tell(broker: Broker, entity_type: str, entity: str, props: dict[str, str]) -> None:
    """What a change by another broker, or by a tool, leaves in the tree."""
    path = znodes.config_path(entity_type, entity)
    if await broker.tree.exists(path) is None:
        await broker.tree.create(path, znodes.encode_config(props))
    else:
        await broker.tree.set(path, znodes.encode_config(props))
    await notify(broker, znodes.encode_config_change(f"{entity_type}/{entity}"))


async def notify(broker: Broker, data: bytes) -> None:
    await broker.tree.create(znodes.config_change_path(), data, sequential=True)


class Heard:
    """Waits for topic changes to be applied."""

    def __init__(self, broker: Broker) -> None:
        self._send, self._receive = trio.open_memory_channel[tuple[str, LogConfig]](100)
        broker.configs.on_topic_change(lambda topic, config: self._send.send_nowait((topic, config)))

    async def next(self) -> tuple[str, LogConfig]:
        return await self._receive.receive()


async def test_another_brokers_change_is_applied_to_the_log(tmp_path: Path) -> None:
    async with configured_broker(tmp_path, "t") as broker:
        heard = Heard(broker)
        await tell(broker, "topics", "t", {"retention.ms": "7"})
        topic, config = await heard.next()
        log = broker.logs.get("t", 0)
        assert log is not None
        assert (topic, config.retention_ms, log.config.retention_ms) == ("t", 7, 7)
        assert broker.configs.topic_config("t") is config
        assert broker.configs.topic_overrides("t") == {"retention.ms": "7"}


async def test_an_invalid_notification_does_not_stop_the_next(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with configured_broker(tmp_path, "t") as broker:
        heard = Heard(broker)
        await notify(broker, b"not json")
        await notify(broker, znodes.encode_config_change("planets/mars"))
        await tell(broker, "topics", "t", {"retention.ms": "7"})
        assert (await heard.next())[1].retention_ms == 7
    assert "cannot be read and is ignored" in caplog.text
    assert "'planets', which is not a kind of entity" in caplog.text


async def test_changes_of_clients_are_ignored(tmp_path: Path) -> None:
    async with configured_broker(tmp_path, "t") as broker:
        heard = Heard(broker)
        await notify(broker, znodes.encode_config_change("clients/app"))
        await tell(broker, "topics", "t", {"retention.ms": "7"})
        assert (await heard.next())[0] == "t"


async def test_a_broker_default_reaches_every_topic_that_does_not_override_it(tmp_path: Path) -> None:
    async with configured_broker(tmp_path, "a", "b") as broker:
        await broker.configs.write("topics", "a", {"segment.bytes": "100"})
        await broker.configs.write("brokers", "<default>", {"log.segment.bytes": "4096"})
        assert broker.configs.topic_config("a").segment_bytes == 100
        assert broker.configs.topic_config("b").segment_bytes == 4096
        await broker.configs.write("brokers", "<default>", {})
        assert broker.configs.topic_config("b").segment_bytes == 1024**3


async def test_configuration_outlives_the_broker(tmp_path: Path) -> None:
    async with configured_broker(tmp_path, "t") as broker:
        await broker.configs.write("topics", "t", {"retention.ms": "7"})
        await broker.configs.write("brokers", "0", {"log.segment.bytes": "4096"})
    async with configured_broker(tmp_path) as broker:
        log = broker.logs.get("t", 0)
        assert log is not None
        assert (log.config.retention_ms, log.config.segment_bytes) == (7, 4096)


async def test_a_new_topic_of_an_old_name_has_its_own_settings(tmp_path: Path) -> None:
    # There is no notification, so only `prefetch` reads.
    path = znodes.config_path("topics", "t")
    async with configured_broker(tmp_path, "t") as broker:
        await broker.tree.set(path, znodes.encode_config({"retention.ms": "7"}))
        await broker.configs.prefetch({"t": True})
        broker.configs.forget("t")
        assert broker.configs.topic_overrides("t") == {}
        await broker.tree.set(path, znodes.encode_config({"retention.ms": "9"}))
        await broker.configs.prefetch({"t": True})
        assert broker.configs.topic_config("t").retention_ms == 9
        await broker.tree.set(path, znodes.encode_config({"retention.ms": "11"}))
        await broker.configs.prefetch({"t": False})
        assert broker.configs.topic_config("t").retention_ms == 9


async def test_of_two_reads_the_later_one_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = znodes.config_path("topics", "t")
    async with configured_broker(tmp_path, "t") as broker:
        submit_many, slow = broker.tree.submit_many, trio.Event()
        held: list[trio.Event] = [slow]

        async def late(ops: Sequence[t.Operation]) -> list[t.Result | t.TreeError]:
            responses = await submit_many(ops)
            if held and t.path_of(ops[0]) == path:
                await held.pop().wait()
            return responses

        await broker.tree.set(path, znodes.encode_config({"retention.ms": "7"}))
        async with trio.open_nursery() as nursery:
            monkeypatch.setattr(broker.tree, "submit_many", late)
            nursery.start_soon(broker.configs.prefetch, {"t": True})
            await trio.testing.wait_all_tasks_blocked()
            await submit_many([t.SetData(path, znodes.encode_config({"retention.ms": "9"}))])
            nursery.start_soon(broker.configs.prefetch, {"t": True})
            await trio.testing.wait_all_tasks_blocked()
            slow.set()
        assert broker.configs.topic_config("t").retention_ms == 9


async def test_invalid_values_in_the_tree_are_ignored_with_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with configured_broker(tmp_path, "t") as broker:
        heard = Heard(broker)
        await tell(broker, "topics", "t", {"retention.ms": "x", "segment.bytes": "100", "future.key": "1"})
        _, config = await heard.next()
        assert (config.retention_ms, config.segment_bytes) == (604_800_000, 100)
        with caplog.at_level(logging.INFO):
            await tell(broker, "brokers", "0", {"message.max.bytes": "x", "log.dirs": "/x", "log.segment.bytes": "50"})
            await heard.next()
        assert broker.config.get_int("log.segment.bytes") == 50
    assert "Topic t: Invalid value x for configuration retention.ms" in caplog.text
    assert "Dynamic broker config log.dirs is ignored: it cannot be changed dynamically" in caplog.text


async def test_layers_that_contradict_each_other_change_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with configured_broker(tmp_path) as broker:
        await broker.configs.write("brokers", "0", {"listener.name.x.max.connections": "-1"})
        assert broker.config.dynamic_broker == {}
    assert "is ignored: Invalid value -1" in caplog.text


async def test_outdated_notifications_are_removed(tmp_path: Path) -> None:
    class Later(Clock):
        def __init__(self, broker: Broker) -> None:
            self._clock = broker.clock

        def time_ms(self) -> int:
            return self._clock.time_ms() + NOTIFICATION_AGE_MAX_MS + 60_000

        def monotonic(self) -> float:
            return self._clock.monotonic()

    async with configured_broker(tmp_path, "t") as broker:
        await broker.configs.write("topics", "t", {"retention.ms": "7"})
        assert (await broker.tree.children(znodes.CONFIG_CHANGES)).names
        broker.clock = Later(broker)
        await broker.configs.process_pending_changes()
        assert (await broker.tree.children(znodes.CONFIG_CHANGES)).names == ()


async def test_many_entities_are_read_in_batches(tmp_path: Path) -> None:
    async with configured_broker(tmp_path) as broker:
        names = [f"t{number}" for number in range(1200)]
        assert await broker.configs.read_many("topics", names) == [{}] * 1200
