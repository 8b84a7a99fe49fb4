"""Waiting until the brokers of this process are idle: nothing goes on any more without a client or the time.

Work in threads and compaction count as going on. Clients may keep the loop busy without end, so there are limits.
(`trio.testing.wait_all_tasks_blocked` imports pytest where there is one, which takes a quarter of a second.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.control.hosted import Hosted

PATIENCE_S, BUSY_S_MAX = 1.0, 0.02
"""How long tasks may put off the rest; and how long once they have done so for `PATIENCE_S`, as clients that send
without a pause do."""
WORK_S_MAX = 30.0
LOOK_EVERY_S = 0.0005
IDLE_ITERATIONS = 4
"""Iterations of the loop without a step of a task. The poller may respond to a request in one of them, of another
broker of this process maybe; the next one then has its response."""


class Idle:
    """Called, it returns when the brokers have nothing left to do; or after the limits, `WORK_S_MAX` in all."""

    def __init__(self, hosted: Hosted) -> None:
        self._hosted = hosted
        self._patience_s = PATIENCE_S

    async def __call__(self) -> None:
        """Come to rest."""
        with trio.move_on_after(WORK_S_MAX):
            while True:
                with trio.move_on_after(self._patience_s) as busy:
                    await _until_tasks_wait()
                if busy.cancelled_caught:
                    self._patience_s = BUSY_S_MAX
                if not _is_working(self._hosted):
                    return
                await trio.sleep(LOOK_EVERY_S)


class _Steps(trio.abc.Instrument):
    """Counts steps of tasks."""

    def __init__(self) -> None:
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """trio is about to run a task."""
        self.count += 1


async def _until_tasks_wait() -> None:
    steps = _Steps()
    trio.lowlevel.add_instrument(steps)
    try:
        idle = 0
        while idle < IDLE_ITERATIONS:
            steps.count = 0
            await trio.lowlevel.checkpoint()
            idle = idle + 1 if steps.count == 1 else 0  # the one step is ours
    finally:
        trio.lowlevel.remove_instrument(steps)


def _is_working(hosted: Hosted) -> bool:
    threads = trio.to_thread.current_default_thread_limiter().borrowed_tokens
    return threads > 0 or any(_works(broker) for broker in hosted.brokers.values())


def _works(broker: Broker) -> bool:
    return broker.slow_work.is_busy or broker.is_compacting
