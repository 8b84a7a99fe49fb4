"""InitProducerId: with and without a transactional id, refusals, and the words of old versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.broker.handlers.transactions import init_producer_id
from kpybroker.core.authorizer import CLUSTER_NAME, Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.init_producer_id import InitProducerIdRequest
from tests.support.brokers.fake_broker import Denying, versions
from tests.support.brokers.running_broker import ask
from tests.support.brokers.transactional import one_producer, transactional_broker


def request(
    transactional_id: str | None = "x", producer_id: int = -1, producer_epoch: int = -1
) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=60_000,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


@pytest.mark.parametrize("version", versions(init_producer_id))
async def test_each_call_gives_the_next_epoch_of_one_id(tmp_path: Path, version: int) -> None:
    async with transactional_broker(tmp_path) as broker:
        responses = [await ask(broker, request(), version) for _ in range(3)]
        assert [response.error_code for response in responses] == [ErrorCode.NONE] * 3
        assert len({response.producer_id for response in responses}) == 1
        assert [response.producer_epoch for response in responses] == [0, 1, 2]


@pytest.mark.parametrize("version", versions(init_producer_id))
async def test_without_a_transactional_id_every_call_gives_a_new_id(tmp_path: Path, version: int) -> None:
    async with transactional_broker(tmp_path) as broker:
        responses = [await ask(broker, request(None), version) for _ in range(2)]
        assert responses[0].producer_id != responses[1].producer_id
        assert [response.producer_epoch for response in responses] == [0, 0]


@pytest.mark.parametrize("version", versions(init_producer_id, 3))
async def test_a_fenced_producer_receives_the_error_of_its_version(tmp_path: Path, version: int) -> None:
    async with one_producer(tmp_path) as (broker, producer):
        response = await ask(broker, request("x", producer.producer_id, 7), version)
        expected = ErrorCode.PRODUCER_FENCED if version >= 4 else ErrorCode.INVALID_PRODUCER_EPOCH
        assert (response.error_code, response.producer_id, response.producer_epoch) == (expected, -1, -1)


async def test_half_an_id_and_an_empty_one_are_no_requests(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        for bad in (request("x", 5, -1), request("x", -1, 5), request(None, 5, -1), request("")):
            assert (await ask(broker, bad, 4)).error_code == ErrorCode.INVALID_REQUEST


async def test_authorization(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        broker.authorizer = authorizer = Denying(
            {
                (Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "x"),
                (Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME),
            }
        )
        response = await ask(broker, request(), 4)
        assert response.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert (await ask(broker, request(None), 4)).error_code == ErrorCode.NONE  # it may write to topics (KIP-679)
        authorizer.denied.add((Operation.WRITE, ResourceType.TOPIC, "any"))
        assert (await ask(broker, request(None), 4)).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert (await ask(broker, request("y"), 4)).error_code == ErrorCode.NONE
