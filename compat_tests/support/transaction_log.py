"""The version of each transaction, as its coordinator has written it to `__transaction_state` (KIP-890)."""

from __future__ import annotations

from collections import defaultdict

from confluent_kafka import Message

from compat_tests.eos.readers import messages_to_end
from compat_tests.support.quick import DEADLINE_S, admin_client
from kpybroker.core.transaction.records import TransactionRecord, decode_record
from kpybroker.core.transaction.values import EPOCH_BUMP_FROM, TransactionState

STATES = "__transaction_state"
COMPLETE = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


def completed(bootstrap: str) -> dict[str, list[int]]:
    """By transactional id the versions of its transactions that have ended, in order; all since the log began, while
    that is not compacted.
    """
    versions: defaultdict[str, list[int]] = defaultdict(list)
    partitions = admin_client(bootstrap).list_topics(STATES, timeout=DEADLINE_S).topics[STATES].partitions
    for messages in messages_to_end(bootstrap, STATES, partitions, "read_uncommitted").values():
        for record in map(_record, messages):
            if record.value is not None and record.value.state in COMPLETE:
                versions[record.transactional_id].append(record.value.version)
    return dict(versions)


def all_of_version_2(bootstrap: str, ids: str = "") -> bool:
    """Whether there are transactions whose id begins with `ids`, and all of them are of version 2."""
    found = [version for name, some in completed(bootstrap).items() if name.startswith(ids) for version in some]
    return bool(found) and set(found) == {EPOCH_BUMP_FROM}


def _record(message: Message) -> TransactionRecord:
    record = decode_record(message.key(), message.value())
    assert record is not None, "a record of a later Kafka"
    return record
