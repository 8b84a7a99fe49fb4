"""The acts that wait, end the connection, or decide how a response leaves."""

from __future__ import annotations

from functools import partial
from typing import NoReturn

import trio

from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.network.response import NO_RESPONSE, Response
from kpybroker.broker.network.transport import Stream
from kpybroker.broker.requests.context import ConnectionInfo
from kpybroker.control.requests import replies
from kpybroker.control.requests.calls import Call
from kpybroker.control.requests.faults import Fault
from kpybroker.control.rules import acts


class NoResponseError(Exception):
    """A fault wants the request to stay without a response."""


def ignored(fault: Fault, connection: ConnectionInfo) -> Response:
    """The response to what arrives after a fault has silenced the client or the connection. A black hole counts it."""
    if isinstance(fault.rule.act, acts.Blackhole):
        fault.hits.add()
        fault.silence(connection)
    return NO_RESPONSE


def before_work(call: Call, fault: Fault) -> Steps[None]:
    """Act at once. Raises NoResponseError, or OSError to end the connection."""
    fault.hits.add()
    match fault.rule.act:
        case acts.Delay(delay_ms, jitter_ms):
            seconds = max(delay_ms + fault.jitter_ms(jitter_ms), 0) / 1000
            yield from fault.hold(seconds)
        case acts.Hold():
            yield from fault.hold()
        case acts.Disconnect(is_reset=is_reset):
            _end(call.connection.stream, fault, is_reset=is_reset)
        case acts.NeverAnswer(is_reading):
            yield from _never_answer(call, fault, is_reading=is_reading)
        case acts.Blackhole():
            fault.clients.add((call.header.client_id, call.connection.client_host))
            fault.silence(call.connection)
            raise NoResponseError


def after_work(call: Call, response: Response) -> Steps[Response]:
    """Change the response, wait, and let it leave as the first fault that has a say in it wants. Raises OSError."""
    response = yield from _changed(call, response)
    last: Fault | None = None
    for fault, _ in call.late:
        if isinstance(fault.rule.act, acts.Delay | acts.Hold):
            yield from before_work(call, fault)
        elif last is None and isinstance(
            fault.rule.act, acts.Disconnect | acts.Truncate | acts.Slice | acts.NeverAnswer
        ):
            last = fault
    if last is None:
        return response
    frame = yield from replies.read(response)
    last.hits.add()
    stream = call.connection.stream
    match last.rule.act:
        case acts.Disconnect(is_reset=is_reset):
            _end(stream, last, is_reset=is_reset)
        case acts.Truncate(size):
            if stream is not None and frame[:size]:
                yield partial(stream.send_parts, [frame[:size]])
            _end(stream, last)
        case acts.Slice(size, every_ms) if stream is not None:
            yield partial(_in_pieces, stream, frame, size, every_ms / 1000)
            return NO_RESPONSE
        case acts.NeverAnswer(is_reading):
            yield from _never_answer(call, last, is_reading=is_reading)
    return Response(frame)


def _never_answer(call: Call, fault: Fault, *, is_reading: bool) -> Steps[NoReturn]:
    """Silence the connection. What does not read, or has no connection, waits for the removal of the fault."""
    if not is_reading or call.connection.stream is None:
        yield from fault.hold()
        _end(call.connection.stream, fault)
    fault.silence(call.connection)
    raise NoResponseError


def _changed(call: Call, original: Response) -> Steps[Response]:
    """Damage and throttle time, by the faults that have something to act on."""
    late = [
        (fault, selected) for fault, selected in call.late if isinstance(fault.rule.act, acts.Corrupt | acts.Throttle)
    ]
    if not late or original.frame == b"":
        return original
    frame = yield from replies.read(original)
    response = replies.decoded(call, frame)
    before = len(call.faults)
    for fault, selected in late:
        match fault.rule.act:
            case acts.Corrupt(damage):
                found = replies.damaged(call, response, selected, damage)
                if found and _fires(call, fault):
                    for partition, records in found:
                        partition.records = records
            case acts.Throttle(throttle_ms):
                if replies.has_throttle_time(call, response) and _fires(call, fault):
                    response.throttle_time_ms = throttle_ms  # type: ignore[attr-defined]
    return Response(replies.encoded(call, response) if len(call.faults) > before else frame)


def _fires(call: Call, fault: Fault) -> bool:
    if not fault.fires():
        return False
    call.faults.append(fault.id)
    fault.hits.add()
    return True


def _end(stream: Stream | None, fault: Fault, *, is_reset: bool = False) -> NoReturn:
    """End the connection as if the client had: the server logs it at debug."""
    if stream is not None and is_reset:
        stream.reset_on_close()
    raise ConnectionAbortedError(f"ended by fault {fault.id}")


async def _in_pieces(stream: Stream, frame: bytes, size: int, every_s: float) -> None:
    for start in range(0, len(frame), size):
        if start:
            await trio.sleep(every_s)
        await stream.send_parts([frame[start : start + size]])
