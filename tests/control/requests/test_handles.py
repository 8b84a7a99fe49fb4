"""Faults by id: ids are never used again, hits can be waited for, removal removes the fault itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.control.requests.handles import Handles, Hits


class Disk:
    """A fault of another kind."""

    def __init__(self) -> None:
        self.hits = Hits()
        self.can_hold = False
        self.is_removed = False

    def described(self) -> Mapping[str, Any]:
        return {"hits": self.hits.count}

    def release(self, *, again: bool) -> int:
        return 0

    def remove(self) -> None:
        self.is_removed = True


def test_removal_removes_the_fault_itself() -> None:
    handles, disks = Handles(), [Disk(), Disk(), Disk()]
    ids = [handles.next_id() for _ in disks]
    for handle_id, disk in zip(ids, disks, strict=True):
        handles.add(handle_id, disk)
    assert handles.remove(ids[1]) is disks[1]
    assert [disk.is_removed for disk in disks] == [False, True, False]
    assert handles.ids == [ids[0], ids[2]]
    with pytest.raises(KeyError):
        handles[ids[1]]
    handles.clear()
    assert all(disk.is_removed for disk in disks)
    assert handles.ids == []
    assert handles.next_id() not in ids


async def test_hits_can_be_waited_for() -> None:
    hits, seen = Hits(), list[int]()

    async def wait(count: int) -> None:
        await hits.wait(count)
        seen.append(count)

    await hits.wait(0)
    async with trio.open_nursery() as nursery:
        for count in (3, 1, 2):
            nursery.start_soon(wait, count)
        for expected in (1, 2, 3):
            hits.add()
            await trio.testing.wait_all_tasks_blocked()
            assert seen == list(range(1, expected + 1))
