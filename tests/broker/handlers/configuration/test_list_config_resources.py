"""ListConfigResources; what Kafka 4.3.1 responds is in `test_group_configs`."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.broker.handlers.configuration import list_config_resources
from kpybroker.broker.requests.served.apis import SERVED, listed_for
from kpybroker.core.authorizer import CLUSTER_NAME, Operation, ResourceType
from kpybroker.core.features import GROUP_VERSION, VersionRange
from kpybroker.wire import znodes
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.list_config_resources import ListConfigResourcesRequest
from tests.support.brokers.configured_broker import call
from tests.support.brokers.control_broker import Denying
from tests.support.brokers.running_broker import ask, running_broker

FEATURES = {GROUP_VERSION: VersionRange(0, 1)}


async def test_no_type_means_every_type(tmp_path: Path) -> None:
    async with running_broker(tmp_path, features=FEATURES, topics=["t"]) as broker:
        await broker.configs.write(znodes.CONFIG_GROUPS, znodes.group_entity("a/b"), {"x": "1"})
        response = await ask(broker, ListConfigResourcesRequest(), 1)
        found = [(one.resource_type, one.resource_name) for one in response.config_resources]
        assert found == [(32, "a/b"), (8, "0"), (4, "0"), (2, "t")]
        assert (await ask(broker, ListConfigResourcesRequest(), 0)).config_resources == []


async def test_it_needs_the_right_to_describe_configurations_of_the_cluster(tmp_path: Path) -> None:
    async with running_broker(tmp_path, features=FEATURES) as broker:
        denying = Denying({(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME)})
        response = await call(
            broker, list_config_resources, ListConfigResourcesRequest(resource_types=[99]), 1, authorizer=denying
        )
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_a_broker_without_features_of_kafka_4_refuses_it(tmp_path: Path) -> None:
    async with running_broker(tmp_path, features={}) as broker:
        assert (await ask(broker, ListConfigResourcesRequest(), 1)).error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("software", ["apache-kafka-java 4.3.1", "franz-go 1.22"])
def test_it_is_listed_where_it_is_served(software: str) -> None:
    assert listed_for(SERVED, software, FEATURES)[ApiKey.LIST_CONFIG_RESOURCES] == (0, 1)
    assert ApiKey.LIST_CONFIG_RESOURCES not in listed_for(SERVED, software, {})
