"""Rules that ask the test process: the request waits for the result, others do not, and silence is a no."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import trio
import trio.testing

from kpybroker.broker.loop.steps import run_to_end
from kpybroker.control.requests.predicates import DECISION_SECONDS_MAX, Predicates
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.heartbeat import HeartbeatRequest
from tests.support.brokers.faulty_broker import faulty_broker
from tests.support.brokers.running_broker import ask

BUSY = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.mark.parametrize("result", [True, False])
async def test_the_result_decides(tmp_path: Path, result: bool) -> None:
    async with faulty_broker(tmp_path) as faulty, trio.open_nursery() as nursery:
        fault = faulty.add({"error": BUSY.name}, api="Heartbeat", group="g", predicate=True)
        codes: list[int] = []

        async def beat(group: str) -> None:
            codes.append((await ask(faulty.broker, HeartbeatRequest(group_id=group, generation_id=7), 4)).error_code)

        await beat("other")
        nursery.start_soon(beat, "g")
        question = await faulty.predicates.next()
        assert question.fault_id == fault.id
        assert question.head["api"] == "Heartbeat"
        assert question.request["generation_id"] == 7
        await trio.testing.wait_all_tasks_blocked()
        await beat("other")
        assert len(codes) == 2
        assert faulty.predicates.decide(question.id, result)
        await trio.testing.wait_all_tasks_blocked()
        assert (codes[2] == BUSY, fault.hits.count) == (result, int(result))
        assert not faulty.predicates.decide(question.id, result)


async def test_silence_is_a_no_and_is_logged(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    predicates, began = Predicates(), trio.current_time()
    with caplog.at_level(logging.WARNING):
        assert await run_to_end(predicates.ask(5, {}, {})) is None
    assert trio.current_time() - began == pytest.approx(DECISION_SECONDS_MAX)
    assert "fault=5 predicate=undecided" in caplog.text
    with trio.move_on_after(1) as waiting:
        await predicates.next()  # the question is gone
    assert waiting.cancelled_caught


async def test_questions_are_read_once_in_order() -> None:
    predicates = Predicates()
    results: dict[int, bool | None] = {}

    async def asking(number: int) -> None:
        results[number] = await run_to_end(predicates.ask(number, {}, {}))

    async with trio.open_nursery() as nursery:
        for number in (1, 2, 3):
            nursery.start_soon(asking, number)
            await trio.testing.wait_all_tasks_blocked()
        questions = [await predicates.next() for _ in range(3)]
        assert [one.fault_id for one in questions] == [1, 2, 3]
        for one in reversed(questions):
            predicates.decide(one.id, one.fault_id == 2)
    assert results == {1: False, 2: True, 3: False}
