"""CreateTopics 0-7: create topics, or with validate_only see whether they could be created.

The response waits until every partition has a leader in this broker's metadata, or times out. From version 5 on it has
the number of partitions, the replication factor and the whole configuration of each topic, if the client may describe
it (KIP-525).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kpybroker.broker.cluster.topic_admin import CreatedTopic, NewTopic
from kpybroker.broker.handlers.configuration.describe import Asked, topic_entries
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.config.keys.releases import is_kafka_4
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.topic_names import CLUSTER_METADATA_TOPIC_NAME
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

Result = CreateTopicsResponse.CreatableTopicResult
TopicConfig = CreateTopicsResponse.CreatableTopicConfigs

LEDGER = Ledger(
    ApiKey.CREATE_TOPICS,
    0,
    7,
    {
        0: "partitions and replication factor, or assignments; configs",
        1: "validate_only, error messages",
        2: "throttle time",
        4: "-1: the broker's defaults (KIP-464)",
        5: "flexible; configuration, partitions and replication factor in the response (KIP-525)",
        6: "THROTTLING_QUOTA_EXCEEDED (KIP-599)",
        7: "topic id in the response (KIP-516)",
    },
    absent="policies (create.topic.policy.class.name)",
)

STRICT_FROM = 6
"""From this version on, what exceeds the client's quota is refused; before it, the client only has to wait."""


async def handle(broker: Broker, request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
    """Create or only validate each topic, and wait until its partitions have leaders."""
    if not broker.controller.is_active:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    may_create_all = context.authorized(Operation.CREATE, ResourceType.CLUSTER, log_denied=False)
    times = Counter(topic.name for topic in request.topics)
    results, budget = [], YieldBudget()
    wanted: dict[str, NewTopic] = {}
    for topic in request.topics:
        await budget.spend()
        result = Result(name=topic.name, error_message=None)
        results.append(result)
        refusal = _refusal(context, topic.name, times[topic.name], may_create_all)
        if refusal is None:
            wanted[topic.name] = _new_topic(topic)
        else:
            result.error_code, result.error_message = refusal
    created = await broker.topics.create_topics(
        wanted.values(),
        request.timeout_ms,
        validate_only=request.validate_only,
        mutations=context.mutations(STRICT_FROM),
    )
    for result in results:
        await budget.spend()
        if result.name in wanted:
            _fill(broker, context, result, created[result.name])
        elif not _may_describe(context, result.name) and result.name != CLUSTER_METADATA_TOPIC_NAME:
            result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return CreateTopicsResponse(topics=results)


def _refusal(context: RequestContext, name: str, times: int, may_create_all: bool) -> tuple[ErrorCode, str] | None:
    if name == CLUSTER_METADATA_TOPIC_NAME:
        return ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited."
    if times > 1:
        return ErrorCode.INVALID_REQUEST, "Found multiple entries for this topic."
    if not may_create_all and not context.authorized(Operation.CREATE, ResourceType.TOPIC, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed."
    return None


def _new_topic(topic: CreateTopicsRequest.CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        {a.partition_index: a.broker_ids for a in topic.assignments} or None,
        {config.name: config.value for config in topic.configs},
    )


def _may_describe(context: RequestContext, name: str) -> bool:
    return context.authorized(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name, log_denied=False)


def _fill(broker: Broker, context: RequestContext, result: Result, created: CreatedTopic) -> None:
    result.error_code, result.error_message = created.error.code, created.error.message
    if _may_describe(context, result.name):
        result.topic_id = created.topic_id  # also of one that is made but has no leader yet
    if created.error.code is not ErrorCode.NONE:
        return
    if not _may_describe(context, result.name):
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return
    result.num_partitions = created.num_partitions
    result.replication_factor = created.replication_factor
    if context.api_version >= 5:
        result.configs = _configs(broker, dict(created.configs))


def _configs(broker: Broker, overrides: dict[str, str]) -> list[TopicConfig]:
    """Every topic key with the value in effect, and which layer it comes from; by name in the place of Kafka 4."""
    everything = Asked(names=frozenset(), synonyms=False, documentation=False)
    entries = list(topic_entries(broker.config, overrides, everything))
    if is_kafka_4(broker.config.release):
        entries.sort(key=lambda entry: entry.name)
    return [
        TopicConfig(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.config_source,
            is_sensitive=entry.is_sensitive,
        )
        for entry in entries
    ]


def error_response(request: CreateTopicsRequest, context: RequestContext, error: KafkaError) -> CreateTopicsResponse:
    """The error at each topic; a text only where it says more than the code."""
    message = None if error.message == error.code.message else error.message
    return CreateTopicsResponse(
        topics=[Result(name=topic.name, error_code=error.code, error_message=message) for topic in request.topics]
    )
