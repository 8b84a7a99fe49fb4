"""What a handler may use of the broker: every service there is.

Handlers route requests to services, so they see them all; a service sees its `Host` and a few others. `app.Broker`
is the only implementation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kpybroker.broker.loop.host import Host

if TYPE_CHECKING:
    from kpybroker.broker.client_metrics.service import ClientMetrics
    from kpybroker.broker.cluster.config_repository import ConfigRepository
    from kpybroker.broker.cluster.controller import ClusterController
    from kpybroker.broker.cluster.features import Features
    from kpybroker.broker.cluster.metadata_cache import MetadataCache
    from kpybroker.broker.cluster.producer_ids import ProducerIds
    from kpybroker.broker.cluster.topic_admin import TopicAdmin
    from kpybroker.broker.coordinators.coordinators import Coordinators
    from kpybroker.broker.coordinators.groups import GroupCoordinators
    from kpybroker.broker.coordinators.transaction_markers import TransactionMarkers
    from kpybroker.broker.coordinators.transaction_verification import TransactionVerifier
    from kpybroker.broker.coordinators.transactions import TransactionCoordinators
    from kpybroker.broker.peers.peers import Peers
    from kpybroker.broker.replication.fetch_service import FetchService
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.broker.replication.replicas import Replicas
    from kpybroker.broker.requests.clients import FirstTimes
    from kpybroker.broker.requests.dispatch import Dispatcher
    from kpybroker.broker.security.acls import Acls
    from kpybroker.broker.security.tokens import DelegationTokens
    from kpybroker.core.log.header_trust import CaughtClients


class Broker(Host, Protocol):
    """All services of one broker."""

    cluster_id: str
    dispatcher: Dispatcher
    metadata: MetadataCache
    features: Features
    configs: ConfigRepository
    client_metrics: ClientMetrics
    producer_ids: ProducerIds
    replicas: Replicas
    fetch_service: FetchService
    controller: ClusterController
    coordinators: Coordinators
    topics: TopicAdmin
    peers: Peers
    first_times: FirstTimes
    caught_clients: CaughtClients
    acls: Acls | None
    """None without `authorizer.class.name`."""
    tokens: DelegationTokens | None
    """None without `delegation.token.secret.key`."""

    @property
    def groups(self) -> GroupCoordinators:
        """Built when the first group or offset is asked for."""

    @property
    def transactions(self) -> TransactionCoordinators:
        """Built when the first transaction is asked for."""

    @property
    def markers(self) -> TransactionMarkers:
        """Writes the ends of transactions."""

    @property
    def verifier(self) -> TransactionVerifier:
        """Asks coordinators about the batches of transactions."""

    def flush_soon(self, partition: Partition) -> None:
        """A segment was rolled: bring it to disk next to the requests."""
