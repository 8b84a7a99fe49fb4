"""Produced batches whose header is checked against their records before they are appended.

`core.log.header_trust` says which. A small batch is walked where it was received. Any other is walked in a thread, and
so is one whose header is wrong: it is validated like every batch of a topic that needs its records, which corrects or
refuses it as Kafka does.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Hashable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.loop.yielding import in_thread
from kpybroker.broker.requests.clients import SHOWN_CHARACTERS_MAX, client_name, shown
from kpybroker.broker.requests.log_fields import of_request
from kpybroker.wire.records.claims import is_true

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker
    from kpybroker.broker.loop.slow_work import ClientsWork
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.broker.requests.context import ConnectionInfo, RequestContext

logger = logging.getLogger("kafka.server.ReplicaManager")

T = TypeVar("T")

IN_LOOP_RECORDS_MAX = 4000
"""Records that are walked in the loop: about 1 ms."""
IN_LOOP_BYTES_MAX = 256 * 1024
"""Uncompressed bytes that are made in the loop of a compressed batch: about 1 ms."""


def is_true_at_once(broker: Broker, connection: ConnectionInfo, records: memoryview) -> bool:
    """Whether a batch is small, and its header is right."""
    if not is_true(records, IN_LOOP_RECORDS_MAX, IN_LOOP_BYTES_MAX):
        return False
    broker.caught_clients.walked(connection.header_trust, _client(connection), broker.clock.time_ms())
    return True


async def slowly(
    broker: Broker, context: RequestContext, acks: int, function: Callable[[ClientsWork], Awaitable[T]]
) -> T:
    """In a thread, when it is the client's turn; it ends with its client.

    With acks=0 a client leaves without waiting for anything, and expects its records to be appended.
    """
    connection = context.connection
    with nullcontext() if acks == 0 else connection.may_leave():
        return await function(broker.slow_work.of(connection.turns_of))


def is_wrong(
    broker: Broker, context: RequestContext, acks: int, partition: Partition, records: memoryview
) -> Steps[bool]:
    """Whether the batch's header is wrong, so that the records have to be validated one by one.

    False where the topic's rules do that in any case, and where there is too much to walk: that is stored as it was
    sent. Raises NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR.
    """
    rules = partition.leader_log().rules
    if not rules.opaque or rules.to_magic < 2:
        return False
    verdict = is_true(records, IN_LOOP_RECORDS_MAX, IN_LOOP_BYTES_MAX)
    if verdict is None:
        walk = partial(is_true, records, rules.max_checked_records, rules.max_uncompressed_bytes)
        verdict = yield partial(slowly, broker, context, acks, partial(in_thread, walk))
    connection = context.connection
    client, now_ms = _client(connection), broker.clock.time_ms()
    if verdict is not False:
        broker.caught_clients.walked(connection.header_trust, client, now_ms)
        return False
    if broker.caught_clients.caught(connection.header_trust, client, now_ms):
        logger.warning(
            "Headers of batches are wrong: client=%s partition=%s-%d. Sizes, count or largest timestamp are not those "
            "of the records. From now on all batches of this client are read, and corrected or refused as Apache Kafka "
            "does; update the client",
            client_name(connection),
            shown(partition.topic),
            partition.index,
            extra=of_request(context, partition.topic, partition.index),
        )
    return True


def _client(connection: ConnectionInfo) -> Hashable:
    """An implementation in the hands of one principal. Nothing that was sent is kept in full: it may be long."""
    claimed = (connection.client_id or "", connection.client_software_name, connection.client_software_version)
    return (connection.principal, *(text[:SHOWN_CHARACTERS_MAX] for text in claimed))
