"""kpybroker and Kafka 3.9.1 in one cluster: subscriptions to client metrics are kept, and Kafka passes them over.

Brokers are asked one by one: a tool of Kafka asks any of them, and Kafka 3.9 refuses it.
Nothing here depends on `--broker`: the cluster is mixed by its nature.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.conftest import Launcher
from compat_tests.overload.raw import Raw
from compat_tests.support.cluster import Cluster
from compat_tests.support.groups.serving import has_features
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kpybroker.wire.messages.list_config_resources import ListConfigResourcesRequest
from tests.support.requests.client_metrics_requests import CLIENT_METRICS
from tests.support.requests.config_requests import SET, incremental

OURS, KAFKA, OTHER = 1, 2, 3
PASSED_OVER = "error processing change notification"
RETENTION = "log.retention.ms=77777777"


@pytest.fixture(scope="module")
def cluster(launcher: Launcher) -> Iterator[Cluster]:
    if not has_features("kpybroker"):
        pytest.skip("a broker in the place of Kafka 3.9 has no client metrics")
    keys = {"offsets.topic.replication.factor": "1", "transaction.state.log.replication.factor": "1"}
    kinds = ["kpybroker", "kafka", "kpybroker"]
    made = Cluster(launcher.directory / "client-metrics", launcher.zookeeper("client-metrics"), kinds, keys)
    made.start()
    yield made
    made.close()


def raw(cluster: Cluster, broker_id: int) -> Raw:
    return Raw(("127.0.0.1", cluster.brokers[broker_id].port))


def change(cluster: Cluster, broker_id: int) -> tuple[int, str | None]:
    request = incremental((CLIENT_METRICS, "s", [("metrics", SET, "a")]))
    with raw(cluster, broker_id) as client:
        (one,) = client.ask(request, 1).responses
    return one.error_code, one.error_message


def names(cluster: Cluster, broker_id: int) -> list[str]:
    with raw(cluster, broker_id) as client:
        response = client.ask(ListConfigResourcesRequest(), 0)
    return [one.resource_name for one in response.config_resources]


def asked_for(cluster: Cluster, broker_id: int) -> list[str]:
    with raw(cluster, broker_id) as client:
        response = client.ask(GetTelemetrySubscriptionsRequest(), 0)
    found: list[str] = response.requested_metrics
    return found


def test_every_broker_of_ours_learns_of_a_subscription_and_kafka_passes_it_over(cluster: Cluster) -> None:
    refused = "AlterConfigs is only supported for topics and brokers, but resource type is CLIENT_METRICS"
    assert change(cluster, KAFKA) == (ErrorCode.INVALID_REQUEST, refused)
    assert change(cluster, OURS) == (ErrorCode.NONE, None)
    assert names(cluster, OURS) == ["s"]
    eventually(lambda: names(cluster, OTHER) == ["s"], "the other broker of ours has the subscription")
    assert asked_for(cluster, OTHER) == ["a"]
    kafka = cluster.brokers[KAFKA].service
    eventually(lambda: PASSED_OVER in kafka.output(), "Kafka has seen the notification")
    assert "client-metrics/s" in kafka.output()

    # It goes on with the next notification.
    tools = Tools("3.9.1", cluster.brokers[KAFKA].bootstrap)
    brokers = ("--entity-type", "brokers")
    tools.run("configs", "--alter", *brokers, "--entity-default", "--add-config", RETENTION)
    described = (*brokers, "--entity-name", str(KAFKA), "--describe", "--all")
    eventually(lambda: RETENTION in tools.run("configs", *described).out, "Kafka has the next change")


def test_brokers_of_both_kinds_start_with_a_subscription_in_the_tree(cluster: Cluster) -> None:
    for broker_id in (KAFKA, OTHER):
        cluster.brokers[broker_id].restart()
    assert names(cluster, OTHER) == ["s"]
