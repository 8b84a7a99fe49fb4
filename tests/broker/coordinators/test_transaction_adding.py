"""Transactions of version 2 (KIP-890, part 2): a leader adds its partition to a transaction before the first append."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from kpybroker.broker.coordinators.transaction_verification import (
    Asks,
    TransactionProducer,
    TransactionVerifier,
    VerificationError,
)
from kpybroker.core.log.verification import NO_VERIFICATION
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from tests.support.brokers.transactional import (
    Producer,
    completed,
    coordinated_by,
    held_markers,
    named,
    one_producer,
    read,
    transactional_broker,
)

T0 = ("t", 0)
UNKNOWN = TransactionProducer("x", 5, 2)
"""A producer that no coordinator knows."""
PATIENT = {"add_partitions_to_txn_retry_backoff_max_ms": "30000", "request_timeout_ms": "30000"}
IMPATIENT = {"add_partitions_to_txn_retry_backoff_max_ms": "0"}


@pytest.mark.parametrize("version", [12, 13])
@pytest.mark.parametrize("enabled", ["true", "false"])
async def test_what_is_written_is_part_of_the_transaction(tmp_path: Path, version: int, enabled: str) -> None:
    """Whether verification is on or off: no one else adds the partition."""
    async with one_producer(tmp_path, transaction_partition_verification_enable=enabled) as (broker, producer):
        for committed, value in ((True, b"kept"), (False, b"dropped"), (True, b"kept too")):
            for index in (0, 2):
                assert await producer.write(value, index=index, version=version) is ErrorCode.NONE
            assert broker.transactions.describe("x").partitions == (("t", 0), ("t", 2))
            assert await producer.write(value, version=version) is ErrorCode.NONE, "the transaction goes on"
            assert await producer.end(committed, 5) is ErrorCode.NONE
            await completed(broker)
        assert await read(broker) == [b"kept", b"kept", b"kept too", b"kept too"]
        assert await read(broker, index=2) == [b"kept", b"kept too"]


async def test_before_version_12_it_must_have_been_added(tmp_path: Path) -> None:
    async with one_producer(tmp_path) as (broker, producer):
        assert await producer.write(b"a", version=11) is ErrorCode.TRANSACTION_ABORTABLE
        assert broker.transactions.describe("x").partitions == ()


async def test_an_open_transaction_asks_no_coordinator(tmp_path: Path) -> None:
    async with one_producer(tmp_path) as (broker, producer):
        await producer.write(b"a", version=12)
        broker.transactions.stop()
        assert await producer.write(b"b", version=12) is ErrorCode.NONE


async def test_a_leader_waits_for_the_markers_of_the_transaction_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The producer learns of the end before its markers are written, and sends at once."""
    async with one_producer(tmp_path, **PATIENT) as (broker, producer):
        await producer.write(b"a", version=12)
        released = held_markers(broker, monkeypatch)
        await producer.end(True, 5)
        codes = []

        async def write() -> None:
            codes.append(await producer.write(b"b", version=12))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            while not broker.replicas.hosted(*T0).online_log().producers.verifications:
                await trio.lowlevel.checkpoint()
            assert codes == []
            released.set()
        assert codes == [ErrorCode.NONE]
        await producer.end(True, 5)
        await completed(broker)
        assert await read(broker) == [b"a", b"b"]


