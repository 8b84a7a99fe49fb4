"""What the metrics see of the broker, and what a reader is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from kpybroker.broker.loop.host import Host

if TYPE_CHECKING:
    from kpybroker.broker.client_metrics.received import ReceivedMetrics
    from kpybroker.broker.client_metrics.service import ClientMetrics
    from kpybroker.broker.cluster.controller import ClusterController
    from kpybroker.broker.cluster.features import Features
    from kpybroker.broker.cluster.metadata_cache import MetadataCache
    from kpybroker.broker.coordinators.coordinators import Coordinators
    from kpybroker.broker.lifecycle.state import BrokerState
    from kpybroker.broker.loop.stall import LoopStallGauge
    from kpybroker.broker.loop.yielding import YieldBudget
    from kpybroker.broker.maintenance.log_cleaner import LogCleaner
    from kpybroker.broker.peers.peers import Peers
    from kpybroker.broker.replication.fetch_service import FetchService
    from kpybroker.broker.replication.replicas import Replicas
    from kpybroker.broker.requests.connection import BoundListener
    from kpybroker.broker.requests.dispatch import Dispatcher
    from kpybroker.broker.requests.server import Server
    from kpybroker.metrics.mbeans import Family
    from kpybroker.metrics.reading import Reading


class Measured(Host, Protocol):
    """The parts of one broker that count something."""

    bound: list[BoundListener]
    client_metrics: ClientMetrics
    cluster_id: str
    """Once it has started."""
    controller: ClusterController
    coordinators: Coordinators
    dispatcher: Dispatcher
    features: Features
    fetch_service: FetchService
    metadata: MetadataCache
    peers: Peers
    received_metrics: ReceivedMetrics
    """What clients push."""
    replicas: Replicas
    server: Server
    stall: LoopStallGauge
    state: BrokerState

    @property
    def cleaner(self) -> LogCleaner | None:
        """None while there was never a log to compact."""


class Reader(Protocol):
    """Some of the families."""

    @property
    def families(self) -> Collection[Family]:
        """All that it may read: a reader none of whose families is asked for is not run."""

    async def read(self, budget: YieldBudget) -> Sequence[Reading]:
        """Their values now. Work over many elements is counted in `budget`."""
