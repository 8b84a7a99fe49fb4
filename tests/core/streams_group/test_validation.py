"""What a heartbeat must look like: Kafka's checks, in its order and with its texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kpybroker.core.streams_group.topics.topology import Subtopology, TopicInfo
from kpybroker.core.streams_group.validation import validate
from kpybroker.core.streams_group.values import StreamsHeartbeat
from kpybroker.wire.errors import ErrorCode, KafkaError
from tests.core.streams_group.topologies import COUNTING, topology

ONE = {"0": frozenset((0,))}
JOIN = StreamsHeartbeat(
    "g", "m", 0, rebalance_timeout_ms=9, topology=COUNTING, active_tasks={}, standby_tasks={}, warmup_tasks={}
)
STAY = StreamsHeartbeat("g", "m", 3)


def test_what_is_valid() -> None:
    validate(JOIN)
    validate(STAY)
    validate(replace(STAY, member_epoch=-1))
    validate(replace(STAY, active_tasks=ONE, standby_tasks={}, warmup_tasks={}))


CASES: list[tuple[StreamsHeartbeat, dict[str, Any], str]] = [
    (JOIN, {"instance_id": "i", "member_id": ""}, "Static membership is not yet supported."),
    (STAY, {"has_task_offsets": True}, "TaskOffsets are not supported yet."),
    (STAY, {"has_task_end_offsets": True}, "TaskEndOffsets are not supported yet."),
    (STAY, {"warmup_tasks": ONE, "active_tasks": {}, "standby_tasks": {}}, "WarmupTasks are not supported yet."),
    (
        JOIN,
        {"topology": topology(Subtopology("0", source_topic_regex=("a.*",)))},
        "Regular expressions for source topics are not supported yet.",
    ),
    (JOIN, {"member_id": " "}, "MemberId can't be empty."),
    (JOIN, {"group_id": ""}, "GroupId can't be empty."),
    (JOIN, {"rack_id": ""}, "RackId can't be empty."),
    (JOIN, {"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
    (JOIN, {"active_tasks": ONE, "topology": None}, "ActiveTasks must be empty when (re-)joining."),
    (JOIN, {"standby_tasks": ONE}, "StandbyTasks must be empty when (re-)joining."),
    (JOIN, {"topology": None}, "Topology must be non-null when (re-)joining."),
    (STAY, {"member_epoch": -2}, "InstanceId can't be null."),
    (STAY, {"member_epoch": -3}, "MemberEpoch is -3, but must be greater than or equal to -2."),
    (STAY, {"active_tasks": ONE}, "If one task-type is non-null, all must be non-null."),
    (JOIN, {"active_tasks": None}, "ActiveTasks must be empty when (re-)joining."),
    (JOIN, {"warmup_tasks": None}, "WarmupTasks must be empty when (re-)joining."),
    (STAY, {"topology": COUNTING}, "Topology can only be provided when (re-)joining."),
]


@pytest.mark.parametrize(("request_", "changes", "text"), CASES)
def test_what_is_not_valid(request_: StreamsHeartbeat, changes: dict[str, Any], text: str) -> None:
    with pytest.raises(KafkaError) as raised:
        validate(replace(request_, **changes))
    assert (raised.value.code, raised.value.message) == (ErrorCode.INVALID_REQUEST, text)


def test_a_changelog_has_as_many_partitions_as_tasks() -> None:
    of = topology(Subtopology("0", ("in",), state_changelog_topics=(TopicInfo("c", 4),)))
    with pytest.raises(KafkaError) as raised:
        validate(replace(JOIN, topology=of))
    assert raised.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert raised.value.message == ("Changelog topic c must have an undefined partition count, but it is set to 4.")
