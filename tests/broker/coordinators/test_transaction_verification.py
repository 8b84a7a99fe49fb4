"""Verification (KIP-890): no batch opens a transaction in a partition that its coordinator does not know of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.cluster.metadata_cache import MetadataSnapshot
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
from kpybroker.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.support.brokers.running_broker import ask
from tests.support.brokers.transactional import (
    completed,
    coordinated_by,
    named,
    one_producer,
    transactional_broker,
)

T0 = ("t", 0)
UNKNOWN = TransactionProducer("x", 5, 2)
"""A producer that no coordinator knows."""


async def test_a_partition_must_have_been_added(tmp_path: Path) -> None:
    async with one_producer(tmp_path) as (_, producer):
        assert await producer.write(b"a", version=10) is ErrorCode.INVALID_TXN_STATE
        assert await producer.write(b"a", version=11) is ErrorCode.TRANSACTION_ABORTABLE
        await producer.add(0)
        assert await producer.write(b"a", index=1) is ErrorCode.INVALID_TXN_STATE
        assert await producer.write(b"a") is ErrorCode.NONE


async def test_a_batch_that_arrives_after_the_marker_opens_no_transaction(tmp_path: Path) -> None:
    async with one_producer(tmp_path) as (broker, producer):
        await producer.transact(b"a")
        assert await producer.write(b"late") is ErrorCode.INVALID_TXN_STATE
        assert broker.replicas.hosted(*T0).online_log().last_stable_offset == 2


async def test_a_guard_does_not_outlive_a_marker(tmp_path: Path) -> None:
    """Verified before the transaction ended, appended after: the race that KIP-890 closes."""
    async with one_producer(tmp_path, 0) as (broker, producer):
        verified = await broker.verifier.verify(named(producer), {T0: 0}, Asks.VERIFY)
        assert verified.errors == {}
        assert verified.guard(T0) is not NO_VERIFICATION
        await producer.end(False)
        await completed(broker)
        log = broker.replicas.hosted(*T0).online_log()
        assert not log.producers.is_verified(producer.producer_id, verified.guard(T0))


async def test_an_open_transaction_needs_no_verification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with one_producer(tmp_path, 0) as (broker, producer):
        await producer.write(b"a")
        broker.transactions.stop()  # no coordinator can be asked
        assert await producer.write(b"b") is ErrorCode.NONE


async def test_without_a_coordinator_the_client_may_retry(tmp_path: Path) -> None:
    async with one_producer(tmp_path, 0) as (broker, producer):
        broker.transactions.stop()
        assert await producer.write(b"a") is ErrorCode.NOT_ENOUGH_REPLICAS
        verified = await broker.verifier.verify(named(producer), {T0: 0}, Asks.VERIFY_ABORTABLE)
        assert verified.errors == {T0: ErrorCode.NOT_COORDINATOR}
        with pytest.raises(VerificationError, match="Underlying error: NOT_COORDINATOR"):
            verified.produce_guard(T0)


async def test_partitions_that_are_not_here_are_not_asked_about(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        verified = await broker.verifier.verify(UNKNOWN, {("none", 0): 0, T0: 0}, Asks.VERIFY)
        assert verified.errors == {
            ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            T0: ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        }


async def test_a_leader_whose_metadata_is_behind_refuses_with_a_retriable_error(tmp_path: Path) -> None:
    """A broker that starts gets LeaderAndIsr before UpdateMetadata. A batch that arrives in between was not verified,
    and the log would refuse it with a fatal error.
    """
    async with one_producer(tmp_path, 0) as (broker, producer):
        snapshot, broker.metadata.snapshot = broker.metadata.snapshot, MetadataSnapshot()
        assert await producer.write(b"a") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        broker.metadata.snapshot = snapshot
        assert await producer.write(b"a") is ErrorCode.NONE


async def test_it_can_be_switched_off_while_the_broker_runs(tmp_path: Path) -> None:
    async with one_producer(tmp_path) as (broker, producer):
        assert await producer.write(b"a") is ErrorCode.INVALID_TXN_STATE
        await set_broker_default(broker, "transaction.partition.verification.enable", "false")
        assert await producer.write(b"a") is ErrorCode.NONE


async def set_broker_default(broker: Broker, name: str, value: str) -> None:
    config = IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=0, value=value)
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(resource_type=4, resource_name="", configs=[config])
    response = await ask(broker, IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert response.responses[0].error_code == ErrorCode.NONE, response.responses[0].error_message
    while broker.config.get_bool(name) is not (value == "true"):
        await trio.lowlevel.checkpoint()


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
        (response_with(ErrorCode.TRANSACTION_ABORTABLE), ErrorCode.INVALID_TXN_STATE),
        (AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED), ErrorCode.INVALID_TXN_STATE),
        (AddPartitionsToTxnResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR), ErrorCode.UNKNOWN_SERVER_ERROR),
        (OSError("connection refused"), ErrorCode.NETWORK_EXCEPTION),
    ],
    ids=["verified", "fenced", "not added", "not trusted", "failed", "unreachable"],
)
async def test_a_coordinator_on_another_broker_is_asked_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, response: Any, expected: ErrorCode | None
) -> None:
    async with transactional_broker(tmp_path) as broker:
        coordinated_by(broker, 8, monkeypatch)

        async def ask_peer(broker_id: int, api_key: ApiKey, message: Any, version: int) -> Any:
            assert (broker_id, api_key, version) == (8, ApiKey.ADD_PARTITIONS_TO_TXN, 4)
            (transaction,) = message.transactions
            assert (transaction.transactional_id, transaction.producer_id, transaction.producer_epoch) == ("x", 5, 2)
            assert transaction.verify_only
            assert [(topic.name, topic.partitions) for topic in transaction.topics] == [("t", [0])]
            if isinstance(response, Exception):
                raise response
            return response

        verifier = TransactionVerifier(broker, broker.metadata, broker.replicas, ask_peer, lambda: broker.transactions)
        verified = await verifier.verify(UNKNOWN, {T0: 0}, Asks.VERIFY)
        assert verified.errors.get(T0) is expected


async def test_without_a_leader_there_is_no_coordinator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with transactional_broker(tmp_path) as broker:
        monkeypatch.setattr(broker.metadata, "leader_and_epoch", lambda topic, index: (-1, 0))
        verified = await broker.verifier.verify(UNKNOWN, {T0: 0}, Asks.VERIFY)
        assert verified.errors == {T0: ErrorCode.COORDINATOR_NOT_AVAILABLE}
