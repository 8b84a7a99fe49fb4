"""The order in which trio runs tasks, decided by a seed. All that is known here of trio's private names.

trio shuffles the tasks that are ready by a random generator of its own. With its switch for deterministic scheduling
(made for hypothesis) they are sorted before that, so that the shuffle depends on the generator alone.
`tests/simulation/test_order.py` fails with a trio that has changed this.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio
from trio._core import _run


@contextmanager
def seeded_order(seed: int) -> Iterator[None]:
    """Within it every `trio.run` takes its order of tasks from this seed."""
    before = _run._ALLOW_DETERMINISTIC_SCHEDULING
    state = _run._r.getstate()
    vars(_run)["_ALLOW_DETERMINISTIC_SCHEDULING"] = True
    _run._r.seed(seed)
    try:
        yield
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
