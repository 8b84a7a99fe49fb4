"""The differences from Kafka 3.9.1 that the matrix lists: each with its reason. None is about access."""

from __future__ import annotations

from typing import Any

from compat_tests.security.access.acl_requests import Request
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode


def is_listed(request: Request, kafka: Any, ours: Any) -> bool:
    """Whether the two responses differ only as it is listed here."""
    if request.api is ApiKey.CONSUMER_GROUP_HEARTBEAT:
        # UNSUPPORTED_VERSION from both; ours says in a message what to set
        return bool(kafka["error_code"] == ours["error_code"] == ErrorCode.UNSUPPORTED_VERSION)
    if request.label == "auto":
        # a topic that was just created: Kafka's first response does not wait for its leader
        codes = [response["topics"][0]["error_code"] for response in (kafka, ours)]
        return codes == [ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NONE]
    return False
