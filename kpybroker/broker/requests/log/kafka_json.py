"""Requests and responses as JSON as Kafka's request log writes them: its generated `JsonConverter`s, and what
``RequestConvertToJson`` puts around them.

Names are those of Kafka's schemas. Records are their size. Bytes are base64. Login tokens, passwords and keys are
`[hidden]`, and so is the new value of a setting that is a password, or that no one here knows, as in Kafka's
``RequestChannel.loggableValue``.
"""

from __future__ import annotations

import base64
from functools import cache
from typing import Any, Final

from kpybroker.broker.requests.context import ConnectionInfo
from kpybroker.broker.requests.log.message_walk import JSON, Style, message_in
from kpybroker.config.keys.registry import BROKER_KEYS, PASSWORDS
from kpybroker.config.keys.synonyms import base_key
from kpybroker.config.keys.topic import TOPIC_KEYS
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.headers import RequestHeader
from kpybroker.wire.messages.alter_configs import AlterConfigsRequest
from kpybroker.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kpybroker.wire.primitives import Buffer
from kpybroker.wire.schema import Field, Message

CHANGES_OF_SETTINGS: Final = (AlterConfigsRequest, IncrementalAlterConfigsRequest)

IRREGULAR: Final = {"is_kraft_controller": "isKRaftController"}
"""Names that do not follow from ours; a test compares all names with the schemas."""


def header_json(header: RequestHeader) -> dict[str, JSON]:
    """Kafka's `requestHeader`."""
    known = header.api_key in API_INFO
    return {
        "requestApiKey": header.api_key,
        "requestApiVersion": header.api_version,
        "correlationId": header.correlation_id,
        "clientId": header.client_id,
        "requestApiKeyName": ApiKey(header.api_key).name if known else str(header.api_key),
    }


def connection_json(connection: ConnectionInfo) -> dict[str, JSON]:
    """The fields of a completed request that are about its client."""
    return {
        "securityProtocol": connection.security_protocol,
        "principal": str(connection.principal),
        "listener": connection.listener_name,
        "clientInformation": {
            "softwareName": connection.client_software_name,
            "softwareVersion": connection.client_software_version,
        },
    }


def message_json(message: Message, version: int) -> dict[str, JSON]:
    """The fields that a version of a message has; tagged ones where they are not the default."""
    return message_in(STYLE, message, version)


def _field_name(field: Field, value: Any) -> str:
    has_size = field.type_name == "records" and value is not None
    return kafka_name(field.name) + ("SizeInBytes" if has_size else "")


def _base64_text(data: Buffer) -> str:
    return base64.b64encode(data).decode()


def _is_hidden(message_class: type[Message], name: str) -> bool:
    return message_class in CHANGES_OF_SETTINGS and is_secret(name)


STYLE: Final = Style(_field_name, _base64_text, len, _is_hidden, has_defaults=False)


@cache
def kafka_name(name: str) -> str:
    """`topic_id` as `topicId`."""
    first, *others = name.split("_")
    return IRREGULAR.get(name) or first + "".join(other.capitalize() for other in others)


def is_secret(name: str) -> bool:
    """Whether the value of this setting may be a password: it is one, or no setting that is known."""
    if name in TOPIC_KEYS:
        return False
    base = base_key(name)
    return base not in BROKER_KEYS or base in PASSWORDS
