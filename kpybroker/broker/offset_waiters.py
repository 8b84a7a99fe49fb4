"""Whoever waits until a partition's high watermark reaches an offset: acks=all, coordinators, transaction markers."""

from __future__ import annotations

import trio

from kpybroker.wire.errors import KafkaError


class OffsetWaiter:
    """`error` tells why `offset` will never be reached."""

    __slots__ = ("error", "event", "offset")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.event = trio.Event()
        self.error: KafkaError | None = None


class OffsetWaiters:
    """`waiting`: in the order in which they came."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: list[OffsetWaiter] = []

    def add(self, offset: int) -> OffsetWaiter:
        waiter = OffsetWaiter(offset)
        self.waiting.append(waiter)
        return waiter

    async def wait(self, offset: int) -> None:
        """Raises the KafkaError of `fail`."""
        waiter = self.add(offset)
        try:
            await waiter.event.wait()
        finally:
            if not waiter.event.is_set():
                self.waiting.remove(waiter)
        if waiter.error is not None:
            raise waiter.error

    def wake(self, high_watermark: int) -> None:
        waiting = []
        for waiter in self.waiting:
            if waiter.offset <= high_watermark:
                waiter.event.set()
            else:
                waiting.append(waiter)
        self.waiting = waiting

    def fail(self, error: KafkaError) -> None:
        """Leadership is lost: nobody's offset will be reached here."""
        waiters, self.waiting = self.waiting, []
        for waiter in waiters:
            waiter.error = error
            waiter.event.set()
