"""ListTransactions: filters, words that are no states, and what a client may see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.broker.handlers.transactions import list_transactions
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.list_transactions import ListTransactionsRequest
from tests.support.brokers.fake_broker import Denying, versions
from tests.support.brokers.running_broker import ask
from tests.support.brokers.transactional import Producer, transactional_broker


async def listed(broker: Broker, version: int = 1, **filters: Any) -> set[str]:
    response = await ask(broker, ListTransactionsRequest(**filters), version)
    assert response.error_code == ErrorCode.NONE
    return {state.transactional_id for state in response.transaction_states}


@pytest.mark.parametrize("version", versions(list_transactions))
async def test_filters(tmp_path: Path, version: int) -> None:
    async with transactional_broker(tmp_path) as broker:
        empty, opened = Producer(broker, "empty"), Producer(broker, "open")
        await empty.init()
        await opened.init()
        await opened.add(0)
        assert await listed(broker, version) == {"empty", "open"}
        assert await listed(broker, version, state_filters=["Ongoing"]) == {"open"}
        assert await listed(broker, version, state_filters=["Ongoing", "Empty"]) == {"empty", "open"}
        assert await listed(broker, version, producer_id_filters=[empty.producer_id]) == {"empty"}
        assert (
            await listed(broker, version, state_filters=["Ongoing"], producer_id_filters=[empty.producer_id]) == set()
        )


async def test_how_long_they_have_been_open(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with transactional_broker(tmp_path) as broker:
        old, young = Producer(broker, "old"), Producer(broker, "young")
        for producer in (old, young):
            await producer.init()
            await producer.add(0)
            await trio.sleep(5)
        assert await listed(broker, duration_filter=7_000) == {"old"}
        assert await listed(broker, duration_filter=1_000) == {"old", "young"}
        assert await listed(broker, duration_filter=-1) == {"old", "young"}


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (None, {"orders-1", "orders-2", "x"}),
        ("", {"orders-1", "orders-2", "x"}),
        ("orders-.*", {"orders-1", "orders-2"}),
        ("orders", set()),
        ("orders-[2-9]|x", {"orders-2", "x"}),
    ],
)
async def test_a_pattern_matches_the_whole_id(tmp_path: Path, pattern: str | None, found: set[str]) -> None:
    async with transactional_broker(tmp_path) as broker:
        for transactional_id in ("orders-1", "orders-2", "x"):
            await Producer(broker, transactional_id).init()
        assert await listed(broker, 2, transactional_id_pattern=pattern) == found


async def test_a_pattern_and_an_id_may_have_any_characters(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        for transactional_id in ("заказ-1", "ЗАКАЗ-1", "order-1", "😀"):
            await Producer(broker, transactional_id).init()
        for pattern, found in (
            ("(?i)заказ-.", {"заказ-1", "ЗАКАЗ-1"}),
            (r"\p{Cyrillic}+-\d", {"заказ-1", "ЗАКАЗ-1"}),
            (".", {"😀"}),
            ("[^а-я]+", {"ЗАКАЗ-1", "order-1", "😀"}),
        ):
            assert await listed(broker, 2, transactional_id_pattern=pattern) == found


async def test_a_pattern_that_is_none_is_refused(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        response = await ask(broker, ListTransactionsRequest(transactional_id_pattern="(a"), 2)
        assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


async def test_words_that_are_no_states_are_named(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        await Producer(broker).init()
        response = await ask(broker, ListTransactionsRequest(state_filters=["Nonsense", "empty"]), 0)
        assert sorted(response.unknown_state_filters) == ["Nonsense", "empty"]
        assert response.transaction_states == []


async def test_what_a_client_may_see(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        await Producer(broker).init()
        await Producer(broker, "secret").init()
        broker.authorizer = Denying({(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "secret")})
        assert await listed(broker) == {"x"}
        broker.transactions.stop()
        response = await ask(broker, ListTransactionsRequest(), 1)
        assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
