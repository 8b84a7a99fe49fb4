"""Why an acknowledgement is refused: the code, and Kafka's words for it."""

from __future__ import annotations

import pytest

from kpybroker.core.share import acknowledging as texts
from kpybroker.core.share.partition import SharePartition
from kpybroker.core.share.values import (
    Acknowledgement,
    AcknowledgeType,
    Fetched,
    FetchedBatch,
    PersistedState,
    ShareSettings,
)
from kpybroker.wire.errors import ErrorCode

ACCEPT, RENEW = [AcknowledgeType.ACCEPT], [AcknowledgeType.RENEW]
NOT_THEIRS, NOT_VALID = ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST


def machine(*, may_renew: bool = True) -> SharePartition:
    """Member "a" has 10 to 19 and 20 to 29, each a batch; of the first it has accepted 10 to 14."""
    made = SharePartition(PersistedState(1, 10), ShareSettings(renew_acknowledge_enabled=may_renew))
    for first in (10, 20):
        found = Fetched(first, [FetchedBatch(first, first + 9)])
        made.acquire("a", found, 10, 10, strict=False, now=0.0)
    write = made.acknowledge("a", [Acknowledgement(10, 14, ACCEPT)], 0.0).write
    assert write is not None
    return made


@pytest.mark.parametrize(
    ("member", "acknowledgement", "code", "text"),
    [
        ("a", Acknowledgement(40, 41, ACCEPT), NOT_VALID, texts.FIRST_PAST_ACQUIRED),
        ("a", Acknowledgement(28, 33, ACCEPT), NOT_VALID, texts.LAST_PAST_ACQUIRED),
        ("a", Acknowledgement(12, 13, ACCEPT), NOT_THEIRS, texts.OF_OFFSET[0]),
        ("b", Acknowledgement(15, 16, ACCEPT), NOT_THEIRS, texts.OF_OFFSET[1]),
        ("b", Acknowledgement(20, 29, ACCEPT), NOT_THEIRS, texts.OF_BATCH[1]),
        ("b", Acknowledgement(22, 23, ACCEPT), NOT_THEIRS, texts.OF_BATCH[1]),
    ],
)
def test_a_refusal_has_its_code_and_text(
    member: str, acknowledgement: Acknowledgement, code: ErrorCode, text: str
) -> None:
    outcome = machine().acknowledge(member, [acknowledgement], 0.0)
    assert (outcome.error, outcome.message, outcome.write) == (code, text, None)


def test_a_whole_batch_that_no_member_holds_is_not_acquired() -> None:
    made = machine()
    made.release_member("a")
    outcome = made.acknowledge("a", [Acknowledgement(20, 29, ACCEPT)], 0.0)
    assert (outcome.error, outcome.message) == (NOT_THEIRS, texts.OF_BATCH[0])


def test_what_was_never_acquired_is_not_found() -> None:
    fresh = SharePartition(PersistedState(1, 10), ShareSettings())
    outcome = fresh.acknowledge("a", [Acknowledgement(10, 11, ACCEPT)], 0.0)
    assert (outcome.error, outcome.message) == (NOT_THEIRS, texts.NOT_IN_FLIGHT)


def test_a_renewal_may_be_off() -> None:
    outcome = machine(may_renew=False).acknowledge("a", [Acknowledgement(20, 29, RENEW)], 0.0)
    assert (outcome.error, outcome.message) == (NOT_THEIRS, texts.NO_RENEWALS)
