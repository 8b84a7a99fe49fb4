"""One call into the group state machine: when it happens, what it may consult, and the outcome it fills."""

from __future__ import annotations

from kpybroker.core.group.records import Record
from kpybroker.core.group.state import Group
from kpybroker.core.group.timers import Timers
from kpybroker.core.group.values import GroupConfig
from kpybroker.core.machine import Now, Outcome, Step
from kpybroker.core.modern_group.values import GroupCounts


class GroupStep(Step[Record]):
    """A step of the group state machine; it adds the settings, timers, counts, and the groups to forget."""

    __slots__ = ("config", "counts", "forgotten", "timers")

    def __init__(self, now: Now, config: GroupConfig, timers: Timers, counts: GroupCounts) -> None:
        super().__init__(now)
        self.config = config
        self.timers = timers
        self.counts = counts
        self.forgotten: list[Group] = []

    def forget(self, group: Group) -> None:
        """Drop a group that has nothing left and never had a record in the log."""
        self.forgotten.append(group)

    def after(self, delay_ms: float) -> float:
        """The monotonic deadline, in seconds, that is `delay_ms` from now."""
        return self.now.monotonic + delay_ms / 1000


GroupOutcome = Outcome[Record, GroupStep]
