"""What the handlers of the group APIs share: the checks before the coordinator is asked."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Protocol, TypeVar

from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.clients import client_name, shown
from kpybroker.broker.requests.context import RequestContext
from kpybroker.config.metadata_versions import at_least
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.features import CONSUMER_GROUPS_FROM, GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION
from kpybroker.core.topic_partition import PartitionKey
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

SHARE_GROUPS_FROM = 1
"""The level of `share.version` that has share groups."""
STREAMS_GROUPS_FROM = 1
"""The level of `streams.version` that has streams groups."""
CONFIG_OPERATIONS = (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)

logger = logging.getLogger("kafka.server.KafkaApis")

T = TypeVar("T")


class IndexedPartition(Protocol):
    """A partition of a request, by its index."""

    partition_index: int


P = TypeVar("P", bound=IndexedPartition)


class IdentifiedTopic(Protocol):
    """A topic of a request that has its id, and a place for its name."""

    name: str
    topic_id: bytes


Identified = TypeVar("Identified", bound=IdentifiedTopic)


class NamedTopic(Protocol[P]):
    """A topic with its partitions, as OffsetCommit, TxnOffsetCommit and OffsetDelete send it."""

    name: str
    partitions: list[P]


def require_group_id(group_id: str) -> None:
    """Only offsets may be kept under the empty group id, as they could before groups had members."""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)


def check_static_membership(broker: Broker, group_instance_id: str | None) -> None:
    """A coordinator older than 2.3 would forget instance ids, so none is taken while one may take over."""
    version = broker.config.get_str("inter.broker.protocol.version")
    if group_instance_id is not None and not at_least(version, "2.3-IV0"):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def unserved_protocol(broker: Broker, context: RequestContext, group_id: str, cause: str, fix: str) -> KafkaError:
    """The error for a client that asks for a group protocol that is not served. The first time the log says what to do;
    the response has no text, as Kafka's.
    """
    if broker.first_times.is_first(context.connection, cause):
        logger.warning("Refused %s group=%s: %s; %s", client_name(context.connection), shown(group_id), cause, fix)
    return KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def own_text(error: KafkaError) -> str | None:
    """What a response says of an error: nothing where the code says it all (``ApiError.fromThrowable``)."""
    return None if error.message == error.code.message else error.message


def serves_consumer_groups(broker: Broker, context: RequestContext) -> bool:
    """Whether consumer groups (KIP-848) are served to a client: the finalized level of `group.version` decides, and
    `group.coordinator.rebalance.protocols` where it is set.
    """
    levels = broker.metadata.snapshot.features.levels
    if levels.get(GROUP_VERSION, 0) < CONSUMER_GROUPS_FROM or not broker.groups.allows_consumer_groups:
        return False
    cap = broker.dispatcher.cap_of(context.connection)
    return cap is None or cap.finalized(levels).get(GROUP_VERSION, 0) >= CONSUMER_GROUPS_FROM


def serves_share_groups(broker: Broker) -> bool:
    """Whether share groups (KIP-932) are served: the finalized level of `share.version` decides."""
    return broker.metadata.snapshot.features.level(SHARE_VERSION) >= SHARE_GROUPS_FROM


def serves_streams_groups(broker: Broker) -> bool:
    """Whether streams groups (KIP-1071) are served: the finalized level of `streams.version` decides, and
    `group.coordinator.rebalance.protocols` where it is set.
    """
    level = broker.metadata.snapshot.features.level(STREAMS_VERSION)
    return level >= STREAMS_GROUPS_FROM and broker.groups.allows_streams_groups


def require_visible(context: RequestContext, names: Collection[str]) -> Steps[None]:
    """Clients may only name topics that they may describe. Raises TOPIC_AUTHORIZATION_FAILED."""
    budget = YieldBudget()
    denied = False
    for name in names:
        denied |= not context.authorized(Operation.DESCRIBE, ResourceType.TOPIC, name)
        yield from budget.steps()
    if denied:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def group_operations(broker: Broker, context: RequestContext, group_id: str) -> int:
    """The bit field of what the client may do with a group. Where consumer groups are served, as in Kafka 4, a group
    has a configuration.
    """
    of_configs = CONFIG_OPERATIONS if serves_consumer_groups(broker, context) else ()
    return context.authorized_operations(ResourceType.GROUP, group_id, of_configs)


def kept_topic_id(broker: Broker, topic: str, topic_id: bytes = ZERO_UUID) -> bytes:
    """What an offset record says of its topic: the id, as in Kafka 4, where `group.version` 1 is finalized; else zeros,
    as in Kafka 3.9. `topic_id` is that of the request, if it has one.
    """
    snapshot = broker.metadata.snapshot
    if snapshot.features.level(GROUP_VERSION) < CONSUMER_GROUPS_FROM:
        return ZERO_UUID
    return snapshot.topic_id(topic) if topic_id == ZERO_UUID else topic_id


async def name_topics(broker: Broker, topics: Iterable[Identified]) -> tuple[list[Identified], list[Identified]]:
    """Give the topics of a request with ids their names: those whose ids are known, and the others."""
    budget = YieldBudget()
    known: list[Identified] = []
    unknown: list[Identified] = []
    for topic in topics:
        await budget.spend()
        topic.name = broker.metadata.topic_name(topic.topic_id) or ""
        (known if topic.name else unknown).append(topic)
    return known, unknown


async def known_partitions(
    broker: Broker, context: RequestContext, topics: Iterable[NamedTopic[P]]
) -> tuple[dict[PartitionKey, P], dict[PartitionKey, ErrorCode]]:
    """The request's partitions that the client may read and the cluster knows, and the errors of the others."""
    budget = YieldBudget()
    known: dict[PartitionKey, P] = {}
    errors: dict[PartitionKey, ErrorCode] = {}
    for topic in topics:
        await budget.spend()
        is_allowed = context.authorized(Operation.READ, ResourceType.TOPIC, topic.name)
        for partition in topic.partitions:
            await budget.spend()
            key = (topic.name, partition.partition_index)
            if not is_allowed:
                errors[key] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif not broker.metadata.contains(*key):
                errors[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                known[key] = partition
    return known, errors
