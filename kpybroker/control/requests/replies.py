"""The response to a call: waited for, read, decoded, changed, encoded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import trio

from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.network.response import Response
from kpybroker.control.requests.calls import Call
from kpybroker.control.rules.acts import Damage
from kpybroker.control.rules.corruption import corrupted
from kpybroker.control.rules.entities import Entity, fields_in
from kpybroker.control.rules.merging import ShapedResponse, elements_at
from kpybroker.wire.api import API_INFO
from kpybroker.wire.codec import ANY_ELEMENTS, decode_from, encode
from kpybroker.wire.headers import encode_response_header, parse_response_header
from kpybroker.wire.schema import Message

SIZE_BYTES = 4
PARTITIONS = 1
"""The depth of partitions in a Fetch response."""


def read(response: Response) -> Steps[bytes]:
    """The whole frame. Slices of files are read in a thread, and released."""
    if response.frame is not None:
        return response.frame
    try:
        frame: bytes = yield partial(trio.to_thread.run_sync, response.read)
    finally:
        response.sent()
    return frame


def decoded(call: Call, frame: bytes) -> Message:
    """The response in a frame that the broker has made."""
    view = memoryview(frame)[SIZE_BYTES:]
    _, position = parse_response_header(view, call.key, call.version)
    response, _ = decode_from(API_INFO[call.key].response_class(), view, position, call.version, ANY_ELEMENTS)
    return response


def encoded(call: Call, response: Message) -> bytes:
    """The frame of a response."""
    head = encode_response_header(call.key, call.version, call.header.correlation_id)
    body = encode(response, call.version)
    return (len(head) + len(body)).to_bytes(SIZE_BYTES, "big") + head + body


def shaped(call: Call, response: Message) -> ShapedResponse:
    """For `control.rules.merging`."""
    return ShapedResponse(call.shape, call.request, response, call.version, call.topics)


def damaged(call: Call, response: Message, selected: Sequence[Entity], damage: Damage) -> list[tuple[Any, bytes]]:
    """The selected partitions of a Fetch response that have a batch, and their records with damage in the first one."""
    wanted = {one.identity for one in selected}
    found = []
    for element in elements_at(shaped(call, response), PARTITIONS):
        partition = element.elements[element.index]
        if element.identity in wanted and partition.records:
            records = corrupted(partition.records, damage)
            if records is not None:
                found.append((partition, records))
    return found


def has_throttle_time(call: Call, response: Message) -> bool:
    """Whether the response has `throttle_time_ms` in this version."""
    message_class = type(response)
    return "throttle_time_ms" in fields_in(message_class, message_class, call.version)
