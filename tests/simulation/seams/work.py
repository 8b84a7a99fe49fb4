"""Threads, replaced: what would run in one is called on the loop, some simulated time after it was asked for.

What a thread does takes effect at one moment. Others run before and after it, as they would next to a thread.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import trio

from kpybroker.wire.records.pauses import PAUSE

QUICK_S_MAX = 0.002
HOST: ContextVar[str] = ContextVar("HOST", default="")
"""Where the tasks of a broker run."""


class SimulatedWork:
    """`run_sync` is `trio.to_thread.run_sync` of a world. `slow_s` is added to what a piece of work takes;
    `slow_of` has what is added on hosts whose disks are slow.
    """

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.slow_s = 0.0
        self.slow_of: dict[str, float] = {}
        self.in_progress = 0

    async def run_sync(
        self,
        function: Callable[..., Any],
        *args: Any,
        thread_name: str | None = None,
        abandon_on_cancel: bool = False,
        limiter: trio.CapacityLimiter | None = None,
    ) -> Any:
        if limiter is None:
            return await self._run(function, args, abandon_on_cancel)
        async with limiter:
            return await self._run(function, args, abandon_on_cancel)

    async def _run(self, function: Callable[..., Any], args: tuple[Any, ...], abandon_on_cancel: bool) -> Any:
        await trio.lowlevel.checkpoint_if_cancelled()
        self.in_progress += 1
        try:
            with trio.CancelScope(shield=not abandon_on_cancel):
                await self._pass_time()
                token = PAUSE.set(None)  # nothing has to be shared: it takes no time at all
                try:
                    result = function(*args)
                finally:
                    PAUSE.reset(token)
                await self._pass_time()
                return result
        finally:
            self.in_progress -= 1

    async def _pass_time(self) -> None:
        await trio.sleep(self.chance.random() * (QUICK_S_MAX + self.slow_s + self.slow_of.get(HOST.get(), 0.0)))
