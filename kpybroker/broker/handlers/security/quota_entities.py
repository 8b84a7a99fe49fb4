"""Entities and values of client quotas: in requests, and as nodes of the tree. Kafka's `ZkAdminManager`.

An entity of a request is a map from type (`user`, `client-id`, `ip`) to name, where None is the default. Its node is
named by a type and a path; names are sanitized there, and `<default>` is the default.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

from kpybroker.broker.requests.connection_limits import resolve
from kpybroker.core.security.quotas import (
    CLIENT_QUOTA_KEYS,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    INT_MAX,
    LONG_MAX,
    PRODUCER_BYTE_RATE,
)
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

EntityName = Mapping[str, str | None]
"""By type; None: the default."""

SCRAM_KEYS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
EPSILON: Final = 1e-6


class Node(NamedTuple):
    """Where the quotas of an entity are: a configuration type and the path below it."""

    entity_type: str
    path: str


def parse_entity(entity: EntityName) -> Node:
    """The node of an entity. Raises INVALID_REQUEST."""
    if not entity:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty client quota entity")
    for entity_type, name in entity.items():
        if entity_type not in (USER, CLIENT_ID, IP):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unhandled client quota entity type: {entity_type}")
        if name == "":
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Empty {entity_type} not supported")
    if IP in entity:
        if len(entity) > 1:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Invalid quota entity combination, IP entity should not be used with user/client ID entity.",
            )
        return Node(znodes.CONFIG_IPS, sanitize_name(entity[IP]))
    if USER not in entity:
        return Node(znodes.CONFIG_CLIENTS, sanitize_name(entity[CLIENT_ID]))
    user = sanitize_name(entity[USER])
    if CLIENT_ID not in entity:
        return Node(znodes.CONFIG_USERS, user)
    return Node(znodes.CONFIG_USERS, znodes.user_client_entity(user, sanitize_name(entity[CLIENT_ID])))


def entity_of(node: Node) -> dict[str, str | None]:
    """The entity of a node."""
    if node.entity_type == znodes.CONFIG_IPS:
        return {IP: desanitize_name(node.path)}
    if node.entity_type == znodes.CONFIG_CLIENTS:
        return {CLIENT_ID: desanitize_name(node.path)}
    user, _, client_id = node.path.partition("/clients/")
    names = {USER: desanitize_name(user)}
    return names | {CLIENT_ID: desanitize_name(client_id)} if client_id else names


def sanitize_name(name: str | None) -> str:
    """A name of an entity as part of a path."""
    return znodes.CONFIG_DEFAULT_ENTITY if name is None else znodes.sanitize(name)


def desanitize_name(part: str) -> str | None:
    """The reverse of `sanitize_name`."""
    return None if part == znodes.CONFIG_DEFAULT_ENTITY else znodes.desanitize(part)


async def check_address(node: Node) -> None:
    """Raise INVALID_REQUEST for an `ip` entity that is neither an address nor a host with one."""
    if node.entity_type == znodes.CONFIG_IPS and node.path != znodes.CONFIG_DEFAULT_ENTITY:
        try:
            await resolve(node.path)
        except OSError:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{node.path} is not a valid IP or resolvable host.") from None


# --- values


def quota_keys(entity_type: str) -> tuple[str, ...]:
    """The quotas that entities of one type may have."""
    return (CONNECTION_CREATION_RATE,) if entity_type == znodes.CONFIG_IPS else CLIENT_QUOTA_KEYS


def quota_values(node: Node, props: Mapping[str, str]) -> dict[str, float]:
    """The quotas among the overrides of a node. Raises UNKNOWN_SERVER_ERROR for text that is not a number."""
    values = {}
    for key, text in props.items():
        if key in quota_keys(node.entity_type):
            try:
                values[key] = float(text)
            except ValueError:
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR, f"Unexpected client quota configuration value: {key} -> {text}"
                ) from None
    return values


def format_value(node: Node, key: str, value: float) -> str:
    """The text of a value in the tree. Raises INVALID_REQUEST for a key or a value that an entity cannot have."""
    if node.entity_type == znodes.CONFIG_USERS and key in SCRAM_KEYS:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "Unexpected config type STRING")
    if key not in quota_keys(node.entity_type):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Invalid configuration key {key}")
    whole = _WHOLE.get(key)
    if whole is None:
        return java_double(value)
    type_name, largest = whole
    number = 0 if math.isnan(value) else int(max(min(value + EPSILON, largest), -largest - 1))
    if math.isnan(value) or abs(number - value) > EPSILON:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Configuration {key} must be a {type_name} value")
    return str(number)


_WHOLE: Final[dict[str, tuple[str, int]]] = {
    PRODUCER_BYTE_RATE: ("LONG", LONG_MAX),
    CONSUMER_BYTE_RATE: ("LONG", LONG_MAX),
    CONNECTION_CREATION_RATE: ("INT", INT_MAX),
}


def check_props(node: Node, props: Mapping[str, str]) -> None:
    """What Kafka checks before it writes. Raises UNKNOWN_SERVER_ERROR, as Kafka does."""
    known = quota_keys(node.entity_type)
    if node.entity_type == znodes.CONFIG_USERS and "/" not in node.path and node.path != znodes.CONFIG_DEFAULT_ENTITY:
        known += SCRAM_KEYS
    unknown = [key for key in props if key not in known]
    if unknown:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"requirement failed: Unknown Dynamic Configuration: Set({', '.join(unknown)}).",
        )
    rate = props.get(CONNECTION_CREATION_RATE)
    if rate is not None and int(rate) < 0:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Invalid value {rate} for configuration {CONNECTION_CREATION_RATE}: Value must be at least 0",
        )


def java_double(value: float) -> str:
    """Java's ``Double.toString``."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = format(Decimal(repr(value)), "f")
        return text if "." in text else f"{text}.0"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    fraction = text[1:].rstrip("0") or "0"
    return f"{'-' if sign else ''}{text[0]}.{fraction}E{len(text) - 1 + exponent}"


# --- filters


class Component(NamedTuple):
    """What a filter wants of one type: `is_any`: every name, else exactly `name` (None: the default)."""

    is_any: bool
    name: str | None


Filter = Mapping[str, Component]


def check_filter(wanted: Sequence[tuple[str, Component]]) -> Filter:
    """The components by type. Raises INVALID_REQUEST, UNSUPPORTED_VERSION."""
    found: dict[str, Component] = {}
    for entity_type, component in wanted:
        if entity_type in found:
            kind = "client" if entity_type == CLIENT_ID else entity_type
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Duplicate {kind} filter component entity type")
        if entity_type == "":
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Unexpected empty filter component entity type")
        if entity_type not in (USER, CLIENT_ID, IP):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Custom entity type '{entity_type}' not supported")
        found[entity_type] = component
    if IP in found and len(found) > 1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination, IP filter component should not be used with user or "
            "clientId filter component.",
        )
    return found


def matches(wanted: Filter, entity: EntityName, *, is_strict: bool) -> bool:
    """Whether a filter selects an entity; a strict one selects no entity with a type that it does not name."""
    if (IP in entity and wanted and IP not in wanted) or (IP in wanted and IP not in entity):
        return False
    for entity_type in (USER, CLIENT_ID, IP):
        component = wanted.get(entity_type)
        if component is None:
            if is_strict and entity_type in entity:
                return False
        elif entity_type not in entity or not (component.is_any or entity[entity_type] == component.name):
            return False
    return True
