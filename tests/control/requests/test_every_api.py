"""Every served API in every version: an error act yields a response that encodes, with the error where it belongs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trio

from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.control.requests.request_json import error_names
from kpybroker.control.rules.acts import Error
from kpybroker.control.rules.entities import NAMED, TOP, SeenTopics, entities, fields_in, struct_of
from kpybroker.control.rules.entity_table import SHAPES, shape_of
from kpybroker.control.rules.merging import ShapedResponse, can_leave_out, depth_of_error, elements_at
from kpybroker.control.rules.rule import Match
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import decode_from
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.headers import parse_request_header
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from kpybroker.wire.schema import Message
from tests.support.brokers.faulty_broker import TWO_OF, Faulty, faulty_broker, request_for_two
from tests.support.brokers.running_broker import ask, create_topic

INJECTED = ErrorCode.DUPLICATE_VOTER
"""No handler returns it."""

KEYS = list(SERVED)


def versions_of(key: ApiKey) -> range:
    return range(SERVED[key][0], SERVED[key][1] + 1)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_every_version_has_one_shape_whose_fields_exist(key: ApiKey) -> None:
    for version in versions_of(key):
        fitting = [one for one in SHAPES[key] if one.versions[0] <= version <= one.versions[1]]
        assert len(fitting) == 1, version
        _check_fields(API_INFO[key].request_class(), fitting[0].request, version)
        _check_fields(API_INFO[key].response_class(), fitting[0].response, version)


def _check_fields(message_class: type[Message], arrays: Any, version: int) -> None:
    struct = message_class
    for level in arrays:
        assert level.name in fields_in(message_class, struct, version), level
        if any(name == "" for _, name in level.keys):
            continue
        struct = struct_of(message_class, struct, level.name)
        present = fields_in(message_class, struct, version)
        # a name or an id of a topic, and everything else
        assert {name for kind, name in level.keys if kind not in ("topic", "topic_id")} <= present, level
        assert any(name in present for _, name in level.keys) or not level.keys
        assert not level.error or level.error in present, level
        assert set(level.failed) <= set(struct.__slots__)


@dataclass
class Broker:
    """A faulty broker, and the requests that reached its handlers."""

    faulty: Faulty
    ids: dict[str, bytes]
    handled: list[Message] = field(default_factory=list)

    async def ask(self, key: ApiKey, version: int) -> Any:
        if key is ApiKey.SHARE_ACKNOWLEDGE:  # wants a session
            await ask(self.faulty.broker, self.request(ApiKey.SHARE_FETCH, version), version)
        self.handled.clear()
        return await ask(self.faulty.broker, self.request(key, version), version)

    def request(self, key: ApiKey, version: int) -> Message:
        request: Any = request_for_two(key, shape_of(key, version), version, self.ids)
        if key is ApiKey.PRODUCE:
            request.acks = 1
        if key in (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE):
            request.member_id = "member"
        if key is ApiKey.SHARE_ACKNOWLEDGE:
            request.share_session_epoch = 1
            for partition in (one for topic in request.topics for one in topic.partitions):
                batch = ShareAcknowledgeRequest.AcknowledgementBatch(acknowledge_types=[1])
                partition.acknowledgement_batches = [batch]
        for acl in _acls(key, request):
            acl.operation = acl.permission_type = 3  # READ, ALLOW
            setattr(acl, "resource_type" if key is ApiKey.CREATE_ACLS else "resource_type_filter", 2)
        return request  # type: ignore[no-any-return]


def _acls(key: ApiKey, request: Any) -> list[Any]:
    """What is about ACLs in a request, where 0 is refused as UNKNOWN."""
    match key:
        case ApiKey.DESCRIBE_ACLS:
            return [request]
        case ApiKey.CREATE_ACLS:
            return list(request.creations)
        case ApiKey.DELETE_ACLS:
            return list(request.filters)
        case _:
            return []


@asynccontextmanager
async def serving(directory: Path) -> AsyncIterator[Broker]:
    keys: dict[str, Any] = {
        "transaction_state_log_replication_factor": "1",
        "transaction_state_log_num_partitions": "2",
        "share_coordinator_state_topic_replication_factor": "1",
        "share_coordinator_state_topic_num_partitions": "2",
        "share_coordinator_state_topic_min_isr": "1",
    }
    async with faulty_broker(directory, transaction_state_log_min_isr="1", **keys) as faulty:
        ids = {name: await create_topic(faulty.broker, name, partitions=2) for name in TWO_OF["topic"]}
        broker = Broker(faulty, ids)
        await _coordinators(faulty)
        respond_directly: Callable[..., Any] = faulty.broker.dispatcher.respond_directly

        def recording(frame: Any, *rest: Any) -> Any:
            header = parse_request_header(frame)
            message_class = API_INFO[ApiKey(header.api_key)].request_class()
            message, _ = decode_from(message_class, bytes(frame), header.body_offset, header.api_version)
            broker.handled.append(message)
            return respond_directly(frame, *rest)

        faulty.broker.dispatcher.respond_directly = recording  # type: ignore[method-assign, assignment]
        yield broker


async def _coordinators(faulty: Faulty) -> None:
    """Of the groups and the transactions: their topics exist, and this broker leads them."""
    for key_type, kind in enumerate(("group", "transactional_id")):
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(TWO_OF[kind]))
        with trio.fail_after(30):
            while any(one.error_code for one in (await ask(faulty.broker, request, 4)).coordinators):
                await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
async def test_an_error_for_some_leaves_the_rest_real(tmp_path: Path, key: ApiKey) -> None:
    async with serving(tmp_path) as broker:
        for version in versions_of(key):
            shape = shape_of(key, version)
            topics = SeenTopics(broker.faulty.broker.metadata)
            first = entities(shape, broker.request(key, version), topics)[0].names
            names = {kind: first[kind] for kind in NAMED if kind != "topic_id" and first.get(kind) is not None}
            if not names:
                continue
            fault = broker.faulty.add({"error": INJECTED.name}, api=API_INFO[key].name, **names)
            response = await broker.ask(key, version)
            assert INJECTED.name in error_names(response, version), (version, response)
            assert fault.hits.count == 1
            depth = depth_of_error(shape, fault.rule.match, Error(INJECTED))
            if depth != TOP:
                _check_places(broker, key, version, response, fault.rule.match, depth)
            broker.faulty.handles.clear()


def _check_places(broker: Broker, key: ApiKey, version: int, response: Any, match: Match, depth: int) -> None:
    shape, request = shape_of(key, version), broker.request(key, version)
    topics = SeenTopics(broker.faulty.broker.metadata)
    found = entities(shape, request, topics)
    shaped = ShapedResponse(shape, request, response, version, topics)
    failed: list[Any] = []
    others: list[Any] = []
    for element in elements_at(shaped, depth):
        one: Any = element.elements[element.index]
        is_failed = getattr(one, str(shape.response[depth].error)) == INJECTED
        (failed if is_failed else others).append(element.names)
    is_whole = shape.response[depth].is_response_only or len(found) == 1
    is_whole |= key is ApiKey.SHARE_FETCH  # there are no records, and only partitions with records are named
    assert failed, version
    assert others or is_whole or response.error_code, (version, response)
    for names in failed:
        assert all(match.named[kind](names[kind]) for kind in match.named if kind in names)
    for names in others:
        assert not all(kind in names and match.named[kind](names[kind]) for kind in match.named), (version, names)
    if can_leave_out(shape, depth):
        handled = [one for message in broker.handled for one in entities(shape, message, topics)]
        assert len(handled) == len(found) - sum(
            all(match.named[kind](one.names.get(kind)) for kind in match.named) for one in found
        )
        order = [one.identity for one in found]
        seen = [one.identity for one in elements_at(shaped, depth)]
        ranks = [min(r for r, o in enumerate(order) if set(identity) <= set(o)) for identity in seen]
        assert ranks == sorted(ranks), version


ACTS: list[dict[str, Any]] = [{}, {"level": "top"}, {"after_work": True}, {"level": "top", "after_work": True}]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
async def test_an_error_for_everything(tmp_path: Path, key: ApiKey) -> None:
    """By each act, one after the other on one broker: to start it is what takes long."""
    async with serving(tmp_path) as broker:
        assert [wrong for act in ACTS for wrong in await _differences(broker, key, act)] == []


async def _differences(broker: Broker, key: ApiKey, act: dict[str, Any]) -> list[Any]:
    found: list[Any] = []
    fault = broker.faulty.add({"error": INJECTED.name, **act}, api=API_INFO[key].name)
    for version in versions_of(key):
        response = await broker.ask(key, version)
        names = error_names(response, version)
        if names != [INJECTED.name] and not ("after_work" in act and INJECTED.name in names):
            found.append((act, version, response))
        if broker.handled and "after_work" not in act and not shape_of(key, version).is_always_handled:
            found.append((act, version, "was handled"))
    if fault.hits.count != len(versions_of(key)):
        found.append((act, "hits", fault.hits.count))
    broker.faulty.handles.clear()
    return found
