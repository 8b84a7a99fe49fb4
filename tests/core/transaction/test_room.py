"""Transactional ids are charged to who builds them, and refused where there is no room, with an error to retry."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from kpybroker.core.budget import StateBudget, StateLimits
from kpybroker.core.transaction.machine import TransactionMachine
from kpybroker.core.transaction.values import AddPartitions, EndResult, EndTransaction, InitProducerId, InitResult
from kpybroker.wire.errors import ErrorCode
from tests.core.transaction.harness import OWNER, Harness

FULL = ErrorCode.COORDINATOR_NOT_AVAILABLE


class Bounded(Harness):
    def __init__(self, **limits: int) -> None:
        super().__init__()
        self.budget = StateBudget(StateLimits(**limits))
        self.machine = TransactionMachine(self.config, self.coordinator_epoch, self.budget)

    def response(self, request: object) -> Any:
        ticket = f"t{len(self.asked)}"
        self.ask(ticket, request)
        self.check()
        return self.replies[ticket]


def init(bounded: Bounded, name: str) -> Any:
    return bounded.response(InitProducerId(name, 60_000))


def test_an_id_more_than_there_is_room_for_is_refused_and_one_that_works_goes_on() -> None:
    bounded = Bounded(principal=20_000)
    responses = [init(bounded, f"id-{number}") for number in range(40)]
    first, last = responses[0], responses[-1]
    assert (first.error, last) == (ErrorCode.NONE, InitResult(FULL))
    assert bounded.budget.held(OWNER) <= 20_000
    assert "id-39" not in bounded.machine.transactions
    assert init(bounded, "id-0").error is ErrorCode.NONE


def test_so_are_partitions_of_a_transaction_until_others_have_ended() -> None:
    bounded = Bounded(principal=20_000)
    producers = [init(bounded, name) for name in ("x", "y")]
    parts = [frozenset(("topic", number) for number in range(start, start + 40)) for start in (0, 40)]
    adding = [
        AddPartitions(name, producer.producer_id, producer.producer_epoch, partitions)
        for name, producer, partitions in zip(("x", "y"), producers, parts, strict=True)
    ]
    assert [bounded.response(one) for one in adding] == [ErrorCode.NONE, FULL]
    end = EndTransaction("x", producers[0].producer_id, producers[0].producer_epoch, True)
    assert bounded.response(end) == EndResult(ErrorCode.NONE)
    bounded.respond_to_order(bounded.orders.popleft(), {})
    assert bounded.response(adding[1]) is ErrorCode.NONE


@pytest.mark.parametrize("name", ["{}", "a-long-name-of-an-id-" * 100 + "{}"])
def test_an_estimate_is_not_below_what_an_id_takes(name: str) -> None:
    bounded = Bounded()
    tracemalloc.start()
    try:
        for number in range(1000):
            bounded.ask(f"t{number}", InitProducerId(name.format(number), 60_000))
        bounded.output.clear()
        bounded.asked.clear()
        bounded.replies.clear()
        bounded.log.clear()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    print(f"{taken / bounded.budget.total:.2f} of the estimate")
    assert 0.1 < taken / bounded.budget.total < 1.2


def test_the_end_of_a_transaction_of_many_partitions_takes_each_of_them_once() -> None:
    """Ten thousand markers are one step of the machine: copying the rest for each of them would hold the loop."""
    bounded = Bounded()
    producer = init(bounded, "x")
    partitions = frozenset(("topic", number) for number in range(10_000))
    bounded.response(AddPartitions("x", producer.producer_id, producer.producer_epoch, partitions))
    bounded.response(EndTransaction("x", producer.producer_id, producer.producer_epoch, True))
    transaction = bounded.machine.transactions["x"]
    transaction.current = transaction.current._replace(partitions=Counting(transaction.current.partitions))
    bounded.respond_to_order(bounded.orders.popleft(), {})
    assert transaction.current.partitions == frozenset()
    assert Counting.copies == 1


class Counting(frozenset[tuple[str, int]]):
    """A set that counts how often it is copied without some of its elements."""

    copies = 0

    def __sub__(self, other: Any) -> Any:
        Counting.copies += 1
        return Counting(frozenset.__sub__(self, other))
