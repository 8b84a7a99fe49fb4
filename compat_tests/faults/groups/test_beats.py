"""What passed the proxies is read as the members' heartbeats."""

from __future__ import annotations

from typing import Any

from compat_tests.faults.groups.beats import LISTENING, beats_of
from compat_tests.faults.groups.history import Beat, BeatKind
from compat_tests.faults.proxy import Exchange
from compat_tests.overload.raw import api_key, frame_of, framed
from kpybroker.wire.codec import encode
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.headers import encode_response_header
from kpybroker.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kpybroker.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kpybroker.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

TOPIC_ID = bytes(range(16))
NAMES = {TOPIC_ID: "t"}


def exchange(request: Any, response: Any, version: int, at: int) -> Exchange:
    """Without a `response` none came."""
    assert api_key(request) in LISTENING
    frame = None
    if response is not None:
        frame = framed(encode_response_header(api_key(request), version, 7) + encode(response, version))
    return Exchange(2, frame_of(request, version), frame, at, at + 5)


def partitions(kind: Any, *indexes: int) -> Any:
    return [kind.TopicPartitions(topic_id=TOPIC_ID, partitions=list(indexes))]


def test_heartbeats_of_both_protocols() -> None:
    exchanges = [
        exchange(
            ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=3),
            ConsumerGroupHeartbeatResponse(member_epoch=4),
            1,
            10,
        ),
        exchange(
            HeartbeatRequest(group_id="h", generation_id=5, member_id="m"),
            HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS),
            4,
            20,
        ),
        exchange(SyncGroupRequest(group_id="h", generation_id=6, member_id="m"), SyncGroupResponse(), 5, 30),
    ]
    assert beats_of(exchanges, NAMES) == {
        "g": [Beat(BeatKind.CONSUMER, "raw", 2, 10, 15, 3, 4, ErrorCode.NONE)],
        "h": [
            Beat(BeatKind.CLASSIC, "raw", 2, 20, 25, 5, 5, ErrorCode.REBALANCE_IN_PROGRESS),
            Beat(BeatKind.SYNC, "raw", 2, 30, 35, 6, 6, ErrorCode.NONE),
        ],
    }


def test_what_members_say_that_they_have_and_what_they_are_given() -> None:
    owned = partitions(ConsumerGroupHeartbeatRequest, 0, 2)
    given = ConsumerGroupHeartbeatResponse.Assignment(topic_partitions=partitions(ConsumerGroupHeartbeatResponse, 2))
    asked = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=3, topic_partitions=owned)
    without = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=3, topic_partitions=[])
    exchanges = [
        exchange(asked, ConsumerGroupHeartbeatResponse(member_epoch=3, assignment=given), 1, 10),
        exchange(without, None, 1, 20),
    ]
    assert beats_of(exchanges, NAMES)["g"] == [
        Beat(
            *(BeatKind.CONSUMER, "raw", 2, 10, 15, 3, 3, ErrorCode.NONE),
            owned=frozenset({("t", 0), ("t", 2)}),
            given=frozenset({("t", 2)}),
        ),
        Beat(BeatKind.CONSUMER, "raw", 2, 20, 25, 3, 3, None, owned=frozenset()),
    ]
