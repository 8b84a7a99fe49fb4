"""Results by partition, listed by topic."""

from __future__ import annotations

import trio.testing

from kpybroker.broker.handlers.transactions.results import results_by_topic
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.wire.errors import ErrorCode


async def test_each_partition_is_in_its_topic_in_the_order_of_the_errors() -> None:
    errors = {("b", 1): ErrorCode.NONE, ("a", 0): ErrorCode.INVALID_REQUEST, ("b", 0): ErrorCode.UNKNOWN_SERVER_ERROR}
    found = await results_by_topic(errors, YieldBudget(), lambda *partition: partition, lambda *topic: topic)
    assert found == [
        ("b", [(1, ErrorCode.NONE), (0, ErrorCode.UNKNOWN_SERVER_ERROR)]),
        ("a", [(0, ErrorCode.INVALID_REQUEST)]),
    ]


async def test_others_run_while_many_are_listed() -> None:
    errors = {("t", index): ErrorCode.NONE for index in range(20_000)}
    with trio.testing.assert_checkpoints():
        (found,) = await results_by_topic(errors, YieldBudget(), lambda index, _: index, lambda _, results: results)
    assert found == list(range(20_000))
