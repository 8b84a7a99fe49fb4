"""What trio's run loop does not tell by its public API, and the poller must know: nothing else looks behind that API.

`tests/broker/loop/test_run_loop.py` fails when a new trio differs; the broker then does without (`of_this_run`).
"""

from __future__ import annotations

from math import inf
from typing import Any


class RunLoop:
    """The loop of the `trio.run` that it is made in."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._deadlines = runner.deadlines
        self.descriptor: int = runner.io_manager._epoll.fileno()
        """Of its epoll: readable when it has something to do."""

    @staticmethod
    def of_this_run() -> RunLoop | None:
        """None where it can't be watched: another trio, no epoll, or a loop that is another loop's guest."""
        try:
            from trio._core import _run

            runner = _run.GLOBAL_RUN_CONTEXT.runner
            loop = RunLoop(runner)
            _ = runner.runq, loop.next_deadline(), loop.is_waiting_for_idleness(), runner.io_manager.force_wakeup
        except (ImportError, AttributeError):
            return None
        return None if runner.is_guest else loop

    def has_runnable(self) -> bool:
        """Tasks wait for their turn."""
        return bool(self._runner.runq)

    def next_deadline(self) -> float:
        """On trio's clock."""
        deadline: float = self._deadlines.next_deadline()
        return deadline

    def is_waiting_for_idleness(self) -> bool:
        """Tests wait until nothing happens any more, or have a clock that jumps then."""
        return bool(self._runner.waiting_for_idle) or self._runner.clock_autojump_threshold < inf

    def wake(self) -> None:
        """Its next wait for I/O is over at once, and is no idle one."""
        self._runner.io_manager.force_wakeup()
