"""What ShareFetch and ShareAcknowledge have in common: who asks, what is acknowledged, and how that ends (KIP-932)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from kpybroker.broker.handlers.groups.checks import serves_share_groups
from kpybroker.broker.handlers.records.current_leaders import node_endpoints
from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.replication.partition import LEADER_MOVED
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.leader_and_isr import NO_LEADER
from kpybroker.core.share.sessions import SessionKey, SharePartitionId
from kpybroker.core.share.validation import validate
from kpybroker.core.share.values import Acknowledgement
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker
    from kpybroker.broker.requests.context import RequestContext
    from kpybroker.broker.share.share_partitions import Acknowledging

MEMBER_ID_MAX = 36
RENEWALS_FROM = 2

L = TypeVar("L")
E = TypeVar("E")


class Batch(Protocol):
    """AcknowledgementBatch of either request."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class AcknowledgedPartition(Protocol):
    """A partition of either request."""

    partition_index: int

    @property
    def acknowledgement_batches(self) -> Sequence[Batch]:
        """What is acknowledged."""


class AcknowledgedTopic(Protocol):
    """A topic of either request."""

    topic_id: bytes

    @property
    def partitions(self) -> Sequence[AcknowledgedPartition]:
        """Those of the topic that have acknowledgements, or are fetched."""


def require_member(broker: Broker, context: RequestContext, group_id: str | None, member_id: str | None) -> SessionKey:
    """Whose session it is. Raises UNSUPPORTED_VERSION, INVALID_REQUEST, GROUP_AUTHORIZATION_FAILED."""
    if not serves_share_groups(broker):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    context.require(Operation.READ, ResourceType.GROUP, group_id)
    if not member_id or utf16_length(member_id) > MEMBER_ID_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return SessionKey(group_id, member_id)


def utf16_length(text: str) -> int:
    """The length as Java counts it."""
    return len(text) + sum(char > "\uffff" for char in text)


class TopicAccess:
    """Which topics a request may read, and their names; each topic is decided once."""

    __slots__ = ("_allowed", "_broker", "_context")

    def __init__(self, broker: Broker, context: RequestContext) -> None:
        self._broker = broker
        self._context = context
        self._allowed: dict[str, bool] = {}

    def name(self, topic_id: bytes) -> str | None:
        """The topic's name, if the cluster has it."""
        return self._broker.metadata.topic_name(topic_id)

    def refusal(self, name: str | None, partition: int) -> ErrorCode:
        """Why the partition cannot be read or acknowledged; NONE if it can."""
        if not name:
            return ErrorCode.UNKNOWN_TOPIC_ID
        allowed = self._allowed.get(name)
        if allowed is None:
            allowed = self._allowed[name] = self._context.authorized(Operation.READ, ResourceType.TOPIC, name)
        if not allowed:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        known = self._broker.metadata.contains(name, partition)
        return ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Acknowledged(NamedTuple):
    """What was found wrong at once, what there was nothing to do for, and what is in progress."""

    refused: dict[SharePartitionId, ErrorCode]
    empty: list[SharePartitionId]
    acknowledging: Acknowledging | None

    def message(self, partition: SharePartitionId) -> str | None:
        """What is wrong with the partition's acknowledgements, after `results`; what was refused at once has none."""
        if self.acknowledging is None or partition in self.refused:
            return None
        return self.acknowledging.messages.get(partition)

    def persist(self) -> None:
        """As `Acknowledging.persist`."""
        if self.acknowledging is not None:
            self.acknowledging.persist()

    def results(self) -> Steps[dict[SharePartitionId, ErrorCode]]:
        """The result of each partition, when it is persisted. As in Kafka, partitions for which there is nothing to do
        are named only next to others that were acknowledged.
        """
        if self.acknowledging is None:
            return self.refused
        results = yield from self.acknowledging.until_done()
        return results | self.refused | dict.fromkeys(self.empty, ErrorCode.NONE)


def acknowledge(
    broker: Broker, access: TopicAccess, key: SessionKey, topics: Iterable[AcknowledgedTopic], may_renew: bool
) -> Steps[Acknowledged]:
    """Acknowledge what a request says; the caller has it persisted. `may_renew`: the request says that it renews."""
    refused: dict[SharePartitionId, ErrorCode] = {}
    empty: list[SharePartitionId] = []
    wanted: dict[SharePartitionId, list[Acknowledgement]] = {}
    budget = YieldBudget()
    for topic in topics:
        name = access.name(topic.topic_id)
        for partition in topic.partitions:
            partition_id = SharePartitionId(topic.topic_id, partition.partition_index)
            batches = [
                Acknowledgement(one.first_offset, one.last_offset, one.acknowledge_types)
                for one in partition.acknowledgement_batches
            ]
            if not name:
                refused[partition_id] = ErrorCode.UNKNOWN_TOPIC_ID
            elif validate(batches, may_renew) is not ErrorCode.NONE:
                refused[partition_id] = ErrorCode.INVALID_REQUEST
            elif (refusal := access.refusal(name, partition.partition_index)) is not ErrorCode.NONE:
                refused[partition_id] = refusal
            elif batches:
                wanted[partition_id] = batches
            else:
                empty.append(partition_id)
            yield from budget.steps(1 + len(batches))
    if not wanted:
        return Acknowledged(refused, empty, None)
    return Acknowledged(refused, empty, broker.coordinators.share_partitions.acknowledge(*key, wanted))


def current_leader(broker: Broker, name: str | None, index: int, code: ErrorCode, make: Callable[..., L]) -> L | None:
    """Who leads a partition, for a response with this error; None where the error is not about that."""
    if code not in LEADER_MOVED or not name:
        return None
    partition = broker.replicas.partition(name, index)
    if partition is not None:
        return make(leader_id=partition.leader_id, leader_epoch=partition.leader_epoch)
    leader, epoch = broker.metadata.leader_and_epoch(name, index) or (NO_LEADER, NO_LEADER)
    return make(leader_id=leader, leader_epoch=epoch)


def leader_endpoints(
    broker: Broker, context: RequestContext, partitions: Iterable[Any], make: Callable[..., E]
) -> list[E]:
    """The endpoints of the leaders that the partitions' responses name for an error."""
    moved = [one for one in partitions if one.error_code in LEADER_MOVED]
    return node_endpoints(broker, context, moved, make) if moved else []
