"""DescribeTransactions: what there is to know, and what a client may see of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kpybroker.broker.app import Broker
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.describe_transactions import DescribeTransactionsRequest
from tests.support.brokers.fake_broker import Denying
from tests.support.brokers.running_broker import ask, create_topic
from tests.support.brokers.transactional import Producer, transactional_broker


async def describe(broker: Broker, *ids: str) -> list[Any]:
    response = await ask(broker, DescribeTransactionsRequest(transactional_ids=list(ids)), 0)
    states: list[Any] = response.transaction_states
    return states


async def test_an_open_transaction(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        await create_topic(broker, "u")
        producer = Producer(broker, timeout_ms=12_345)
        await producer.init()
        before_ms = broker.clock.time_ms()
        await producer.add(2, 0)
        await producer.add(0, topic="u")
        (state,) = await describe(broker, "x")
        assert state.error_code == ErrorCode.NONE
        assert (state.transactional_id, state.transaction_state) == ("x", "Ongoing")
        assert (state.producer_id, state.producer_epoch) == (producer.producer_id, producer.epoch)
        assert state.transaction_timeout_ms == 12_345
        assert before_ms <= state.transaction_start_time_ms <= broker.clock.time_ms()
        assert [(topic.topic, topic.partitions) for topic in state.topics] == [("t", [0, 2]), ("u", [0])]
        broker.authorizer = Denying({(Operation.DESCRIBE, ResourceType.TOPIC, "t")})
        (state,) = await describe(broker, "x")
        assert [topic.topic for topic in state.topics] == ["u"]


async def test_each_id_gets_its_response(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        await Producer(broker).init()
        await Producer(broker, "secret").init()
        broker.authorizer = Denying({(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "secret")})
        states = await describe(broker, "none", "", "secret", "x")
        assert [(state.transactional_id, state.error_code) for state in states] == [
            ("none", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
            ("", ErrorCode.INVALID_REQUEST),
            ("secret", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
            ("x", ErrorCode.NONE),
        ]
        broker.transactions.stop()
        (state,) = await describe(broker, "x")
        assert state.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
