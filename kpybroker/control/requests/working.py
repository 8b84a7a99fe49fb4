"""The work for a call: what the broker does for it, and the response, with the errors that faults put into it."""

from __future__ import annotations

from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.network.response import Response
from kpybroker.control.requests import replies
from kpybroker.control.requests.calls import TOPIC_IDS_FROM, Call
from kpybroker.control.requests.seams import Intercepted
from kpybroker.control.rules import merging
from kpybroker.control.rules.entities import TOP
from kpybroker.control.rules.merging import Failure
from kpybroker.wire.api import API_INFO
from kpybroker.wire.codec import encode
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode, KafkaError, ProtocolError
from kpybroker.wire.messages.fetch import FetchRequest, FetchResponse
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.schema import Message


def work(broker: Intercepted, call: Call) -> Steps[Response]:
    """Do it, as far as no fault forbids."""
    if not call.failures:
        return (yield from broker.dispatcher.respond_directly(call.frame, call.connection).as_steps())
    failures = [failure for _, failure in call.failures]
    if isinstance(call.request, ProduceRequest):
        _remember_refused(call, call.request, failures)
    top = next((failure for failure in failures if failure.depth == TOP), None)
    if top is not None:
        response = yield from _refused(broker, call, top)
    else:
        response = yield from _partly(broker, call, failures)
    for fault, _ in call.failures:
        fault.hits.add()
    return response


def _remember_refused(call: Call, request: ProduceRequest, failures: list[Failure]) -> None:
    """A batch that is refused for now: those that its producer has sent behind it are refused as well, as always."""
    codes = {
        entity.identity: failure.code
        for failure in reversed(failures)
        if not failure.is_after_work
        for entity in failure.selected
    }
    for topic in request.topic_data:
        name = topic.name or call.topics.topic_name(topic.topic_id) or ""
        for data in topic.partition_data:
            code = codes.get((("topic", name or topic.topic_id), ("partition", data.index)))
            if code is not None:
                place = name, data.index
                call.connection.refused_batches.note(place, topic.topic_id, data.records, KafkaError(code))


def _refused(broker: Intercepted, call: Call, failure: Failure) -> Steps[Response]:
    """The error for the request as a whole, as its API reports it."""
    if failure.is_after_work:
        dropped = yield from broker.dispatcher.respond_directly(call.frame, call.connection).as_steps()
        yield from replies.read(dropped)
    error = KafkaError(failure.code, failure.text)
    message = broker.dispatcher.error_response(call.header, call.connection, call.request, error)
    return Response(replies.encoded(call, message))


def _partly(broker: Intercepted, call: Call, failures: list[Failure]) -> Steps[Response]:
    """Errors for some of what the request names; the broker handles the rest."""
    rest = _rest(call, failures)
    response: Message | None = API_INFO[call.key].response_class()()
    if rest is not None:
        outcome = yield from broker.dispatcher.respond_directly(rest, call.connection).as_steps()
        frame = yield from replies.read(outcome)
        response = replies.decoded(call, frame) if frame else None
    if response is None or (isinstance(call.request, ProduceRequest) and call.request.acks == 0):
        raise ProtocolError(f"produce with acks=0 failed with {failures[0].code.name}")
    shaped = replies.shaped(call, response)
    merging.put_errors(shaped, failures)
    if call.shape.leaves_out:
        merging.in_order_of(shaped, call.found)
    if isinstance(response, FetchResponse):
        _mention_again(broker, call, response)
    return Response(replies.encoded(call, response))


def _rest(call: Call, failures: list[Failure]) -> bytearray | None:
    """The frame of the request that the broker handles; None if there is nothing left to do."""
    unwanted = {
        entity.identity
        for failure in failures
        if not failure.is_after_work and merging.can_leave_out(call.shape, failure.depth)
        for entity in failure.selected
        if not entity.is_all
    }
    if isinstance(call.request, FetchRequest) and not all(failure.is_after_work for failure in failures):
        call.request.max_wait_ms = 0  # a response with an error does not wait for records
    elif not unwanted:
        return call.frame
    elif not merging.leave_out(call.shape, call.request, unwanted, call.topics) and not call.shape.is_always_handled:
        return None
    return call.frame[: call.header.body_offset] + encode(call.request, call.version)


def _mention_again(broker: Intercepted, call: Call, response: FetchResponse) -> None:
    """Errors in a session's response: the next one names these partitions again, as after errors of the broker."""
    assert isinstance(call.request, FetchRequest)
    session = broker.fetch_service.sessions.peek(response.session_id or call.request.session_id)
    if session is None:
        return
    for element in merging.elements_at(replies.shaped(call, response), replies.PARTITIONS):
        if element.elements[element.index].error_code != ErrorCode.NONE:
            by_id = call.version >= TOPIC_IDS_FROM
            topic_id, name = (element.names["topic_id"], "") if by_id else (ZERO_UUID, element.names["topic"])
            session.mention_again((topic_id, name, element.names["partition"]))
