"""One request that faults may act on: decoded, with all that it names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.loop.yielding import paced
from kpybroker.broker.requests.context import ConnectionInfo
from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.control.requests.faults import Fault
from kpybroker.control.requests.seams import Sessions
from kpybroker.control.rules.entities import Entity, SeenTopics, Shape, Topics, entities, identify
from kpybroker.control.rules.entity_table import NO_ENTITIES, shape_of
from kpybroker.control.rules.merging import Failure
from kpybroker.core.replication.fetch_session import FINAL_EPOCH, INITIAL_EPOCH, FetchKey
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import LARGE_FRAME_BYTES, decode_from, decode_steps
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.headers import RequestHeader
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.schema import Message

TOPIC_IDS_FROM = 13


@dataclass(slots=True)
class Call:
    """`version` is that of the response: for an ApiVersions request of the future it is 0, and there is no body.

    `failures` are errors for parts of it, `late` the acts that follow the work, in the order of their faults.
    """

    key: ApiKey
    version: int
    header: RequestHeader
    connection: ConnectionInfo
    frame: bytearray
    request: Message
    shape: Shape
    topics: SeenTopics
    found: list[Entity]
    failures: list[tuple[Fault, Failure]] = field(default_factory=list)
    late: list[tuple[Fault, Sequence[Entity]]] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)
    """Ids of those that acted."""


def call_of(
    frame: bytearray, header: RequestHeader, connection: ConnectionInfo, topics: Topics, sessions: Sessions
) -> Steps[Call]:
    """Decode a request of a served API. Raises ProtocolError."""
    key = ApiKey(header.api_key)
    oldest, newest = SERVED[key]
    version, shape = header.api_version, shape_of(key, header.api_version)
    request_class = API_INFO[key].request_class()
    if not oldest <= version <= newest:
        version, shape, request = 0, NO_ENTITIES, request_class()
    elif len(frame) <= LARGE_FRAME_BYTES:
        request, _ = decode_from(request_class, memoryview(frame), header.body_offset, version)
    else:
        body = memoryview(frame)[header.body_offset :]
        request = yield from paced(decode_steps(request_class, body, version))
    seen = SeenTopics(topics)
    found = entities(shape, request, seen)
    if isinstance(request, FetchRequest):
        found += _of_session(shape, request, found, sessions, seen)
    return Call(key, version, header, connection, frame, request, shape, seen, found)


def _of_session(
    shape: Shape, request: FetchRequest, found: Sequence[Entity], sessions: Sessions, topics: SeenTopics
) -> list[Entity]:
    """Partitions that an incremental fetch asks for without naming them (KIP-227)."""
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        return []
    session = sessions.peek(request.session_id)
    if session is None:
        return []
    named = {one.identity for one in found}
    forgotten = {
        (topic.topic_id, "" if topic.topic_id != ZERO_UUID else topic.topic, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    }
    others = [entity_of(shape, key, topics) for key in session.partitions if key not in forgotten]
    return [one for one in others if one.identity not in named]


def entity_of(shape: Shape, key: FetchKey, topics: SeenTopics) -> Entity:
    """A partition of a fetch session."""
    topic_id, name, index = key
    identity, names = identify(shape.request[0], FetchRequest.FetchTopic(topic=name, topic_id=topic_id), topics)
    return Entity((*identity, ("partition", index)), {**names, "partition": index})
