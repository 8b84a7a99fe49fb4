"""What a heartbeat must look like before a group sees it: Kafka's checks, in its order and with its texts."""

from __future__ import annotations

from typing import Final

from kpybroker.core.modern_group.members import LEAVE_GROUP_EPOCH
from kpybroker.core.modern_group.requests import require_text
from kpybroker.core.offsets.values import java_length
from kpybroker.core.share_group.values import ShareHeartbeat
from kpybroker.wire.errors import ErrorCode, KafkaError

MEMBER_ID_LENGTH_MAX: Final = 36


def validate(request: ShareHeartbeat) -> None:
    """Raises INVALID_REQUEST (GroupCoordinatorService, 4.3.1)."""
    require_text(request.member_id, "MemberId")
    require_text(request.group_id, "GroupId")
    require_text(request.rack_id, "RackId")
    if request.member_epoch == 0:
        if not request.topic_names:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    elif request.member_epoch < LEAVE_GROUP_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")


def require_member_id(member_id: str) -> None:
    """Raises INVALID_REQUEST: the first check of all requests of members (KafkaApis.isMemberIdValid)."""
    if not member_id or java_length(member_id) > MEMBER_ID_LENGTH_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
