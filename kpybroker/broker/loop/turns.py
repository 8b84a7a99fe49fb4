"""Whose turn it is: a queue that takes from its clients in rotation, however much one of them has put into it."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Turns(Generic[T]):
    """Each `take` is the next client's: of one client first in, first out. Both cost the same for any length."""

    __slots__ = ("_queues",)

    def __init__(self) -> None:
        self._queues: dict[Hashable, deque[T]] = {}  # none is empty; the first one's turn is next

    def __bool__(self) -> bool:
        return bool(self._queues)

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def put(self, client: Hashable, item: T) -> None:
        """Add an item of this client. A client without any gets its turn after all others."""
        queue = self._queues.get(client)
        if queue is None:
            self._queues[client] = deque((item,))
        else:
            queue.append(item)

    def take(self) -> T:
        """The next item. Raises KeyError where there is none."""
        client = next(iter(self._queues), None)
        queue = self._queues.pop(client)
        item = queue.popleft()
        if queue:
            self._queues[client] = queue
        return item

    def discard(self, client: Hashable, item: T) -> None:
        """Take this item out of its client's queue, if it is there."""
        queue = self._queues.get(client)
        if queue is not None and item in queue:
            queue.remove(item)
            if not queue:
                del self._queues[client]
