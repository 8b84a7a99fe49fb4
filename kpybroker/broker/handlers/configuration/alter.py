"""AlterConfigs and IncrementalAlterConfigs, resource by resource (`ConfigAdminManager`, `ZkAdminManager`).

Both compute the new overrides of one topic, or of one layer of the broker's configuration. These are validated as a
whole, and written unless the request only validates. Codes and texts are those of Kafka 3.9.1 in ZooKeeper mode: an
invalid key of a broker is INVALID_REQUEST, of a topic INVALID_CONFIG.

One difference: an operation on a key that does not exist, or of an unknown kind, is the client's fault here
(INVALID_CONFIG, INVALID_REQUEST) where Kafka returns UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Container, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from kpybroker.broker.handlers.configuration import client_metrics
from kpybroker.broker.handlers.configuration.describe import ConfigResourceType
from kpybroker.broker.requests.clients import shown
from kpybroker.config.dynamic import (
    AlterConfigOp,
    NotAList,
    OpType,
    UnknownConfigName,
    apply_ops,
    broker_list_default,
    is_password,
    storable,
    topic_list_default,
    validate_dynamic,
    without_encoding,
)
from kpybroker.config.groups.rules import check_group_props
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.releases import is_kafka_4
from kpybroker.config.keys.topic import TOPIC_KEYS, TOPIC_ROWS
from kpybroker.config.sources.passwords import decoder
from kpybroker.config.topic import UnknownTopicConfig, validate_topic_props
from kpybroker.config.values import LIST, ConfigConflict, ConfigError
from kpybroker.core import topic_names
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

logger = logging.getLogger("kafka.server.ZkAdminManager")

LISTS: Final = frozenset(row[0] for row in TOPIC_ROWS if row[1] == LIST)
"""The keys of topics that hold lists."""


def check_entries(names: Sequence[str], nulls: Sequence[str]) -> None:
    """What both requests refuse before they look at keys."""
    if len(set(names)) < len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    if nulls:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")


def check_broker_name(broker: Broker, name: str) -> None:
    """A broker is addressed by its own id, or by "" as all of them."""
    if not name:
        return
    if not _is_integer(name):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if int(name) != broker.node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {broker.node_id}, but received {name}"
        )


def check_logger_name(broker: Broker, name: str) -> None:
    """Loggers are addressed by this broker's id. Raises INVALID_REQUEST."""
    if not _is_integer(name):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if int(name) != broker.node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {broker.node_id}, but received {name}"
        )


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").removeprefix("+").isdecimal()


def refuse_type(resource_type: ConfigResourceType, type_id: int) -> KafkaError:
    """The INVALID_REQUEST for a type of resource that has no configuration."""
    if resource_type is ConfigResourceType.CLIENT_METRICS:
        message = "AlterConfigs is only supported for topics and brokers, but resource type is CLIENT_METRICS"
    else:
        message = f"Unknown resource type {type_id}"
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


# --- replacing everything: AlterConfigs


async def alter(
    broker: Broker, resource_type: ConfigResourceType, name: str, props: dict[str, str], *, validate_only: bool
) -> None:
    """Make `props` the whole of what a topic, a broker layer, a group or a subscription to client metrics sets."""
    if resource_type is ConfigResourceType.BROKER:
        await _store_broker(broker, name, props, validate_only)
    elif resource_type is ConfigResourceType.GROUP:
        await _store_group(broker, name, props, validate_only)
    elif resource_type is ConfigResourceType.CLIENT_METRICS:
        await client_metrics.store(broker, name, props, validate_only)
    else:
        await _store_topic(broker, name, props, validate_only)


# --- one key at a time: IncrementalAlterConfigs


def parse_op(name: str, op_id: int, value: str | None) -> AlterConfigOp:
    """One operation on one key. Raises INVALID_REQUEST for an unknown operation."""
    try:
        return AlterConfigOp(name, OpType(op_id), value)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {op_id}") from None


