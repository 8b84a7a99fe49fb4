"""Settings of what confluent-kafka cannot name: groups (KIP-848), subscriptions to client metrics (KIP-714), and all
brokers of a cluster at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kpybroker.client.connect.errors import CommandError, broker_error, check
from kpybroker.client.connect.wire import WireBroker, WireCluster
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.describe_configs import DescribeConfigsRequest
from kpybroker.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kpybroker.wire.messages.list_config_resources import ListConfigResourcesRequest

TOPIC: Final = 2
BROKER: Final = 4
CLIENT_METRICS: Final = 16
GROUP: Final = 32
"""Kafka's numbers of types of resources."""
TYPES: Final = {
    1: "boolean",
    2: "string",
    3: "int",
    4: "short",
    5: "long",
    6: "double",
    7: "list",
    8: "class",
    9: "password",
}
"""Of values, by Kafka's numbers."""
EXPLAINED: Final = 3
"""The version of DescribeConfigs that has the broker's words on a key (KIP-569)."""
ALL_BROKERS: Final = ""
"""The name of the setting of all brokers."""


class RawEntry(NamedTuple):
    """A setting, with the fields of confluent-kafka's `ConfigEntry` that are used."""

    name: str
    value: str | None
    source: int
    is_sensitive: bool
    is_read_only: bool
    documentation: str | None = None
    """What the broker says of it, if it was asked."""
    type: int = 0
    """Kafka's number of the type of its value, one of TYPES; 0 where the broker is too old to say."""


def names(wire: WireCluster, kind: int) -> list[str]:
    """The resources of a type for which something was set. Raises CommandError, also for a broker that has no such
    settings.
    """
    request = ListConfigResourcesRequest(resource_types=[kind])
    response = wire.any().request(ApiKey.LIST_CONFIG_RESOURCES, request)
    check(response.error_code)
    return sorted(one.resource_name for one in response.config_resources)


def describe(
    wire: WireCluster,
    kind: int,
    names: Iterable[str],
    broker: WireBroker | None = None,
    *,
    keys: Sequence[str] | None = None,
) -> dict[str, list[RawEntry] | CommandError]:
    """The settings by name, or why they cannot be described: of all keys, or of these. With `broker` that one is asked,
    for its words too.
    """
    wanted = None if keys is None else list(keys)
    resources = [
        DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=wanted
        )
        for name in names
    ]
    if not resources:
        return {}
    request = DescribeConfigsRequest(resources=resources)
    asked = wire.any() if broker is None else broker
    request.include_documentation = broker is not None and asked.version_of(ApiKey.DESCRIBE_CONFIGS) >= EXPLAINED
    response = asked.request(ApiKey.DESCRIBE_CONFIGS, request)
    found: dict[str, list[RawEntry] | CommandError] = {}
    for one in response.results:
        entries = [
            RawEntry(
                entry.name,
                entry.value,
                entry.config_source,
                entry.is_sensitive,
                entry.read_only,
                entry.documentation or None,
                entry.config_type,
            )
            for entry in one.configs
        ]
        found[one.resource_name] = broker_error(one.error_code, one.error_message) or entries
    return found


def alter(
    wire: WireCluster,
    kind: int,
    name: str,
    changes: Iterable[tuple[str, int, str | None]],
    *,
    validate_only: bool = False,
) -> None:
    """Change keys: (key, Kafka's number of the operation, value). Raises CommandError, and then nothing has changed.

    A broker's own settings are changed by that broker. With `validate_only` the changes are checked, and not made.
    """
    configs = [
        IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    if kind == BROKER and name != ALL_BROKERS:
        broker = wire.broker(int(name))
    else:
        broker = wire.broker(wire.controller_id) if wire.controller_id in wire.nodes else wire.any()
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    (result,) = broker.request(ApiKey.INCREMENTAL_ALTER_CONFIGS, request).responses
    check(result.error_code, result.error_message)
