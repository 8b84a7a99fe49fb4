"""What the poller must know of trio's run loop and trio's public API does not say. Nothing else uses trio's internals.

Nothing depends on them to be correct: where they differ, `of_this_run` returns None and every task waits for its own
socket. `tests/broker/loop/test_run_loop.py` fails with such a trio, because the broker is slower with it.
"""

from __future__ import annotations

from math import inf
from typing import Any


class RunLoop:
    """The loop of one `trio.run`."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._deadlines = runner.deadlines
        self.descriptor: int = runner.io_manager._epoll.fileno()
        """Of trio's epoll: readable when trio has something to do."""

    @staticmethod
    def of_this_run() -> RunLoop | None:
        """None where it can't be watched: another trio, no epoll, or a loop that is a guest of another loop."""
        try:
            from trio._core import _run

            runner = _run.GLOBAL_RUN_CONTEXT.runner
            loop = RunLoop(runner)
            values = (loop.has_runnable(), loop.next_deadline(), loop.is_waiting_for_idleness(), loop.descriptor)
            if not callable(runner.io_manager.force_wakeup) or runner.is_guest:
                return None
        except Exception:  # whatever the internals of another trio raise
            return None
        return loop if tuple(map(type, values)) == (bool, float, bool, int) else None

    def has_runnable(self) -> bool:
        """Whether tasks are ready to run."""
        return bool(self._runner.runq)

    def next_deadline(self) -> float:
        """When trio must run next, on its clock; infinity if nothing has a deadline."""
        deadline: float = self._deadlines.next_deadline()
        return deadline

    def is_waiting_for_idleness(self) -> bool:
        """Whether tests wait until no task can run (`wait_all_tasks_blocked`), or have a clock that jumps then."""
        return bool(self._runner.waiting_for_idle) or self._runner.clock_autojump_threshold < inf

    def wake(self) -> None:
        """End its next wait for I/O at once; that wait does not count as idle."""
        self._runner.io_manager.force_wakeup()
