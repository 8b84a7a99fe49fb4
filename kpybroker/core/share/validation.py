"""What is wrong with acknowledgements as such, before any state is looked at (Kafka's ``KafkaApis``)."""

from __future__ import annotations

from collections.abc import Iterable

from kpybroker.core.share.values import Acknowledgement, AcknowledgeType
from kpybroker.wire.errors import ErrorCode


def validate(acknowledgements: Iterable[Acknowledgement], may_renew: bool) -> ErrorCode:
    """INVALID_REQUEST for a partition's acknowledgements that are out of order, overlap, or have wrong types.

    `may_renew`: the request is of version 2 or later and has ``IsRenewAck`` set.
    """
    newest_type = AcknowledgeType.RENEW if may_renew else AcknowledgeType.REJECT
    previous_last = -1
    for first, last, types in acknowledgements:
        well_formed = previous_last <= first <= last and len(types) in (1, last - first + 1)
        if not well_formed or not all(AcknowledgeType.GAP <= one <= newest_type for one in types):
            return ErrorCode.INVALID_REQUEST
        previous_last = last
    return ErrorCode.NONE
