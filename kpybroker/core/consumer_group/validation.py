"""What a heartbeat must look like before a group sees it: Kafka's checks, in its order and with its texts."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kpybroker.core.consumer_group.values import ConsumerHeartbeat
from kpybroker.core.modern_group.members import LEAVE_GROUP_EPOCH, LEAVE_GROUP_STATIC_EPOCH
from kpybroker.wire.errors import ErrorCode, KafkaError

MEMBER_ID_REQUIRED_VERSION: Final = 1
"""From this version on, clients make their own member id (KIP-1082)."""
_JAVA_SPACE: Final = "".join(map(chr, range(0x21)))
"""What Java removes from the ends of a text."""


def validate(request: ConsumerHeartbeat, api_version: int, assignors: Collection[str]) -> None:
    """Raises INVALID_REQUEST, UNSUPPORTED_ASSIGNOR (GroupCoordinatorService, 4.3.1)."""
    epoch = request.member_epoch
    if api_version >= MEMBER_ID_REQUIRED_VERSION or epoch > 0 or epoch == LEAVE_GROUP_EPOCH:
        require_text(request.member_id, "MemberId")
    require_text(request.group_id, "GroupId")
    require_text(request.instance_id, "InstanceId")
    require_text(request.rack_id, "RackId")
    if epoch == 0:
        _validate_join(request)
    elif epoch == LEAVE_GROUP_STATIC_EPOCH and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif epoch < LEAVE_GROUP_STATIC_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def _validate_join(request: ConsumerHeartbeat) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.owned is None or request.owned:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.topic_names is None and request.pattern is None:
        raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


def require_text(value: str | None, name: str) -> None:
    """Raises INVALID_REQUEST for a text without a letter; None is no text."""
    if value is not None and not value.strip(_JAVA_SPACE):
        raise _invalid(f"{name} can't be empty.")


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)
