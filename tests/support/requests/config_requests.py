"""AlterConfigs and IncrementalAlterConfigs requests in short form: (type, name, [(key, value)...]) and [(key, op,
value)...].
"""

from __future__ import annotations

from typing import Any

from kpybroker.broker.app import Broker
from kpybroker.broker.handlers.configuration import alter_configs, incremental_alter_configs
from kpybroker.wire.messages.alter_configs import AlterConfigsRequest
from kpybroker.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.support.brokers.configured_broker import call

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND = 0, 1, 2


def legacy(*resources: tuple[int, str, Any], validate_only: bool = False) -> AlterConfigsRequest:
    return AlterConfigsRequest(
        resources=[
            AlterConfigsRequest.AlterConfigsResource(
                resource_type=resource_type,
                resource_name=name,
                configs=[AlterConfigsRequest.AlterableConfig(name=key, value=value) for key, value in entries],
            )
            for resource_type, name, entries in resources
        ],
        validate_only=validate_only,
    )


def incremental(*resources: tuple[int, str, Any], validate_only: bool = False) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(
        resources=[
            IncrementalAlterConfigsRequest.AlterConfigsResource(
                resource_type=resource_type,
                resource_name=name,
                configs=[
                    IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=op, value=value)
                    for key, op, value in entries
                ],
            )
            for resource_type, name, entries in resources
        ],
        validate_only=validate_only,
    )


async def alter(broker: Broker, *resources: tuple[int, str, Any], **options: bool) -> list[tuple[int, str | None]]:
    response = await call(broker, alter_configs, legacy(*resources, **options), 2)
    return [(one.error_code, one.error_message) for one in response.responses]


async def change(broker: Broker, *resources: tuple[int, str, Any], **options: bool) -> list[tuple[int, str | None]]:
    response = await call(broker, incremental_alter_configs, incremental(*resources, **options), 1)
    return [(one.error_code, one.error_message) for one in response.responses]
