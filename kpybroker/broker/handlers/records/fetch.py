"""Fetch 0-18: read record batches from partitions, for consumers and followers.

Sessions (KIP-227) as in `core.replication.fetch_session`; records leave by `sendfile`. Consumers read up to the high
watermark, or the last stable offset with READ_COMMITTED, followers up to the log end. A batch is sent whole, so the
first may begin below the offset and may exceed the limits (KIP-74). Versions below 4 receive message sets of magic 0 or
1.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.handlers.records.current_leaders import node_endpoints
from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.network.sending import BUFFERS
from kpybroker.broker.replication.fetch_visit import FOLLOWER_FETCHING_SINCE, FetchParams, Visit, release
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Action, Operation, ResourceType
from kpybroker.core.replication.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    CachedPartition,
    FetchSession,
)
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import encode_parts
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.fetch import FetchRequest, FetchResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.FETCH,
    0,
    18,
    {
        0: "message sets of magic 0",
        1: "throttle time",
        2: "magic 1",
        3: "a limit for the whole response",
        4: "record batches (magic 2), isolation level, last stable offset, aborted transactions",
        5: "log start offset",
        7: "fetch sessions",
        9: "leader epoch fencing",
        10: "zstd",
        11: "rack id, preferred read replica (KIP-392)",
        12: "flexible; last fetched epoch and divergence",
        13: "topic ids",
        15: "replica state instead of replica id",
        16: "the current leader and its endpoint (KIP-951)",
        17: "directory id of a follower",
        18: "the high watermark that a follower of KRaft knows (KIP-1166)",
    },
    absent="the directory and the high watermark of a follower of KRaft are read and passed over",
)

CONSUMER = -1
READ, TOPIC = Operation.READ, ResourceType.TOPIC  # an enum's attribute takes 0.1 µs
SIZE_BYTES = 4
MANY_VISITS = 5_000
"""Above it, others run between the steps over all visits, and after as many positions."""


def handle(broker: Broker, request: FetchRequest, context: RequestContext) -> Steps[FetchResponse]:
    """Read the dirty partitions of the session, waiting for `min_bytes` up to `max_wait_ms`."""
    readable = _Readable(context)
    params = _params(broker, request, context, readable)
    if params.is_follower:
        _is_of_follower(broker, params, context, readable)
    now_ms, fetches = broker.clock.time_ms(), broker.fetch_service
    try:
        session = fetches.sessions.session_for(
            request.session_id,
            request.session_epoch,
            is_follower=params.is_follower,
            uses_topic_ids=params.version >= 13,
            now_ms=now_ms,
        )
        topics = request.topics
        if topics or request.forgotten_topics_data:
            if len(topics) == 1 and len(topics[0].partitions) == 1 and not request.forgotten_topics_data:
                _put(session, topics[0], topics[0].partitions, params.version)
            else:
                yield from _update_session(broker, session, request, params.version)
            if session.session_id:
                fetches.sessions.grown(session, now_ms)
    except KafkaError as error:
        return error_response(request, context, error)
    is_full = request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH)
    readable.session = session
    generation = broker.authorizer.generation
    if session.access_generation != generation:
        session.access_changed(generation, visits_all=is_full)
    if not is_full and not session.partitions:
        fetches.sessions.remove(session.session_id)
        session.session_id = 0
    visits = yield from fetches.fetch(session, params)
    context.on_sent = [partial(release, visits)]
    is_large = len(visits) > MANY_VISITS
    if is_large:
        yield trio.lowlevel.checkpoint
    if params.is_follower:
        fetches.record_throttled(visits)
    elif context.metering is not None and context.metering.throttle_fetch(
        _size(session, visits, is_full=is_full, version=params.version)
    ):
        fetches.put_back(session, visits)
        return _throttled(session, request)
    fetches.count_sent(visits, params)
    if request.session_epoch == INITIAL_EPOCH and params.version >= 7:
        session.owner = context.owner
        fetches.sessions.keep(session, fetches.new_session_ids(), now_ms)
    fetches.release_session(session)
    if is_large:
        yield trio.lowlevel.checkpoint
        visits.sort(key=_order)
        yield trio.lowlevel.checkpoint
    response = _response(session, visits, is_full=is_full, by_id=params.version >= 13)
    if params.version >= 16:
        response.node_endpoints = node_endpoints(
            broker, context, (visit.data for visit in visits), FetchResponse.NodeEndpoint
        )
    return response


def _is_of_follower(broker: Broker, params: FetchParams, context: RequestContext, readable: _Readable) -> None:
    """Another broker asks, for all topics or for none of them."""
    readable.replicates = context.authorized(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
    if context.metering is not None:
        context.metering.is_exempt = True
    broker.fetch_service.follower_requests[params.version] += 1
    if context.timing is not None:
        context.timing.is_of_follower()


class _Readable:
    """Which topics the request may read: each is decided once, however long the request waits.

    `replicates`: for all topics, if another broker asks. `session` is for the audit log.
    """

    __slots__ = ("_context", "_known", "replicates", "session")

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._known: dict[str, bool] = {}
        self.replicates: bool | None = None
        self.session: FetchSession | None = None

    def __call__(self, name: str) -> bool:
        if self.replicates is not None:
            return self.replicates
        found = self._known.get(name)
        if found is None:
            context = self._context
            authorizer, connection = context.authorizer, context.connection
            found = authorizer.authorize(connection.principal, connection.client_host, READ, TOPIC, name)
            if not found or authorizer.audits_allowed:
                authorizer.audit(context, Action(READ, TOPIC, name, self._references(name)), found)
            self._known[name] = found
        return found

    def _references(self, name: str) -> int:
        partitions = () if self.session is None else self.session.partitions.values()
        topics = {cached.key[:2] for cached in partitions if name in (cached.key[1], cached.resolved_name)}
        return sum(1 for cached in partitions if cached.key[:2] in topics)


def _params(broker: Broker, request: FetchRequest, context: RequestContext, readable: _Readable) -> FetchParams:
    version = context.api_version
    replica_id = request.replica_id
    if version >= 15:
        replica_id = CONSUMER if request.replica_state is None else request.replica_state.replica_id
    max_bytes = request.max_bytes if version >= 3 else 0x7FFFFFFF
    if replica_id < 0:
        max_bytes = min(max_bytes, broker.fetch_service.bytes_max)
        if context.metering is not None:
            max_bytes = min(max_bytes, context.metering.fetch_bytes_max())
    return FetchParams(  # names of arguments would take 0.9 µs
        version,
        replica_id,
        request.max_wait_ms,
        min(request.min_bytes, max_bytes),
        max_bytes,
        request.isolation_level,
        readable,
        context,
        request.rack_id if version >= 11 else "",
        replica_id >= 0,  # is_follower
        replica_id >= 0 or version < FOLLOWER_FETCHING_SINCE,  # only_leader
        version <= 2,  # has_hard_limits
    )


def _update_session(broker: Broker, session: FetchSession, request: FetchRequest, version: int) -> Steps[None]:
    kept = session.session_id != 0
    left = MANY_VISITS
    for topic in request.topics:
        partitions = topic.partitions
        for start in range(0, len(partitions), MANY_VISITS):
            _put(session, topic, islice(partitions, start, start + MANY_VISITS), version)
            left -= len(partitions)
            if left < 0:
                left = MANY_VISITS
                yield trio.lowlevel.checkpoint
    for forgotten in request.forgotten_topics_data:
        name, topic_id = ("", forgotten.topic_id) if version >= 13 else (forgotten.topic, ZERO_UUID)
        for index in forgotten.partitions:
            key = (topic_id, name, index)
            if session.forget(key) and kept:
                broker.fetch_service.unsubscribe(session, key)
            left -= 1
            if left < 0:
                left = MANY_VISITS
                yield trio.lowlevel.checkpoint


def _put(
    session: FetchSession,
    topic: FetchRequest.FetchTopic,
    partitions: Iterable[FetchRequest.FetchPartition],
    version: int,
) -> None:
    name, topic_id = ("", topic.topic_id) if version >= 13 else (topic.topic, ZERO_UUID)
    for wanted in partitions:
        session.put(
            CachedPartition(
                (topic_id, name, wanted.partition),
                wanted.fetch_offset,
                wanted.partition_max_bytes,
                wanted.current_leader_epoch,
                wanted.last_fetched_epoch,
                wanted.log_start_offset,
            )
        )


def _order(visit: Visit) -> int:
    """Those that were never read are last, first the unknown ids of them, each part in the order of the queue."""
    rank = 0 if not visit.is_unread else 1 if visit.data.error_code == ErrorCode.UNKNOWN_TOPIC_ID else 2
    return visit.cached.queue_position + (rank << 62)


def _response(session: FetchSession, visits: list[Visit], *, is_full: bool, by_id: bool) -> FetchResponse:
    """All partitions of a full request, in its order; those that changed of an incremental one.

    As in Kafka those that were never read are last, and only neighbours share their topic's entry.
    """
    topics: list[FetchResponse.FetchableTopicResponse] = []
    last_topic: str | bytes | None = None
    kept = session.session_id != 0
    if len(visits) > 1:
        visits = sorted(visits, key=_order)
    for visit in visits:
        key, data = visit.cached.key, visit.data
        has_records = visit.size > 0
        if kept:
            news = visit.cached.has_changed(
                data.high_watermark,
                data.log_start_offset,
                has_records=has_records,
                is_special=visit.is_special,
            )
            if not news and not is_full:
                continue
            if has_records and not is_full:
                session.move_to_end(visit.cached)
        topic: str | bytes = key[0] if by_id else key[1]
        if topic != last_topic:
            topics.append(FetchResponse.FetchableTopicResponse(topic=key[1], topic_id=key[0]))
            last_topic = topic
        topics[-1].partitions.append(data)
    return FetchResponse(session_id=session.session_id, responses=topics)


def _size(session: FetchSession, visits: list[Visit], *, is_full: bool, version: int) -> int:
    """What Kafka counts of a response: the bytes of its body and of the size in front, before old formats."""
    topics: list[FetchResponse.FetchableTopicResponse] = []
    for visit in visits:
        key, data = visit.cached.key, visit.data
        differs = visit.cached.differs(
            data.high_watermark, data.log_start_offset, has_records=visit.size > 0, is_special=visit.is_special
        )
        if is_full or differs or session.session_id == 0:
            if not topics or (topics[-1].topic, topics[-1].topic_id) != (key[1], key[0]):
                topics.append(FetchResponse.FetchableTopicResponse(topic=key[1], topic_id=key[0]))
            topics[-1].partitions.append(data)
    response = FetchResponse(session_id=session.session_id, responses=topics)
    parts = encode_parts(response, version)
    return SIZE_BYTES + sum(len(part) if isinstance(part, BUFFERS) else part.size for part in parts)


def _throttled(session: FetchSession, request: FetchRequest) -> FetchResponse:
    """Nothing, for a client that has to wait: a full request gets no session."""
    if session.session_id and session.epoch != (
        1 if request.session_epoch == 0x7FFFFFFF else request.session_epoch + 1
    ):
        return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.session_id)
    return FetchResponse(session_id=session.session_id)


def error_response(request: FetchRequest, context: RequestContext, error: KafkaError) -> FetchResponse:
    """The error at the top of the response, before version 7 at each partition."""
    if context.api_version >= 7:
        return FetchResponse(error_code=error.code)
    return FetchResponse(
        responses=[
            FetchResponse.FetchableTopicResponse(
                topic=topic.topic,
                partitions=[
                    FetchResponse.PartitionData(
                        partition_index=wanted.partition,
                        error_code=error.code,
                        high_watermark=-1,
                        last_stable_offset=-1,
                        records=b"",
                    )
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
