"""ShareFetch 1-2: acquire records of a share group, and acknowledge those that were acquired before (KIP-932).

The session (`core.share.sessions`) has the partitions that are fetched. Records leave by `sendfile`, in whole batches;
`acquired_records` says which offsets of them the member holds, for `acquisition_lock_timeout_ms`. Acknowledgements are
taken before records are acquired, and the response waits until what they change is persisted.

Difference from Kafka: a client over its quota gets what was acquired and is muted afterwards, as for Produce. Kafka
sends nothing, so that the records stay locked until their time is over, and a delivery is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.handlers.records.share_acknowledgements import (
    RENEWALS_FROM,
    Acknowledged,
    TopicAccess,
    acknowledge,
    current_leader,
    leader_endpoints,
    require_member,
)
from kpybroker.broker.loop.steps import Steps, Wait
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.broker.share.share_fetches import Got, ShareWish, release
from kpybroker.core.share.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    SessionKey,
    SharePartitionId,
    ShareSession,
    next_epoch,
)
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.SHARE_FETCH,
    1,
    2,
    {
        1: "share sessions, acquired records, acknowledgements (KIP-932)",
        2: "a strict limit of records (KIP-1206), renewed locks (KIP-1222)",
    },
)

RECORD_LIMIT = 1
"""The acquire mode that never exceeds `max_records`."""

Topic = ShareFetchResponse.ShareFetchableTopicResponse
Partition = ShareFetchResponse.PartitionData


def handle(broker: Broker, request: ShareFetchRequest, context: RequestContext) -> Steps[ShareFetchResponse]:
    """Acknowledge, then acquire, waiting for `min_bytes` up to `max_wait_ms`."""
    key = require_member(broker, context, request.group_id, request.member_id)
    renews = context.api_version >= RENEWALS_FROM and request.is_renew_ack
    if renews and (request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    try:
        session, acknowledges = yield from _session(broker, request, context, key)
    except KafkaError as error:
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:  # so that the client does not ask again at once
            yield Wait(trio.current_time() + max(request.max_wait_ms, 0) / 1000)
        raise
    access = TopicAccess(broker, context)
    acknowledged = Acknowledged({}, [], None)
    if acknowledges:
        acknowledged = yield from acknowledge(broker, access, key, request.topics, renews)
    got: dict[SharePartitionId, Got] = {}
    try:
        if not renews and request.share_session_epoch != FINAL_EPOCH:
            got = yield from _fetch(broker, request, context, access, list(session.partitions), acknowledged.persist)
        results = yield from acknowledged.results()
        context.on_sent = [partial(release, got.values())]
        response = yield from _response(broker, context, request, session, got)
        yield from _add_results(response, results, acknowledged)
        if (
            request.share_session_epoch == FINAL_EPOCH
            and broker.coordinators.share_partitions.sessions.remove(key) is not None
        ):
            broker.coordinators.share_partitions.release(session)
    except BaseException:
        release(got.values())
        acknowledged.persist()
        raise
    return response


def _session(
    broker: Broker, request: ShareFetchRequest, context: RequestContext, key: SessionKey
) -> Steps[tuple[ShareSession, bool]]:
    """The session, with what the request changes of it, and whether the request acknowledges."""
    sessions = broker.coordinators.share_partitions.sessions
    epoch, budget = request.share_session_epoch, YieldBudget()
    named: dict[SharePartitionId, bool] = {}
    acknowledges = False
    for topic in request.topics:
        for one in topic.partitions:
            named[SharePartitionId(topic.topic_id, one.partition_index)] = False
            acknowledges |= bool(one.acknowledgement_batches)
            yield from budget.steps()
    if epoch == FINAL_EPOCH:
        return sessions.require(key), acknowledges
    if epoch == INITIAL_EPOCH:
        opened = sessions.open(key, named, context.connection_id, context.owner, acknowledges=acknowledges)
        return opened, acknowledges
    session = sessions.proceed(key, epoch)
    for partition_id in named:
        session.put(partition_id)
        yield from budget.steps()
    for forgotten in request.forgotten_topics_data:
        for index in forgotten.partitions:
            session.forget(SharePartitionId(forgotten.topic_id, index))
            yield from budget.steps()
    sessions.grown(session)
    return session, acknowledges


def _fetch(
    broker: Broker,
    request: ShareFetchRequest,
    context: RequestContext,
    access: TopicAccess,
    partitions: list[SharePartitionId],
    before_waiting: Callable[[], None],
) -> Steps[dict[SharePartitionId, Got]]:
    """Those of the session that may be read, each time with another one first."""
    refused: dict[SharePartitionId, Got] = {}
    wanted: list[tuple[SharePartitionId, str]] = []
    budget = YieldBudget(context.connection.may_leave)
    for partition_id in partitions:
        yield from budget.steps()
        name = access.name(partition_id.topic_id)
        refusal = access.refusal(name, partition_id.partition)
        if refusal is ErrorCode.NONE and name is not None:
            wanted.append((partition_id, name))
        else:
            refused[partition_id] = Got(KafkaError(refusal))
    if request.share_session_epoch > 0 and wanted:
        first = request.share_session_epoch % len(wanted)
        wanted = wanted[first:] + wanted[:first]
    max_bytes = min(request.max_bytes, broker.fetch_service.bytes_max)
    if context.metering is not None:
        max_bytes = min(max_bytes, context.metering.fetch_bytes_max())
    assert request.group_id is not None
    assert request.member_id is not None
    wish = ShareWish(
        request.group_id,
        request.member_id,
        request.max_wait_ms,
        min(request.min_bytes, max_bytes),
        max_bytes,
        request.max_records,
        request.batch_size,
        context.api_version >= RENEWALS_FROM and request.share_acquire_mode == RECORD_LIMIT,
        context,
    )
    got = yield from broker.coordinators.share_partitions.fetches.fetch(wish, wanted, before_waiting)
    refused.update(got)
    return refused


def _response(
    broker: Broker,
    context: RequestContext,
    request: ShareFetchRequest,
    session: ShareSession,
    got: dict[SharePartitionId, Got],
) -> Steps[ShareFetchResponse]:
    """What was got of each partition that has news; nothing where another request has gone on with the session."""
    epoch = request.share_session_epoch
    settings = broker.coordinators.share_partitions.settings_of(session.key.group_id)
    response = ShareFetchResponse(acquisition_lock_timeout_ms=settings.partition.record_lock_duration_ms)
    is_later = epoch not in (INITIAL_EPOCH, FINAL_EPOCH)
    if is_later and session.epoch != next_epoch(epoch):
        release(got.values())
        response.error_code = ErrorCode.INVALID_SHARE_SESSION_EPOCH
        return response
    sent, topics, budget = [], dict[bytes, Topic](), YieldBudget()
    for partition_id, one in got.items():
        yield from budget.steps()
        has_error = one.error is not None
        if not is_later or session.names(partition_id, has_records=one.records is not None, has_error=has_error):
            sent.append(_partition(broker, partition_id, one))
            _topic(topics, partition_id.topic_id).partitions.append(sent[-1])
        else:
            release((one,))
    response.responses = list(topics.values())
    response.node_endpoints = leader_endpoints(broker, context, sent, ShareFetchResponse.NodeEndpoint)
    if context.metering is not None:
        context.metering.count_fetch(sum(one.records.size for one in got.values() if one.records is not None))
    return response


def _partition(broker: Broker, partition_id: SharePartitionId, got: Got) -> Partition:
    code = ErrorCode.NONE if got.error is None else got.error.code
    index = partition_id.partition
    data = Partition(partition_index=index, error_code=code, records=b"" if got.records is None else got.records)
    data.acquired_records = [
        ShareFetchResponse.AcquiredRecords(
            first_offset=row.first, last_offset=row.last, delivery_count=row.delivery_count
        )
        for row in got.acquired
    ]
    name = broker.metadata.topic_name(partition_id.topic_id)
    leader = current_leader(broker, name, index, code, ShareFetchResponse.LeaderIdAndEpoch)
    if leader is not None:
        data.current_leader = leader
    return data


def _topic(topics: dict[bytes, Topic], topic_id: bytes) -> Topic:
    """The topic's entry: its partitions are together, wherever they were in the session."""
    topic = topics.get(topic_id)
    if topic is None:
        topic = topics[topic_id] = Topic(topic_id=topic_id)
    return topic


def _add_results(
    response: ShareFetchResponse, results: dict[SharePartitionId, ErrorCode], acknowledged: Acknowledged
) -> Steps[None]:
    """The results of acknowledgements, next to what was fetched of the partition or by themselves."""
    if not results:
        return
    topics, budget = {topic.topic_id: topic for topic in response.responses}, YieldBudget()
    known: dict[SharePartitionId, Partition] = {}
    for topic in response.responses:
        for data in topic.partitions:
            known[SharePartitionId(topic.topic_id, data.partition_index)] = data
            yield from budget.steps()
    for partition_id, code in results.items():
        found = known.get(partition_id)
        if found is None:
            found = Partition(partition_index=partition_id.partition, records=b"")
            _topic(topics, partition_id.topic_id).partitions.append(found)
        found.acknowledge_error_code, found.acknowledge_error_message = code, acknowledged.message(partition_id)
        yield from budget.steps()
    response.responses = list(topics.values())


def error_response(request: ShareFetchRequest, context: RequestContext, error: KafkaError) -> ShareFetchResponse:
    """The error at the top of the response."""
    return ShareFetchResponse(error_code=error.code)
