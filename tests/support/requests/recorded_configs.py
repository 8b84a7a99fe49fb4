"""Requests about configurations that were recorded at a Kafka: a broker of ours is asked the same."""

from __future__ import annotations

from typing import Any

from kpybroker.broker.app import Broker
from kpybroker.wire.messages.describe_configs import DescribeConfigsRequest
from kpybroker.wire.messages.list_config_resources import ListConfigResourcesRequest
from tests.support.brokers.running_broker import ask
from tests.support.requests.config_requests import incremental, legacy


async def played(broker: Broker, step: dict[str, Any]) -> Any:
    """The response to a recorded request, in the form of the record."""
    version = step["version"]
    if step["api"] == "ListConfigResources":
        response = await ask(broker, ListConfigResourcesRequest(resource_types=step["types"]), version)
        listed = sorted([one.resource_type, one.resource_name] for one in response.config_resources)
        return [response.error_code, listed]
    if step["api"] == "DescribeConfigs":
        resources = [
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=keys
            )
            for kind, name, keys in step["resources"]
        ]
        response = await ask(
            broker, DescribeConfigsRequest(resources=resources, include_synonyms=step["synonyms"]), version
        )
        return [
            [one.resource_type, one.resource_name, one.error_code, one.error_message, [entry(e) for e in one.configs]]
            for one in response.results
        ]
    is_old = step["api"] == "AlterConfigs"
    changes: list[tuple[int, str, Any]] = [
        (kind, name, [(key, value) if is_old else (key, op, value) for key, op, value in entries])
        for kind, name, entries in step["resources"]
    ]
    make: Any = legacy if is_old else incremental
    response = await ask(broker, make(*changes, validate_only=step["validate_only"]), version)
    return [[one.resource_type, one.resource_name, one.error_code, one.error_message] for one in response.responses]


def entry(one: Any) -> list[Any]:
    synonyms = [[synonym.name, synonym.value, synonym.source] for synonym in one.synonyms]
    return [one.name, one.value, one.config_type, one.config_source, one.read_only, one.is_sensitive, synonyms]
