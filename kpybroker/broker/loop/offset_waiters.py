"""Waits until a partition's high watermark reaches an offset: acks=all, coordinators, transaction markers."""

from __future__ import annotations

from collections.abc import Collection

from kpybroker.broker.loop.steps import Steps, Wait
from kpybroker.wire.errors import KafkaError


class OffsetWaiter(Wait):
    """A wait for `offset`; `error` is set if it will never be reached."""

    __slots__ = ("error", "is_reached", "offset")

    def __init__(self, offset: int, deadline: float) -> None:
        super().__init__(deadline)
        self.offset = offset
        self.is_reached = False
        self.error: KafkaError | None = None


class OffsetWaiters:
    """Those of one partition; `waiting` is in the order of their arrival."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: Collection[OffsetWaiter] = ()

    def add(self, offset: int, deadline: float) -> OffsetWaiter:
        """A new waiter for `offset`, until `deadline` on trio's clock."""
        waiter = OffsetWaiter(offset, deadline)
        if isinstance(self.waiting, list):
            self.waiting.append(waiter)
        else:
            self.waiting = [waiter]
        return waiter

    def until(self, offset: int, deadline: float) -> Steps[bool]:
        """Whether the offset is reached in time, on trio's clock. Raises the KafkaError of `fail`."""
        waiter = self.add(offset, deadline)
        try:
            yield waiter
        finally:
            if not waiter.is_reached and waiter.error is None:
                self.waiting = [other for other in self.waiting if other is not waiter] or ()
        if waiter.error is not None:
            raise waiter.error
        return waiter.is_reached

    def wake(self, high_watermark: int) -> None:
        """End the waits for offsets up to the high watermark."""
        waiting = []
        for waiter in self.waiting:
            if waiter.offset <= high_watermark:
                waiter.is_reached = True
                waiter.end()
            else:
                waiting.append(waiter)
        self.waiting = waiting or ()

    def fail(self, error: KafkaError) -> None:
        """End all waits with `error`, because leadership is lost."""
        waiters, self.waiting = self.waiting, ()
        for waiter in waiters:
            waiter.error = error
            waiter.end()
