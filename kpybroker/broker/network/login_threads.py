"""The threads in which mechanisms that block check credentials: few, and of one address fewer.

So a login waits for two others of each address at most, however many wrong ones an address sends. What waits is a
connection each, which the quotas on connections bound.
"""

from __future__ import annotations

from typing import Any, Final

import trio

from kpybroker.core.doors.crowd import network_of

THREADS_MAX: Final = 8
THREADS_OF_ADDRESS_MAX: Final = 2


class LoginThreads:
    """The threads of one listener."""

    def __init__(self) -> None:
        self.all = trio.CapacityLimiter(THREADS_MAX)
        self.of_address: dict[str, trio.CapacityLimiter] = {}

    def limiter(self, address: str) -> Any:
        """What `trio.to_thread.run_sync` takes as `limiter`, for a client at this address."""
        return _OfAddress(self, network_of(address))


class _OfAddress:
    """Both limits. The thread gives them back when it ends, also if the client has gone before."""

    def __init__(self, threads: LoginThreads, address: str) -> None:
        self._threads = threads
        self._address = address
        self._own = threads.of_address.setdefault(address, trio.CapacityLimiter(THREADS_OF_ADDRESS_MAX))

    async def acquire_on_behalf_of(self, borrower: object) -> None:
        """As `trio.CapacityLimiter`'s."""
        try:
            await self._own.acquire_on_behalf_of(borrower)
            try:
                await self._threads.all.acquire_on_behalf_of(borrower)
            except BaseException:
                self._own.release_on_behalf_of(borrower)
                raise
        finally:
            self._forget()

    def release_on_behalf_of(self, borrower: object) -> None:
        """As `trio.CapacityLimiter`'s."""
        self._threads.all.release_on_behalf_of(borrower)
        self._own.release_on_behalf_of(borrower)
        self._forget()

    def _forget(self) -> None:
        """An address of which nothing runs or waits has no entry."""
        found, of_address = self._own.statistics(), self._threads.of_address
        is_idle = not found.borrowed_tokens and not found.tasks_waiting
        if is_idle and of_address.get(self._address) is self._own:
            del of_address[self._address]
