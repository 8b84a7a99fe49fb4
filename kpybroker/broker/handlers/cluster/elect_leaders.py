"""ElectLeaders 0-2: give partitions back to their preferred leaders, or (version 1) elect an unclean one (KIP-460).

The response waits until this broker's metadata shows the new leaders, or the request times out. Without a list all
partitions are meant, and those that need no election are left out of the response.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kpybroker.broker.loop.yielding import YieldBudget, listed
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.config.keys.releases import is_kafka_4
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.controller.events import ApiError, ElectionType, ReplicaLeaderElection
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

if TYPE_CHECKING:
    from kpybroker.broker.cluster.metadata_cache import MetadataSnapshot
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.ELECT_LEADERS,
    0,
    2,
    {0: "preferred leaders", 1: "unclean election; an error of the whole request", 2: "flexible"},
)


PARTITIONS_AT_ONCE = 10_000
"""In one event of the controller, which holds the loop while it looks at them."""


async def handle(broker: Broker, request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    """Elect leaders through the controller, and wait until the metadata shows them."""
    context.require(Operation.ALTER, ResourceType.CLUSTER)
    try:
        election_type = ElectionType(request.election_type)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Value {request.election_type} must be one of 0, 1") from None
    budget = YieldBudget()
    partitions = await listed(_partitions(broker, request), budget)
    before = {}
    for partition in partitions:
        await budget.spend()
        before[partition] = broker.metadata.leader_and_epoch(*partition)
    results: dict[TopicPartition, ApiError] = {}
    for start in range(0, len(partitions), PARTITIONS_AT_ONCE) or (0,):
        asked = tuple(partitions[start : start + PARTITIONS_AT_ONCE])
        results |= await broker.controller.ask(ReplicaLeaderElection(asked, election_type))
    elected = [partition for partition, error in results.items() if error.code is ErrorCode.NONE]

    def shown(snapshot: MetadataSnapshot) -> bool:
        states = ((p, snapshot.partition(*p)) for p in elected)
        return all(state is None or (state.leader, state.leader_epoch) != before[p] for p, state in states)

    with context.connection.may_leave():
        is_shown = await broker.metadata.wait_until(shown, max(request.timeout_ms, 0) / 1000)
    if not is_shown:
        results |= dict.fromkeys(elected, ApiError(ErrorCode.REQUEST_TIMED_OUT))
    if request.topic_partitions is None:
        results = {p: e for p, e in results.items() if e.code is not ErrorCode.ELECTION_NOT_NEEDED}
    topics: dict[str, ElectLeadersResponse.ReplicaElectionResult] = {}
    for partition, error in results.items():
        await budget.spend()
        _add(topics, partition, error.code, _text(broker, partition, error))
    return ElectLeadersResponse(error_code=ErrorCode.NONE, replica_election_results=list(topics.values()))


def _partitions(broker: Broker, request: ElectLeadersRequest) -> Iterator[TopicPartition]:
    if request.topic_partitions is None:
        topics = broker.metadata.snapshot.topics
        return (TopicPartition(topic, index) for topic, states in topics.items() for index in states)
    return (TopicPartition(topic.topic, index) for topic in request.topic_partitions for index in topic.partitions)


def _text(broker: Broker, partition: TopicPartition, error: ApiError) -> str | None:
    """Kafka 4 says what there is not."""
    if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or not is_kafka_4(broker.config.release):
        return error.text
    is_topic = broker.metadata.contains(partition.topic)
    missing = f"partition as {partition.topic}-{partition.partition}" if is_topic else f"topic as {partition.topic}"
    return f"No such {missing}"


def _add(
    topics: dict[str, ElectLeadersResponse.ReplicaElectionResult],
    partition: TopicPartition,
    code: ErrorCode,
    message: str | None,
) -> None:
    topic = topics.get(partition.topic)
    if topic is None:
        topic = topics[partition.topic] = ElectLeadersResponse.ReplicaElectionResult(topic=partition.topic)
    topic.partition_result.append(
        ElectLeadersResponse.PartitionResult(partition_id=partition.partition, error_code=code, error_message=message)
    )


def _response(code: ErrorCode, results: dict[TopicPartition, tuple[ErrorCode, str | None]]) -> ElectLeadersResponse:
    topics: dict[str, ElectLeadersResponse.ReplicaElectionResult] = {}
    for partition, (error_code, message) in results.items():
        _add(topics, partition, error_code, message)
    return ElectLeadersResponse(error_code=code, replica_election_results=list(topics.values()))


def error_response(request: ElectLeadersRequest, context: RequestContext, error: KafkaError) -> ElectLeadersResponse:
    """The error at each named partition, and from version 1 on at the top of the response."""
    partitions = [
        TopicPartition(topic.topic, index) for topic in request.topic_partitions or () for index in topic.partitions
    ]
    top_level = error.code if context.api_version >= 1 else ErrorCode.NONE  # version 0 has no place for it
    return _response(top_level, dict.fromkeys(partitions, (error.code, None)))
