"""The awaitable twins of what waits, and of a block, for asyncio and for trio: the blocking call runs in a thread."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

from kpybroker.testing.checking import kinds
from kpybroker.testing.checking.calls import anything, checked
from kpybroker.testing.errors import TestingError
from kpybroker.testing.waiting import WAIT_S, check_decided

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from kpybroker.testing.look import ClientMetrics, Group, ShareGroup
    from kpybroker.testing.typed.names import GroupState
    from kpybroker.testing.typed.several import Many

T = TypeVar("T")
P = ParamSpec("P")


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Await a blocking call, in a thread of the event loop that runs. What it raises is raised."""
    call = partial(function, *args, **kwargs)
    if "trio" in sys.modules:
        import trio

        if trio.lowlevel.in_trio_run():
            return await trio.to_thread.run_sync(call)
    import asyncio

    return await asyncio.to_thread(call)


class Block(ABC):
    """Started where the block begins, stopped where it ends."""

    @abstractmethod
    def start(self) -> Self:
        """Start, and wait until it serves."""

    @abstractmethod
    def stop(self) -> None:
        """Stop in order. Stopping again does nothing."""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await in_thread(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await in_thread(self.stop)
        except TestingError:
            if error is None:  # it is not to hide the other one
                raise


class Waits(Protocol):
    """What waits; see `Brokers`."""

    def start(self) -> object:
        """As `Brokers.start`."""

    def stop(self) -> None:
        """As `Brokers.stop`."""

    def wait_for(self, condition: Callable[[], T], timeout: float = WAIT_S, what: str | None = None) -> T:
        """As `Brokers.wait_for`."""
        ...

    def wait_group(self, group: str, state: GroupState | None, members: int | None, timeout: float) -> Group:
        """As `Brokers.wait_group`."""
        ...

    def wait_assigned(self, group: str, topic: str | None, members: int | None, timeout: float) -> Group:
        """As `Brokers.wait_assigned`."""
        ...

    def wait_share_group(self, group: str, state: GroupState | None, members: int | None, timeout: float) -> ShareGroup:
        """As `Brokers.wait_share_group`."""
        ...

    def wait_acknowledged(
        self, group: str, topic: str, offsets: Many[int], *, partition: int, timeout: float
    ) -> ShareGroup:
        """As `Brokers.wait_acknowledged`."""
        ...

    def wait_client_metrics(self, client_id: str, *, name: str | None, pushes: int, timeout: float) -> ClientMetrics:
        """As `Brokers.wait_client_metrics`."""
        ...


class Aio:
    """`broker.aio`."""

    def __init__(self, brokers: Waits) -> None:
        self._brokers = brokers

    @checked(function=kinds.called, args=anything, kwargs=anything)
    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Any call that waits: `await broker.aio.call(fault.wait, 2)`."""
        result = await in_thread(function, *args, **kwargs)
        check_decided(result, "the function")
        return result

    @checked(condition=kinds.function, timeout=kinds.timeout, what=kinds.optional(kinds.text))
    async def wait_for(self, condition: Callable[[], T], timeout: float = WAIT_S, what: str | None = None) -> T:
        """As `Brokers.wait_for`; the condition runs in a thread."""
        return await in_thread(self._brokers.wait_for, condition, timeout, what)

    @checked(group=kinds.text, state=anything, members=anything, timeout=kinds.timeout)
    async def wait_group(
        self, group: str, state: GroupState | None = "Stable", members: int | None = None, timeout: float = WAIT_S
    ) -> Group:
        """As `Brokers.wait_group`."""
        return await in_thread(self._brokers.wait_group, group, state, members, timeout)

    @checked(group=kinds.text, topic=anything, members=anything, timeout=kinds.timeout)
    async def wait_assigned(
        self, group: str, topic: str | None = None, members: int | None = None, timeout: float = WAIT_S
    ) -> Group:
        """As `Brokers.wait_assigned`."""
        return await in_thread(self._brokers.wait_assigned, group, topic, members, timeout)

    @checked(group=kinds.text, state=anything, members=anything, timeout=kinds.timeout)
    async def wait_share_group(
        self, group: str, state: GroupState | None = "Stable", members: int | None = None, timeout: float = WAIT_S
    ) -> ShareGroup:
        """As `Brokers.wait_share_group`."""
        return await in_thread(self._brokers.wait_share_group, group, state, members, timeout)

    @checked(group=kinds.text, topic=kinds.text, offsets=anything, partition=anything, timeout=kinds.timeout)
    async def wait_acknowledged(
        self, group: str, topic: str, offsets: Many[int], *, partition: int = 0, timeout: float = WAIT_S
    ) -> ShareGroup:
        """As `Brokers.wait_acknowledged`."""
        wait = self._brokers.wait_acknowledged
        return await in_thread(wait, group, topic, offsets, partition=partition, timeout=timeout)

    @checked(client_id=kinds.text, name=anything, pushes=anything, timeout=kinds.timeout)
    async def wait_client_metrics(
        self, client_id: str, *, name: str | None = None, pushes: int = 1, timeout: float = WAIT_S
    ) -> ClientMetrics:
        """As `Brokers.wait_client_metrics`."""
        wait = self._brokers.wait_client_metrics
        return await in_thread(wait, client_id, name=name, pushes=pushes, timeout=timeout)

    @checked()
    async def start(self) -> None:
        """As `Brokers.start`."""
        await in_thread(self._brokers.start)

    @checked()
    async def stop(self) -> None:
        """As `Brokers.stop`."""
        await in_thread(self._brokers.stop)
