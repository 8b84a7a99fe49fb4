"""Questions to the test process: does this rule match this request?

The request waits, its connection with it, and nothing else. Without a decision within `DECISION_SECONDS_MAX` of the
machine's time the rule does not match, and a warning is logged: a test process that has ended must not stop the broker.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import trio

from kpybroker.broker.loop.steps import Steps, Wait

logger = logging.getLogger("kpybroker.faults")

DECISION_SECONDS_MAX = 5.0


@dataclass(slots=True, eq=False)
class Question:
    """`head` says who asks what, `request` is the decoded request; both are JSON."""

    id: int
    fault_id: int
    head: Mapping[str, Any]
    request: Mapping[str, Any]
    wait: Wait
    result: bool | None = None


class Predicates:
    """The questions that are open, in order."""

    def __init__(self) -> None:
        self._open: dict[int, Question] = {}
        self._unread: dict[int, Question] = {}
        self._last_id = 0
        self._arrived = trio.Event()

    def ask(self, fault_id: int, head: Mapping[str, Any], request: Mapping[str, Any]) -> Steps[bool | None]:
        """Whether the test process says yes; None where it has not decided in time."""
        self._last_id += 1
        wait = Wait(trio.current_time() + DECISION_SECONDS_MAX)
        question = Question(self._last_id, fault_id, head, request, wait)
        self._open[question.id] = self._unread[question.id] = question
        self._arrived.set()
        self._arrived = trio.Event()
        try:
            yield question.wait
        finally:
            del self._open[question.id]
            self._unread.pop(question.id, None)
        if question.result is None:
            logger.warning(
                "fault=%d predicate=undecided seconds=%g: the request is treated as not matched",
                fault_id,
                DECISION_SECONDS_MAX,
            )
        return question.result

    async def next(self) -> Question:
        """The next question that no one has read; waits for one."""
        while not self._unread:
            await self._arrived.wait()
        return self._unread.pop(next(iter(self._unread)))

    def decide(self, question_id: int, result: bool) -> bool:
        """Decide a question; False if it is not open (any more)."""
        question = self._open.get(question_id)
        if question is None:
            return False
        question.result = result
        question.wait.end()
        return True
