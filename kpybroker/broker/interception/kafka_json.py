"""Requests and responses as JSON as Kafka's request log writes them: its generated `JsonConverter`s, and what
`RequestConvertToJson` puts around them.

Names are those of Kafka's schemas. Records are their size. Bytes are base64. Login tokens, passwords and keys are
`[hidden]`, and so is the new value of a setting that is a password, or that no one here knows, as in Kafka's
`RequestChannel.loggableValue`.
"""

from __future__ import annotations

import base64
from functools import cache
from typing import Any, Final

from kpybroker.broker.interception.request_json import JSON, PASSWORDS, uuid_text
from kpybroker.broker.requests.context import ConnectionInfo
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.synonyms import base_key
from kpybroker.config.topic import TOPIC_KEYS
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.headers import RequestHeader
from kpybroker.wire.messages.alter_configs import AlterConfigsRequest
from kpybroker.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kpybroker.wire.schema import HIDDEN, SECRET_FIELDS, Field, Message, default_value, struct_fields

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
    return _struct_json(type(message), message, version)


def _struct_json(message_class: type[Message], node: Message, version: int) -> dict[str, JSON]:
    inner = None if type(node) is message_class else type(node)
    found: dict[str, JSON] = {}
    for field in struct_fields(message_class, inner):
        value = getattr(node, field.name)
        if not field.present(version) or (field.is_tagged(version) and value in (None, default_value(field))):
            continue
        name = kafka_name(field.name)
        if field.type_name == "records" and value is not None:
            name += "SizeInBytes"
        found[name] = _value_json(message_class, field, value, version)
    if found.get("value") is not None and message_class in CHANGES_OF_SETTINGS and is_secret(found["name"]):
        found["value"] = HIDDEN
    return found


def _value_json(message_class: type[Message], field: Field, value: Any, version: int) -> JSON:
    if value is None:
        return None
    if field.name in SECRET_FIELDS:
        return HIDDEN
    if field.array:
        return [_element_json(message_class, field, one, version) for one in value]
    return _element_json(message_class, field, value, version)


def _element_json(message_class: type[Message], field: Field, value: Any, version: int) -> JSON:
    if isinstance(value, Message):
        return _struct_json(message_class, value, version)
    match field.type_name:
        case "uuid":
            return uuid_text(value)
        case "bytes":
            return base64.b64encode(value).decode()
        case "records":
            return len(value)
        case _:
            return value


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
