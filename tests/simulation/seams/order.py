"""The order in which trio runs tasks, decided by a seed; and tasks that do not run for a while. All that is known here
of trio's private names.

trio shuffles the tasks that are ready by a random generator of its own. With its switch for deterministic scheduling
(made for hypothesis) they are sorted before that, so that the shuffle depends on the generator alone. A task becomes
ready in `Runner.reschedule`: one that is paused is taken out of the queue there, and put back when it goes on.
`tests/simulation/test_order.py` fails with a trio that has changed this.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import trio
from trio._core import _run


class Pauses:
    """Tasks that are stopped with all below them, as the threads of a process are by a signal: what they wait for
    happens, their timers run out, and they learn of it when they go on.
    """

    def __init__(self) -> None:
        self._held: dict[trio.lowlevel.Task, list[trio.lowlevel.Task]] = {}
        """Those that are ready, by the task that was paused."""

    def pause(self, root: trio.lowlevel.Task) -> None:
        self._held.setdefault(root, [])
        queue = _run.GLOBAL_RUN_CONTEXT.runner.runq
        for task in [task for task in queue if self._root_of(task) is root]:
            queue.remove(task)
            self._held[root].append(task)

    def go_on(self, root: trio.lowlevel.Task) -> None:
        _run.GLOBAL_RUN_CONTEXT.runner.runq.extend(self._held.pop(root, []))

    def end(self) -> None:
        """All go on."""
        for root in list(self._held):
            self.go_on(root)

    def take_ready(self, runner: Any, task: trio.lowlevel.Task) -> None:
        """It has just been put at the end of the queue."""
        if self._held and (root := self._root_of(task)) is not None:
            assert runner.runq.pop() is task
            self._held[root].append(task)

    def _root_of(self, task: trio.lowlevel.Task) -> trio.lowlevel.Task | None:
        at: trio.lowlevel.Task | None = task
        while at is not None and at not in self._held:
            at = None if at.parent_nursery is None else at.parent_nursery.parent_task
        return at


@contextmanager
def seeded_order(seed: int) -> Iterator[Pauses]:
    """Within it every `trio.run` takes its order of tasks from this seed, and tasks can be paused."""
    before = _run._ALLOW_DETERMINISTIC_SCHEDULING
    state = _run._r.getstate()
    vars(_run)["_ALLOW_DETERMINISTIC_SCHEDULING"] = True
    _run._r.seed(seed)
    pauses, reschedule = Pauses(), _run.Runner.reschedule

    def reschedule_or_hold(runner: Any, task: Any, *result: Any) -> None:
        reschedule(runner, task, *result)
        pauses.take_ready(runner, task)

    try:
        with patch.object(_run.Runner, "reschedule", reschedule_or_hold):
            yield pauses
    finally:
        vars(_run)["_ALLOW_DETERMINISTIC_SCHEDULING"] = before
        _run._r.setstate(state)


def task_names() -> list[str]:
    """Of all tasks of this run but trio's own."""
    root = trio.lowlevel.current_root_task()
    names: list[str] = []
    below = [] if root is None else [root]
    while below:
        task = below.pop()
        names.append(task.name)
        below += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return sorted(names)
