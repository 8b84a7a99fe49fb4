"""What each reader reads, and which of them run for a request."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.metrics.jolokia.endpoint import Jolokia
from kpybroker.broker.metrics.measured import Reader
from kpybroker.broker.metrics.metrics import Metrics
from kpybroker.broker.metrics.server import MetricsServer
from kpybroker.http.doors import Door
from kpybroker.http.messages import Request, Response
from kpybroker.metrics.mbeans import Family
from kpybroker.metrics.reading import Reading
from kpybroker.metrics.spelling import Spelling
from tests.broker.replication.test_traffic import produce
from tests.metrics.families import FAMILIES
from tests.support.brokers.running_broker import ask, running_broker
from tests.support.storage.batches import batch

OF_MBEANS = {
    *("TopicsReader", "RequestsReader", "NetworkReader", "PartitionsReader", "ReplicationReader", "LogsReader"),
    "SharesReader",
    *("ControllerReader", "LeadershipReader", "GroupsReader", "StateReader", "ServerReader"),
    *("PurgatoryReader", "ClientMetricsReader"),
}


DOOR = Door(frozenset())


class Counted:
    """A reader that says that it ran."""

    def __init__(self, reader: Reader, ran: list[str]) -> None:
        self._reader = reader
        self._ran = ran

    @property
    def families(self) -> Collection[Family]:
        return self._reader.families

    async def read(self, budget: YieldBudget) -> Sequence[Reading]:
        self._ran.append(type(self._reader).__name__)
        return await self._reader.read(budget)


@asynccontextmanager
async def measured(directory: Path) -> AsyncIterator[Metrics]:
    async with running_broker(directory, topics=["t"], kpybroker_metrics_port="0") as broker:
        await ask(broker, produce("t", batch(b"one")), 9)
        assert broker.metrics is not None
        yield broker.metrics


async def text_of(response: Response) -> str:
    assert response.stream is not None
    return b"".join([piece async for piece in response.stream]).decode()


async def test_a_reader_reads_what_it_says_and_each_family_has_one_reader(tmp_path: Path) -> None:
    async with measured(tmp_path) as metrics:
        for reader in metrics.readers:
            readings = await reader.read(YieldBudget())
            found = [family for reading in readings for family, _ in reading.columns]
            assert set(found) <= set(reader.families), type(reader).__name__
            assert len(found) == len(set(found)), type(reader).__name__
        said = Counter(family for reader in metrics.readers for family in reader.families)
        assert set(said) == set(FAMILIES)
        assert max(said.values()) == 1


@pytest.mark.parametrize(
    ("patterns", "readers"),
    [
        (["kafka.server:type=ReplicaManager,name=PartitionCount"], {"ReplicationReader"}),
        (["kafka.server:type=ReplicaManager,name=LeaderCount"], {"PartitionsReader"}),
        (["kafka.server:type=KafkaServer,name=BrokerState"], {"StateReader"}),
        (["kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec,topic=t"], {"TopicsReader"}),
        (["kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec,partition=0"], set()),
        (["kafka.log:type=Log,name=Size,topic=t,partition=0"], {"PartitionsReader"}),
        (["kafka.controller:type=KafkaController,name=ActiveControllerCount"], {"ControllerReader"}),
        (["kafka.controller:*"], {"ControllerReader", "LeadershipReader"}),
        (["kafka.network:type=R*,*", "kafka.log:type=LogManager,*"], {"RequestsReader", "LogsReader"}),
        (["kafka.coordinator.group:*"], {"GroupsReader"}),
        (["java.lang:*"], set()),
        (["*:*"], OF_MBEANS),
        (["kafka"], set()),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
async def test_only_readers_with_an_mbean_that_can_match_run(
    tmp_path: Path, patterns: list[str], readers: set[str]
) -> None:
    async with measured(tmp_path) as metrics:
        ran: list[str] = []
        counted = [Counted(reader, ran) for reader in metrics.readers]
        ticker = metrics.ticker
        read = MetricsServer(counted, Spelling.JMX_EXPORTER, ticker, DOOR).read
        body = json.dumps([{"type": "read", "mbean": pattern} for pattern in patterns]).encode()
        await text_of(await Jolokia(read, lambda: ticker.rates, ticker.clock).respond(Request("POST", "", {}, body)))
        assert set(ran) == readers
        assert len(ran) == len(readers)


async def test_a_request_without_mbeans_runs_none_and_the_page_of_prometheus_all(tmp_path: Path) -> None:
    async with measured(tmp_path) as metrics:
        ran: list[str] = []
        server = MetricsServer(
            [Counted(one, ran) for one in metrics.readers], Spelling.JMX_EXPORTER, metrics.ticker, DOOR
        )
        jolokia = Jolokia(server.read, lambda: metrics.ticker.rates, metrics.ticker.clock)
        await text_of(await jolokia.respond(Request("GET", "/jolokia/version", {}, b"")))
        assert ran == []
        await server.read()
        assert len(ran) == len(metrics.readers)
