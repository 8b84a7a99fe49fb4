"""`Known`: replies by the hash of their question, the least recently used ones forgotten."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from kpybroker.registry.texts.questions import Question, Reply

BYTES_MAX: Final = 8 << 20
KEPT_MIN: Final = 16
"""However large: a request that waited for a reply finds it."""


class Known:
    """Of any threads."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._replies: OrderedDict[str, Reply] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, question: Question) -> Reply | None:
        """None where it is not known, or not any more."""
        with self._lock:
            found = self._replies.get(question.key)
            if found is not None:
                self._replies.move_to_end(question.key)
            return found

    def keep(self, question: Question, reply: Reply) -> None:
        """For the next one that asks."""
        with self._lock:
            before = self._replies.pop(question.key, None)
            self._replies[question.key] = reply
            self._bytes += reply.size - (before.size if before is not None else 0)
            while self._bytes > self._bytes_max and len(self._replies) > KEPT_MIN:
                self._bytes -= self._replies.popitem(last=False)[1].size
