"""Predicates in the test's process on requests that arrive at the broker: `when=lambda request: ...`.

A thread asks the channel for the next request that a predicate has to judge, for as long as there are such faults.
Until it has, that request waits, so a predicate must be quick, and must not use a client of this broker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from kpybroker.testing.errors import TestingError, UsageError
from kpybroker.testing.running.channel import Channel
from kpybroker.testing.waiting import check_decided

ASK_S = 5.0

Predicate = Callable[[Mapping[str, Any]], object]


class Predicates:
    """All predicates of one channel. `failed` receives the id of a fault, and what its predicate raised."""

    def __init__(self, channel: Channel, failed: Callable[[int, BaseException], None]) -> None:
        self._channel = channel
        self._failed = failed
        self._lock = threading.Lock()
        self._by_fault: dict[int, Predicate] = {}
        self._thread: threading.Thread | None = None

    def add(self, rule: Mapping[str, Any], predicate: Predicate) -> int:
        """Add the fault, whose id is returned; from then on the predicate is asked."""
        with self._lock:  # the thread judges nothing before it knows the fault
            fault_id: int = self._channel.call("add_fault", **rule)["id"]
            self._by_fault[fault_id] = predicate
            if self._thread is None:
                self._thread = threading.Thread(target=self._judge_all, name="kpybroker-predicates", daemon=True)
                self._thread.start()
        return fault_id

    def _judge_all(self) -> None:
        try:
            while True:
                asked = self._channel.call("next_predicate", wait_s=ASK_S, timeout_ms=round(ASK_S * 1000))
                if asked is not None:
                    self._decide(asked["id"], self._judge(asked))
        except TestingError:
            return  # the broker has ended

    def _decide(self, question: int, result: bool) -> None:
        try:
            self._channel.call("answer_predicate", id=question, result=result)
        except UsageError:
            pass  # it is not open any more: the broker counts those that were decided too late

    def _judge(self, asked: Mapping[str, Any]) -> bool:
        with self._lock:
            predicate = self._by_fault[asked["fault"]]
        try:
            result = predicate(asked["request"])
            check_decided(result, "it")
            return bool(result)
        except Exception as error:
            self._failed(asked["fault"], error)
            return False