async def test_a_producer_is_asked_to_wait_when_it_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With CONCURRENT_TRANSACTIONS itself. One that does not add receives NOT_ENOUGH_REPLICAS."""
    async with one_producer(tmp_path, **IMPATIENT) as (broker, producer):
        await producer.write(b"a", version=12)
        released = held_markers(broker, monkeypatch)
        await producer.end(False, 5)
        assert await producer.write(b"b", version=12) is ErrorCode.CONCURRENT_TRANSACTIONS
        assert await producer.write(b"b", version=11) is ErrorCode.NOT_ENOUGH_REPLICAS
        released.set()
        await completed(broker)
        assert await producer.write(b"b", version=12) is ErrorCode.NONE


async def test_batches_behind_one_that_waits_do_not_pass_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with one_producer(tmp_path, **IMPATIENT) as (broker, producer):
        await producer.write(b"a", version=12)
        released = held_markers(broker, monkeypatch)
        await producer.end(False, 5)
        assert await producer.write(b"b", version=12) is ErrorCode.CONCURRENT_TRANSACTIONS
        released.set()
        await completed(broker)
        producer.sequences[T0] = 1
        assert await producer.write(b"c", version=12) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert await producer.write(b"b", version=12) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        producer.sequences[T0] = 0
        assert await producer.write(b"b", version=12) is ErrorCode.NONE


async def test_a_new_producer_begins_with_sequence_0(tmp_path: Path) -> None:
    """Where nothing is known of it, what was sent before has been lost; before version 2 that may be retention."""
    async with one_producer(tmp_path) as (_, producer):
        producer.sequences[T0] = 3
        assert await producer.write(b"a", version=12) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        producer.sequences[T0] = 0
        assert await producer.write(b"a", version=12) is ErrorCode.NONE
        await producer.add(1)
        producer.sequences["t", 1] = 3
        assert await producer.write(b"a", index=1, version=11) is ErrorCode.NONE


async def test_the_fenced_add_nothing(tmp_path: Path) -> None:
    async with one_producer(tmp_path) as (broker, zombie):
        await zombie.write(b"a", version=12)
        successor = Producer(broker)
        await successor.init()
        assert await zombie.write(b"b", version=12) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert await zombie.write(b"b", index=1, version=12) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert await successor.write(b"c", version=12) is ErrorCode.NONE
        await successor.end(True, 5)
        await completed(broker)
        assert await read(broker) == [b"c"]


async def test_a_late_batch_of_a_transaction_that_has_ended_begins_none(tmp_path: Path) -> None:
    """The hole that version 2 closes: it has an epoch of before."""
    async with one_producer(tmp_path) as (broker, producer):
        late = Producer(broker)
        late.producer_id, late.epoch = producer.producer_id, producer.epoch
        await producer.write(b"a", version=12)
        await producer.end(True, 5)
        await completed(broker)
        assert await late.write(b"late", index=1, version=12) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert broker.transactions.describe("x").state == "CompleteCommit"
        assert broker.replicas.hosted("t", 1).online_log().log_end_offset == 0


async def test_a_guard_does_not_outlive_the_marker_of_its_transaction(tmp_path: Path) -> None:
    """Added before the transaction ended, appended after."""
    async with one_producer(tmp_path) as (broker, producer):
        added = await broker.verifier.verify(named(producer), {T0: 0}, Asks.ADD)
        assert (added.errors, added.guard(T0) is NO_VERIFICATION) == ({}, False)
        assert broker.transactions.describe("x").partitions == (T0,)
        before = producer.producer_id
        await producer.end(False, 5)
        await completed(broker)
        log = broker.replicas.hosted(*T0).online_log()
        assert not log.producers.is_verified(before, added.guard(T0))


async def test_without_a_coordinator_the_client_may_retry(tmp_path: Path) -> None:
    async with one_producer(tmp_path) as (broker, producer):
        broker.transactions.stop()
        assert await producer.write(b"a", version=12) is ErrorCode.NOT_ENOUGH_REPLICAS
        added = await broker.verifier.verify(named(producer), {T0: 0}, Asks.ADD)
        assert added.errors == {T0: ErrorCode.NOT_COORDINATOR}
        with pytest.raises(VerificationError, match="Underlying error: NOT_COORDINATOR"):
            added.produce_guard(T0)


async def test_an_empty_transactional_id_adds_nothing(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        added = await broker.verifier.verify(TransactionProducer("", 5, 2), {T0: 0}, Asks.ADD)
        assert added.errors == {T0: ErrorCode.INVALID_REQUEST}


# --- a coordinator elsewhere


def response_with(code: ErrorCode) -> AddPartitionsToTxnResponse:
    partition = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
        partition_index=0, partition_error_code=code
    )
    topic = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(name="t", results_by_partition=[partition])
    result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult(transactional_id="x", topic_results=[topic])
    return AddPartitionsToTxnResponse(results_by_transaction=[result])


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (response_with(ErrorCode.NONE), None),
        (response_with(ErrorCode.PRODUCER_FENCED), ErrorCode.INVALID_PRODUCER_EPOCH),
        (response_with(ErrorCode.CONCURRENT_TRANSACTIONS), ErrorCode.CONCURRENT_TRANSACTIONS),
        (response_with(ErrorCode.TRANSACTION_ABORTABLE), ErrorCode.TRANSACTION_ABORTABLE),
        (response_with(ErrorCode.OPERATION_NOT_ATTEMPTED), ErrorCode.OPERATION_NOT_ATTEMPTED),
        (response_with(ErrorCode.INVALID_PRODUCER_ID_MAPPING), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED), ErrorCode.INVALID_TXN_STATE),
        (OSError("connection refused"), ErrorCode.NETWORK_EXCEPTION),
    ],
    ids=["added", "fenced", "too early", "abortable", "another is refused", "no id", "not trusted", "unreachable"],
)
async def test_a_coordinator_on_another_broker_adds_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, response: Any, expected: ErrorCode | None
) -> None:
    async with transactional_broker(tmp_path) as broker:
        coordinated_by(broker, 8, monkeypatch)

        async def ask_peer(broker_id: int, api_key: ApiKey, message: Any, version: int) -> Any:
            assert (broker_id, api_key, version) == (8, ApiKey.ADD_PARTITIONS_TO_TXN, 4)
            (transaction,) = message.transactions
            assert (transaction.transactional_id, transaction.producer_id, transaction.producer_epoch) == ("x", 5, 2)
            assert not transaction.verify_only
            assert [(topic.name, topic.partitions) for topic in transaction.topics] == [("t", [0])]
            if isinstance(response, Exception):
                raise response
            return response

        verifier = TransactionVerifier(broker, broker.metadata, broker.replicas, ask_peer, lambda: broker.transactions)
        added = await verifier.verify(UNKNOWN, {T0: 0}, Asks.ADD)
        assert added.errors.get(T0) is expected
