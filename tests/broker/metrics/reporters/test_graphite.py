"""Graphite's server as it may be: there, away, slow, gone in the middle."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio
import trio.testing

from kpybroker.broker.loop.clock import SystemClock
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.metrics.readers.groups import LagsReader
from kpybroker.broker.metrics.reporters.graphite import REPORT_S, GraphiteReporter
from kpybroker.broker.metrics.reporters.periodic import ReportError
from kpybroker.broker.metrics.ticker import Ticker
from kpybroker.metrics.graphite import Layout
from kpybroker.metrics.reading import Reading, single
from kpybroker.metrics.tables import log, replication
from tests.broker.replication.test_traffic import produce
from tests.support.brokers.running_broker import ask, running_broker
from tests.support.storage.batches import batch

NAME = "k.kafka.server.ReplicaManager.PartitionCount.value"


async def read_one() -> list[Reading]:
    return [single((replication.PARTITION_COUNT, 3))]


def reporter(
    connect: Callable[[str, int], Awaitable[trio.abc.Stream]] = trio.open_tcp_stream,
    port: int = 1,
    read: Callable[[], Awaitable[list[Reading]]] = read_one,
) -> GraphiteReporter:
    return GraphiteReporter("127.0.0.1", port, Layout("k"), read, Ticker(SystemClock(), (), (), ()), connect)


async def received(listener: trio.SocketListener) -> list[str]:
    """The lines of one connection, which the sender closes."""
    async with await listener.accept() as stream:
        return b"".join([piece async for piece in stream]).decode().splitlines()


async def listening() -> tuple[trio.SocketListener, int]:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    return listener, listener.socket.getsockname()[1]


async def test_a_report_is_one_connection_with_the_time_of_the_reading() -> None:
    listener, port = await listening()
    sends = reporter(port=port)
    async with listener:
        for _ in range(2):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(sends.report)
                before = SystemClock().time_ms() // 1000
                (line,) = await received(listener)
            name, value, time = line.split(" ")
            assert (name, value) == (NAME, "3")
            assert before <= int(time) <= SystemClock().time_ms() // 1000


async def test_a_server_that_is_down_is_an_error_and_the_broker_is_not_read() -> None:
    listener, port = await listening()
    await listener.aclose()

    async def read() -> list[Reading]:
        raise AssertionError("it was read")

    with pytest.raises(ReportError, match=r"^Connection refused$"):
        await reporter(port=port, read=read).report()


async def test_a_host_that_does_not_exist_is_an_error() -> None:
    async def connect(host: str, port: int) -> trio.abc.Stream:
        raise OSError(-2, "Name or service not known")

    with pytest.raises(ReportError, match=r"^Name or service not known$"):
        await reporter(connect).report()


async def test_a_server_that_does_not_read_holds_one_reading_for_a_bounded_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    readings = 0

    async def connect(host: str, port: int) -> trio.abc.Stream:
        ours, _ = trio.testing.lockstep_stream_pair()
        return ours

    async def read() -> list[Reading]:
        nonlocal readings
        readings += 1
        return await read_one()

    began = trio.current_time()
    with pytest.raises(ReportError, match=f"^it took longer than {REPORT_S:g} s$"):
        await reporter(connect, read=read).report()
    assert (readings, trio.current_time() - began) == (1, REPORT_S)


async def test_a_server_that_does_not_accept_ends_within_the_same_time(autojump_clock: trio.testing.MockClock) -> None:
    async def connect(host: str, port: int) -> trio.abc.Stream:
        await trio.sleep_forever()
        raise AssertionError

    with pytest.raises(ReportError, match="it took longer"):
        await reporter(connect).report()


async def test_a_server_that_goes_away_in_the_middle_is_an_error() -> None:
    async def connect(host: str, port: int) -> trio.abc.Stream:
        ours, theirs = trio.testing.memory_stream_pair()
        await theirs.aclose()
        return ours

    with pytest.raises(ReportError):
        await reporter(connect).report()


async def test_a_large_reading_is_sent_in_pieces_and_others_run_in_between() -> None:
    rows = [(f"topic-{index}", "0") for index in range(20_000)]
    listener, port = await listening()

    async def read() -> list[Reading]:
        return [Reading(rows, [(log.SIZE, list(range(len(rows))))])]

    steps = 0

    async def count_steps() -> None:
        nonlocal steps
        while True:
            await trio.lowlevel.checkpoint()
            steps += 1

    async with listener, trio.open_nursery() as others:
        others.start_soon(count_steps)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reporter(port=port, read=read).report)
            lines = await received(listener)
        assert len(lines) == len(rows)
        assert steps > len(rows) / 1000
        others.cancel_scope.cancel()


async def test_a_broker_with_kafkas_settings_reports_what_it_counted(tmp_path: Path) -> None:
    listener, port = await listening()
    async with (
        listener,
        running_broker(
            tmp_path,
            topics=["t"],
            kafka_metrics_reporters="com.criteo.kafka.KafkaGraphiteMetricsReporter",
            kafka_metrics_polling_interval_secs="1",
            kafka_graphite_metrics_reporter_enabled="true",
            kafka_graphite_metrics_host="127.0.0.1",
            kafka_graphite_metrics_port=str(port),
            kafka_graphite_metrics_group="test.broker1",
            kafka_graphite_metrics_exclude_regex="kafka.log.*",
            kafka_graphite_dimension_enabled_median="false",
        ) as broker,
    ):
        assert broker.metrics is not None
        assert broker.metrics.url is None
        await ask(broker, produce("t", batch(b"one", b"two")), 9)
        lines = await received(listener)
    values = {line.split(" ")[0]: line.split(" ")[1] for line in lines}
    start = "test.broker1.kafka"
    assert values[f"{start}.server.BrokerTopicMetrics.topic.t.MessagesInPerSec.count"] == "2"
    assert values[f"{start}.server.BrokerTopicMetrics.MessagesInPerSec.count"] == "2"
    assert f"{start}.network.RequestMetrics.request.Produce.TotalTimeMs.99percentile" in values
    assert not [name for name in values if name.endswith(".median") or name.startswith(f"{start}.log.")]
    assert len(values) == len(lines)


async def test_what_is_not_sent_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def read(self: LagsReader, budget: YieldBudget) -> list[Reading]:
        raise AssertionError("lags were read, for which other brokers are asked")

    monkeypatch.setattr(LagsReader, "read", read)
    listener, port = await listening()
    async with (
        listener,
        running_broker(
            tmp_path,
            kafka_metrics_reporters="com.criteo.kafka.KafkaGraphiteMetricsReporter",
            kafka_metrics_polling_interval_secs="1",
            kafka_graphite_metrics_reporter_enabled="true",
            kafka_graphite_metrics_host="127.0.0.1",
            kafka_graphite_metrics_port=str(port),
        ),
    ):
        lines = await received(listener)
    assert any("kafka.coordinator.group.GroupMetadataManager.NumGroups.value" in line for line in lines)
