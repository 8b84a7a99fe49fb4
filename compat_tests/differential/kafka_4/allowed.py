"""The differences from Kafka 4.3.1 that are meant; see `allowed.py` of the folder above."""

from __future__ import annotations

from compat_tests.differential.allowed import Allowed
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode

ALLOWED_NEXT_TO_4: tuple[Allowed, ...] = (
    Allowed(
        "Kafka stumbles over an epoch without a member id",
        r"groups\[0\]\.error_code",
        ApiKey.OFFSET_FETCH,
        label=".* v9",
        kafka=int(ErrorCode.UNKNOWN_SERVER_ERROR),
        ours=int(ErrorCode.UNKNOWN_MEMBER_ID),
    ),
    Allowed(
        "a classic group that rebalances shows no assignments, as in Kafka 3.9",
        r"groups\[0\]\.members\[\d+\]\.member_assignment",
        ApiKey.DESCRIBE_GROUPS,
        scripts="cg-(downgrade|upgrade)-.*",
        ours=b"",
    ),
    Allowed(
        "Kafka stumbles over a partition that there is not in a classic assignment",
        ".*",
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        scripts="cg-upgrade-many-partitions",
    ),
    Allowed(
        "an offset that is pending in a transaction is not forgotten with its group",
        r"groups\[0\]\.topics\[0\]\.partitions\[1\]\.error_code",
        ApiKey.OFFSET_FETCH,
        scripts="cg-states-txn-commit",
        kafka=int(ErrorCode.NONE),
        ours=int(ErrorCode.UNSTABLE_OFFSET_COMMIT),
    ),
)
