"""The version of each transaction, as its coordinator has written it to `__transaction_state` (KIP-890)."""

from __future__ import annotations

from collections import defaultdict

from confluent_kafka import Message

from compat_tests.eos.readers import messages_to_end
from compat_tests.overload.raw import Raw
from compat_tests.support.command_line import CommandLine
from compat_tests.support.quick import DEADLINE_S, admin_client
from compat_tests.support.waiting import eventually
from kpybroker.core.features import TRANSACTION_VERSION
from kpybroker.core.transaction.records import TransactionRecord, decode_record
from kpybroker.core.transaction.state import TransactionMetadata
from kpybroker.core.transaction.values import EPOCH_BUMP_FROM, TransactionState
from kpybroker.wire.messages.api_versions import ApiVersionsRequest

STATES = "__transaction_state"
COMPLETE = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


def ends(bootstrap: str) -> dict[str, list[TransactionMetadata]]:
    """By transactional id how its transactions have ended, in order; all since the log began, while that is not
    compacted. Where `transaction.version` is 0 the log says nothing of their version, but still the epochs.
    """
    found: defaultdict[str, list[TransactionMetadata]] = defaultdict(list)
    partitions = admin_client(bootstrap).list_topics(STATES, timeout=DEADLINE_S).topics[STATES].partitions
    for messages in messages_to_end(bootstrap, STATES, partitions, "read_uncommitted").values():
        for record in map(_record, messages):
            if record.value is not None and record.value.state in COMPLETE:
                found[record.transactional_id].append(record.value)
    return dict(found)


def completed(bootstrap: str) -> dict[str, list[int]]:
    """The versions of those transactions."""
    return {name: [end.version for end in some] for name, some in ends(bootstrap).items()}


def used(bootstrap: str) -> set[int]:
    """The versions of all transactions that clients have committed there. What a coordinator aborts, of a client that
    is fenced or too late, has the version of the cluster.
    """
    return {end.version for some in ends(bootstrap).values() for end in some if is_commit(end)}


def is_commit(end: TransactionMetadata) -> bool:
    return end.state is TransactionState.COMPLETE_COMMIT


def newest_at(bootstrap: str) -> int:
    """The version of transactions of a client that knows both, as `transaction.version` is finalized at all of these
    brokers.
    """
    levels = [_level(int(address.rpartition(":")[2])) for address in bootstrap.split(",")]
    return EPOCH_BUMP_FROM if min(levels) >= EPOCH_BUMP_FROM else 0


def have_version_2(bootstrap: str) -> None:
    """Finalize it, and wait until all of these brokers have."""
    CommandLine(bootstrap).run("feature", "upgrade", f"{TRANSACTION_VERSION}={EPOCH_BUMP_FROM}")
    eventually(lambda: newest_at(bootstrap) == EPOCH_BUMP_FROM, "transactions of version 2 everywhere")


def _level(port: int) -> int:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    with Raw(("127.0.0.1", port)) as raw:
        finalized = raw.ask(request, 3).finalized_features
    levels: dict[str, int] = {one.name: one.max_version_level for one in finalized}
    return levels.get(TRANSACTION_VERSION, 0)


def _record(message: Message) -> TransactionRecord:
    record = decode_record(message.key(), message.value())
    assert record is not None, "a record of a later Kafka"
    return record
