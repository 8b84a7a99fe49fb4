"""Predicates in the test's process on requests that arrive at the broker: `when=lambda request: ...`.

A thread asks the channel for the next request that a predicate has to judge, for as long as there are such faults.
Until it has, that request waits, so a predicate must be quick, and must not use a client of this broker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from kpybroker.testing.errors import TestingError
from kpybroker.testing.running.channel import Channel

ASK_S = 5.0

Predicate = Callable[[Mapping[str, Any]], object]


class Predicates:
    """All predicates of one channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._by_fault: dict[int, tuple[Predicate, list[BaseException]]] = {}
        self._thread: threading.Thread | None = None

    def add(self, rule: Mapping[str, Any], predicate: Predicate) -> tuple[int, list[BaseException]]:
        """Add the fault; from then on the predicate is asked.

        Returns the fault's id, and a list that receives what the predicate raises.
        """
        failures: list[BaseException] = []
        with self._lock:  # the thread judges nothing before it knows the fault
            fault_id = self._channel.call("add_fault", **rule)["id"]
            self._by_fault[fault_id] = (predicate, failures)
            if self._thread is None:
                self._thread = threading.Thread(target=self._judge_all, name="kpybroker-predicates", daemon=True)
                self._thread.start()
        return fault_id, failures

    def _judge_all(self) -> None:
        try:
            while True:
                asked = self._channel.call("next_predicate", wait_s=ASK_S, timeout_ms=round(ASK_S * 1000))
                if asked is not None:
                    self._channel.call("answer_predicate", id=asked["id"], result=self._judge(asked))
        except TestingError:
            return  # the broker has ended

    def _judge(self, asked: Mapping[str, Any]) -> bool:
        with self._lock:
            predicate, failures = self._by_fault[asked["fault"]]
        try:
            return bool(predicate(asked["request"]))
        except Exception as error:
            failures.append(error)
            return False
