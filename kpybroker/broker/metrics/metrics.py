"""All of it: the readers, the ticker, the endpoint and the reporters of one broker."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.metrics.readers.client_metrics import ClientMetricsReader
from kpybroker.broker.metrics.readers.cluster import ClusterReader
from kpybroker.broker.metrics.readers.controller import ControllerReader, LeadershipReader
from kpybroker.broker.metrics.readers.groups import GroupsReader, LagsReader
from kpybroker.broker.metrics.readers.logs import LogsReader
from kpybroker.broker.metrics.readers.network import NetworkReader
from kpybroker.broker.metrics.readers.partitions import PartitionsReader, ReplicationReader
from kpybroker.broker.metrics.readers.process import ProcessReader
from kpybroker.broker.metrics.readers.requests import RequestsReader
from kpybroker.broker.metrics.readers.server_state import PurgatoryReader, ServerReader, StateReader
from kpybroker.broker.metrics.readers.shares import SharesReader
from kpybroker.broker.metrics.readers.topics import TopicsReader
from kpybroker.broker.metrics.reporters.configured import reporters
from kpybroker.broker.metrics.reporters.periodic import Periodic
from kpybroker.broker.metrics.server import MetricsServer, door_of
from kpybroker.broker.metrics.ticker import Ticker
from kpybroker.broker.requests.stage_times import StageTimes
from kpybroker.metrics.spelling import Spelling

if TYPE_CHECKING:
    from kpybroker.broker.metrics.measured import Measured, Reader

logger = logging.getLogger("kafka.server.KafkaServer")


class Metrics:
    """`prepare` before the broker starts, so that a port that is taken ends the start at once; `start` at its end.

    Until `start` a page has the state of the broker and the process only: other parts do not exist yet.
    """

    def __init__(self, broker: Measured) -> None:
        self._broker = broker
        times = StageTimes(lambda: broker.stall.woke)
        self._times = times
        network = NetworkReader(
            broker.server, broker.stall, lambda: [bound.name for bound in broker.bound], trio.current_time
        )
        topics = TopicsReader(broker.replicas.traffic)
        requests = RequestsReader(broker.dispatcher, times, broker.fetch_service.follower_requests)
        replication = ReplicationReader(broker.replicas)
        controller = ControllerReader(broker.controller)
        state, groups, clients = ServerReader(broker), GroupsReader(broker), ClientMetricsReader(broker)
        shares = SharesReader(broker)
        early = (StateReader(broker), ProcessReader())
        self.readers: tuple[Reader, ...] = (
            *(topics, requests, network, PartitionsReader(broker), replication, LogsReader(broker)),
            *(controller, LeadershipReader(broker.controller), groups, LagsReader(broker), clients),
            shares,
            *(state, PurgatoryReader(broker), ClusterReader(broker), *early),
        )
        self._served: list[Reader] = list(early)
        self.ticker = Ticker(
            broker.clock,
            (topics, requests, network, replication, controller, state, shares),
            (network.tick, groups.tick, clients.tick, shares.tick, lambda: times.tick(broker.dispatcher.routes)),
            (times.rotate, shares.rotate),
        )
        self.server = MetricsServer(
            self._served,
            Spelling(broker.config.get_str("kpybroker.metrics.spelling")),
            self.ticker,
            door_of(broker.config),
            broker.received_metrics.series,
        )
        self.address: tuple[str, int] | None = None
        self._reporters: list[Periodic] = []

    def prepare(self) -> None:
        """Bind the port, if there is one, and serve; make the reporters. Raises StartupError."""
        config = self._broker.config
        port = config.get_optional_int("kpybroker.metrics.port")
        self._reporters = reporters(self._broker, self.server.read, self.ticker)
        if port is not None:
            self.address = self.server.listen(config.get_str("kpybroker.metrics.host"), port)
            self._broker.spawn("metrics-server", self.server.serve)

    @property
    def url(self) -> str | None:
        """Where the page is; None without a port."""
        if self.address is None:
            return None
        host, port = self.address
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"

    def start(self) -> None:
        """Serve all of it, report, and begin to sample requests."""
        broker = self._broker
        self._served[:] = self.readers
        broker.dispatcher.time_requests(self._times)
        broker.spawn("metrics-ticker", self.ticker.run)
        for reporter in self._reporters:
            broker.spawn("metrics-reporter", reporter.run)
        if self.address is not None:
            logger.info("[KafkaServer id=%d] Metrics at %s", broker.node_id, self.url)

    def close(self) -> None:
        """Free the port of a broker that did not start."""
        self.server.close()