async def incremental_alter(
    broker: Broker,
    resource_type: ConfigResourceType,
    name: str,
    ops: Sequence[AlterConfigOp],
    *,
    validate_only: bool,
) -> None:
    """Apply `ops` to what a topic, a broker layer, a group or a subscription sets. Raises KafkaError, TreeError."""
    try:
        if resource_type is ConfigResourceType.BROKER:
            entity = name or znodes.CONFIG_DEFAULT_ENTITY
            stored = await broker.configs.read(znodes.CONFIG_BROKERS, entity)
            stored, _ = without_encoding(stored, decoder(broker.config))
            props = apply_ops(stored, ops, partial(broker_list_default, keys=broker.config.keys))
        elif resource_type is ConfigResourceType.GROUP:
            _refuse_lists({op.name for op in ops}, ops)
            props = apply_ops(await _stored_of_group(broker, name), ops, lambda name: None)
        elif resource_type is ConfigResourceType.CLIENT_METRICS:
            _refuse_lists({op.name for op in ops}, ops)
            props = apply_ops(await client_metrics.stored(broker, name), ops, lambda name: None)
        else:
            _check_topic_name(name)
            if is_kafka_4(broker.config.release):
                _refuse_lists({op.name for op in ops} - LISTS, ops)
            stored = await broker.configs.read(znodes.CONFIG_TOPICS, name)
            props = apply_ops(stored, ops, topic_list_default)
    except (NotAList, UnknownConfigName) as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    await alter(broker, resource_type, name, props, validate_only=validate_only)


def _refuse_lists(others: Container[str], ops: Sequence[AlterConfigOp]) -> None:
    """`others` are keys that are no lists; the text is that of Kafka 4.3's ``ConfigurationControlManager``."""
    for name, op, _ in ops:
        if op in (OpType.APPEND, OpType.SUBTRACT) and name in others:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Can't {op.name} to key {name} because its type is not LIST.")


async def _stored_of_group(broker: Broker, name: str) -> dict[str, str]:
    return await broker.configs.read(znodes.CONFIG_GROUPS, znodes.group_entity(name)) if name else {}


# --- checking and storing


def _check_topic_name(name: str) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")


async def _store_topic(broker: Broker, topic: str, props: dict[str, str], validate_only: bool) -> None:
    _check_topic_name(topic)
    if is_kafka_4(broker.config.release) and (reason := topic_names.invalid_reason(topic)) is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    if not broker.metadata.contains(topic):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic}' does not exist.")
    try:
        validate_topic_props(props, broker.config.log_defaults, broker.config.release)
    except (UnknownTopicConfig, ConfigConflict) as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    except ConfigError as error:
        if is_kafka_4(broker.config.release):
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
        raise _invalid_value("TOPIC", topic, error) from None
    if not validate_only:
        logger.info("Updating topic %s with new configuration : %s", topic, _shown(props, TOPIC_KEYS))
        await broker.configs.write(znodes.CONFIG_TOPICS, topic, props)


async def _store_group(broker: Broker, group_id: str, props: dict[str, str], validate_only: bool) -> None:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    try:
        check_group_props(broker.config, props)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    if not validate_only and props != await _stored_of_group(broker, group_id):
        logger.info("Updating group %s with new configuration : %s", shown(group_id), props)
        await broker.configs.write(znodes.CONFIG_GROUPS, znodes.group_entity(group_id), props)


async def _store_broker(broker: Broker, name: str, props: dict[str, str], validate_only: bool) -> None:
    per_broker = bool(name)
    try:
        validate_dynamic(broker.config, props, per_broker)
    except ConfigConflict as error:
        before = "" if error.name.startswith("group.consumer.") else "requirement failed: "
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{before}{error}") from None
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
    if validate_only:
        return
    try:
        kept = storable(broker.config, props, per_broker, os.urandom)
    except ConfigError as error:
        raise _invalid_value("BROKER", name, error) from None
    whom = f"broker {name}" if per_broker else "brokers"
    logger.info("Updating %s with new configuration : %s", whom, _shown(props, BROKER_KEYS))
    entity = str(broker.node_id) if per_broker else znodes.CONFIG_DEFAULT_ENTITY
    await broker.configs.write(znodes.CONFIG_BROKERS, entity, kept)


def _shown(props: Mapping[str, str], known: Container[str]) -> dict[str, str]:
    """For the log: without passwords, and an unknown key may be one."""
    return {n: value if n in known and not is_password(n) else "[hidden]" for n, value in props.items()}


def _invalid_value(type_name: str, name: str, error: ConfigError) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_CONFIG,
        f"Invalid config value for resource ConfigResource(type={type_name}, name='{name}'): {error}",
    )


def resource_twice() -> KafkaError:
    """The INVALID_REQUEST for a resource that a request names twice."""
    return KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
