"""A part of this folder's tests on a cluster with SASL_SSL, SCRAM and ACLs: two brokers of the kind under test, one of
real Kafka. `make compat-secure` runs the whole folder this way.
"""

from __future__ import annotations

import pytest

from compat_tests.cluster.test_failover_state import test_sequences_and_transactions_go_on_at_the_next_leader
from compat_tests.cluster.test_matrix import pytest_generate_tests, test_what_is_acknowledged_stays
from compat_tests.cluster.test_reassignment import test_replicas_move_with_all_that_is_in_them
from compat_tests.overload.raw import Raw
from compat_tests.security.secured import Secured
from compat_tests.support.cluster import Cluster
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.fetch import FetchRequest

__all__ = [
    "pytest_generate_tests",
    "test_replicas_move_with_all_that_is_in_them",
    "test_sequences_and_transactions_go_on_at_the_next_leader",
    "test_what_is_acknowledged_stays",
]


pytestmark = pytest.mark.wide


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Secured:
    return Secured(tmp_path_factory.mktemp("secured"))


def test_a_client_without_cluster_action_is_no_replica(cluster: Cluster, name: str) -> None:
    """What makes the other tests meaningful: brokers are let in for their ACL, not because everyone is."""
    cluster.create(name, "1:2:3,2:3:1,3:1:2")
    cluster.wait_for_isr(name, {1, 2, 3}, 2)
    for number, broker in enumerate(cluster.brokers.values()):
        partition = FetchRequest.FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=1000)
        topic = FetchRequest.FetchTopic(topic=name, partitions=[partition])
        request = FetchRequest(replica_id=99, max_wait_ms=0, min_bytes=0, max_bytes=1000, topics=[topic])
        with Raw(("127.0.0.1", broker.port)) as raw:
            (response,) = raw.ask(request, 11).responses[0].partitions
        assert response.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
