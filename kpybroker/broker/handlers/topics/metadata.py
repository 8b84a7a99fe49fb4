"""Metadata 0-13: topics, who leads their partitions, and where the brokers are.

Version 0 asks for all topics with an empty list, later ones with null. A topic that is missing may be created: then the
response waits a moment for it, so that a producer's first request already finds its leader. In a version below 6 a
leader without the client's listener is LEADER_NOT_AVAILABLE, from then on LISTENER_NOT_FOUND; version 0 also filters
replicas to those that can be reached, with REPLICA_NOT_AVAILABLE. A topic that the client may not describe is refused
without saying whether it exists. A broker that has just started responds after the controller's first UpdateMetadata.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from kpybroker.broker.cluster.metadata_cache import MetadataSnapshot, PartitionState
from kpybroker.broker.loop.yielding import ELEMENT, YieldBudget, next_slice
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core import topic_names
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.api import ApiKey
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

Topic = MetadataResponse.MetadataResponseTopic
Partition = MetadataResponse.MetadataResponsePartition

LEDGER = Ledger(
    ApiKey.METADATA,
    0,
    13,
    {
        0: "all topics by an empty list",
        1: "all topics by null; controller id, rack, is_internal",
        2: "cluster id",
        3: "throttle time",
        4: "allow_auto_topic_creation",
        5: "offline replicas",
        6: "LISTENER_NOT_FOUND",
        7: "leader epochs",
        8: "authorized operations (KIP-430)",
        9: "flexible",
        10: "topic ids in the response",
        11: "no cluster authorized operations: DescribeCluster has them (KIP-700)",
        12: "topics asked for by id (KIP-516)",
        13: "an error of the whole request (KIP-1102)",
    },
)

NO_LEADER_ID = -1
NO_CONTROLLER_ID = -1
NOT_ASKED_FOR = -(2**31)
"""Authorized operations that were not asked for."""

PARTITION_COST = 2
"""Units of a `YieldBudget` that describing one partition costs."""


async def handle(broker: Broker, request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    """The requested topics, the brokers and the controller; missing topics may be created."""
    _check(request, context)
    await broker.metadata.wait_first_update(broker.tree)
    asked_for = len(request.topics or ())
    budget = YieldBudget()
    await budget.spend(ELEMENT * asked_for)
    topics: list[Topic] = []
    names, known = await _asked_for(broker, request, context, topics)
    await budget.spend(ELEMENT * asked_for)
    is_named = not _wants_all(request, context)
    described = []
    for name in names:
        await budget.spend()
        if context.authorized(Operation.DESCRIBE, ResourceType.TOPIC, name, log_denied=is_named):
            described.append(name)
    await budget.spend(ELEMENT * len(names))
    if is_named:
        topics += _undescribed(broker, names, described, by_id=known)
        await budget.spend(ELEMENT * len(names))
        described = await _create_missing(broker, request, context, described, topics)
    topics[:0] = await _existing(broker, context, described)
    _fill_authorized_operations(request, context, topics)
    controller_id = broker.metadata.controller_id
    return MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in broker.metadata.alive_nodes(context)
        ],
        cluster_id=broker.cluster_id,
        controller_id=NO_CONTROLLER_ID if controller_id is None else controller_id,
        topics=topics,
        cluster_authorized_operations=_cluster_operations(request, context),
    )


def _check(request: MetadataRequest, context: RequestContext) -> None:
    version = context.api_version
    if request.topics is None:
        return
    if version >= 12:
        names_and_ids = ((topic.name, topic.topic_id) for topic in request.topics)
        if not any(topic.topic_id != ZERO_UUID for topic in request.topics) and (None, ZERO_UUID) in names_and_ids:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # neither name nor id: Kafka stumbles over the null
        return
    for topic in request.topics:
        # Versions 10 and 11 carry ids, but no broker ever served them (KAFKA-10774).
        if topic.name is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Topic name can not be null for version {version}")
        if topic.topic_id != ZERO_UUID:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Topic IDs are not supported in requests for version {version}"
            )


def _wants_all(request: MetadataRequest, context: RequestContext) -> bool:
    return request.topics is None or (not request.topics and context.api_version == 0)


async def _asked_for(
    broker: Broker, request: MetadataRequest, context: RequestContext, topics: list[Topic]
) -> tuple[list[str], bool]:
    """The names asked for, and whether by id; ids that are not known get their errors at once."""
    if _wants_all(request, context):
        return list(broker.metadata.snapshot.topics), False
    asked = request.topics or []
    ids = dict.fromkeys(topic.topic_id for topic in asked if topic.topic_id != ZERO_UUID)
    if not ids:
        return list(dict.fromkeys(topic.name for topic in asked if topic.name is not None)), False
    names = []
    budget = YieldBudget()
    await budget.spend(ELEMENT * len(ids))
    for topic_id in ids:
        await budget.spend()
        name = broker.metadata.topic_name(topic_id)
        if name is None:
            topics.append(Topic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id))
        else:
            names.append(name)
    return names, True


def _undescribed(broker: Broker, names: Iterable[str], described: Collection[str], *, by_id: bool) -> list[Topic]:
    """What may not be described is refused without a look at whether it exists; an id is no secret, its name is."""
    allowed = set(described)
    return [
        Topic(
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            name=None if by_id else name,
            topic_id=broker.metadata.topic_id(name) if by_id else ZERO_UUID,
        )
        for name in names
        if name not in allowed
    ]


async def _create_missing(
    broker: Broker, request: MetadataRequest, context: RequestContext, names: list[str], topics: list[Topic]
) -> list[str]:
    """Deal with topics that are not there; returns the names that are."""
    missing = [name for name in names if not broker.metadata.contains(name)]
    if not missing:
        return names
    budget = YieldBudget()
    await budget.spend(ELEMENT * len(names))
    create = request.allow_auto_topic_creation and broker.config.get_bool("auto.create.topics.enable")
    creatable = []
    for name in missing:
        await budget.spend()
        if not topic_names.is_valid(name):
            topics.append(_failed(name, ErrorCode.INVALID_TOPIC_EXCEPTION))
        elif not create:
            topics.append(_failed(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        elif not _may_create(context, name):
            topics.append(_failed(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        else:
            creatable.append(name)
    if creatable:
        codes = await broker.topics.auto_create(creatable, mutations=context.side_mutations())
        topics += [_failed(name, code) for name, code in codes.items() if code is not ErrorCode.NONE]
    await budget.spend(ELEMENT * len(names))
    failed = {topic.name for topic in topics}
    return [name for name in names if broker.metadata.contains(name) and name not in failed]


def _may_create(context: RequestContext, name: str) -> bool:
    return context.authorized(Operation.CREATE, ResourceType.CLUSTER, log_denied=False) or context.authorized(
        Operation.CREATE, ResourceType.TOPIC, name
    )


def _failed(name: str, code: ErrorCode) -> Topic:
    return Topic(error_code=code, name=name, is_internal=topic_names.is_internal(name))


async def _existing(broker: Broker, context: RequestContext, names: list[str]) -> list[Topic]:
    snapshot = broker.metadata.snapshot
    view = _View(snapshot, context)
    topics = []
    budget = YieldBudget()
    for name in names:
        states = snapshot.topics.get(name)
        if states is None:
            continue
        partitions: list[Partition] = []
        for index, state in states.items():
            partitions.append(view.partition(index, state))
            if budget.is_spent(PARTITION_COST):
                await next_slice()
        topics.append(
            Topic(
                name=name,
                topic_id=snapshot.topic_id(name),
                is_internal=topic_names.is_internal(name),
                partitions=partitions,
            )
        )
        await budget.spend()
    return topics


class _View:
    """A snapshot as seen through one listener and one version."""

    __slots__ = ("_alive", "_filters_replicas", "_no_listener", "_reachable")

    def __init__(self, snapshot: MetadataSnapshot, context: RequestContext) -> None:
        self._alive = snapshot.brokers
        self._reachable = {
            broker.id for broker in snapshot.brokers.values() if context.listener_name in broker.endpoints
        }
        self._filters_replicas = context.api_version == 0
        self._no_listener = ErrorCode.LISTENER_NOT_FOUND if context.api_version >= 6 else ErrorCode.LEADER_NOT_AVAILABLE

    def partition(self, index: int, state: PartitionState) -> Partition:
        replicas, isr = state.replicas, state.isr
        code, leader = ErrorCode.NONE, state.leader
        if self._filters_replicas:
            replicas = [replica for replica in replicas if replica in self._reachable]
            isr = [replica for replica in isr if replica in self._reachable]
            if len(replicas) < len(state.replicas) or len(isr) < len(state.isr):
                code = ErrorCode.REPLICA_NOT_AVAILABLE
        if leader not in self._reachable:
            code = self._no_listener if leader in self._alive else ErrorCode.LEADER_NOT_AVAILABLE
            leader = NO_LEADER_ID
        return Partition(
            error_code=code,
            partition_index=index,
            leader_id=leader,
            leader_epoch=state.leader_epoch,
            replica_nodes=replicas,
            isr_nodes=isr,
            offline_replicas=state.offline_replicas,
        )


def _fill_authorized_operations(request: MetadataRequest, context: RequestContext, topics: list[Topic]) -> None:
    if context.api_version < 8 or not request.include_topic_authorized_operations:
        return
    for topic in topics:
        if topic.name is not None and topic.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            topic.topic_authorized_operations = context.authorized_operations(ResourceType.TOPIC, topic.name)


def _cluster_operations(request: MetadataRequest, context: RequestContext) -> int:
    if not 8 <= context.api_version <= 10 or not request.include_cluster_authorized_operations:
        return NOT_ASKED_FOR
    if not context.authorized(Operation.DESCRIBE, ResourceType.CLUSTER):
        return 0
    return context.authorized_operations(ResourceType.CLUSTER)


def error_response(request: MetadataRequest, context: RequestContext, error: KafkaError) -> MetadataResponse:
    """The error at the top of the response, and at every topic asked for; one without a name has an empty one."""
    return MetadataResponse(
        topics=[
            Topic(
                error_code=error.code,
                name=topic.name or "",
                topic_id=topic.topic_id,
            )
            for topic in request.topics or ()
        ],
        error_code=error.code,
    )
