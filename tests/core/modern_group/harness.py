"""The harness of consumer groups with what groups of another kind need, whichever that is.

After every command the log so far is replayed into a fresh machine, and the budget is what is there.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from kpybroker.core.assignors.values import run_to_end
from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.group.records import RecordVersions, decode_record, encode_record
from kpybroker.core.modern_group.state import ModernGroup
from kpybroker.wire.yield_budget import WorkBudget
from tests.core.consumer_group.harness import ConsumerHarness
from tests.core.group.harness import OWNER, charged_bytes, durable_state

S = TypeVar("S")


class ModernHarness(ConsumerHarness):
    """`records` are the classes of the kind; `owned` are its requests that are charged to who sends them."""

    records: tuple[type[Any], ...]
    owned: tuple[type[Any], ...]

    # --- of a kind

    @abstractmethod
    def groups_of(self, machine: GroupMachine) -> Iterable[ModernGroup[Any, Any]]:
        """Those of the kind."""

    @abstractmethod
    def state_of(self, group: Any) -> object:
        """What the log decides of the group."""

    @abstractmethod
    def check_group(self, group: Any) -> None:
        """What must hold for the members of a group together."""

    @abstractmethod
    def render_own(self, record: Any) -> str:
        """A record of the kind."""

    # --- the shell's part

    def check(self) -> None:
        fresh = GroupMachine(self.config)
        self._replay_into(fresh)
        assert durable_state(fresh) == durable_state(self.machine)
        assert self._states(fresh) == self._states(self.machine)
        assert self.budget.total == charged_bytes(self.machine) + self._bytes()
        for group in self.groups_of(self.machine):
            assert self.is_unloaded or group.live.keys() == group.members.keys()
            self.check_group(group)

    def _states(self, machine: GroupMachine) -> dict[str, object]:
        return {group.group_id: self.state_of(group) for group in self.groups_of(machine)}

    def _bytes(self) -> int:
        """What the budget must say, from what is there."""
        size = 0
        for group in self.groups_of(self.machine):
            for live in group.live.values():
                member = group.members.get(live.member_id)
                if live.owner == OWNER and member is not None:
                    size += group.bytes_of(member)
            if group.owner == OWNER:
                size += group.own_bytes()
        return size

    def _replay_into(self, machine: GroupMachine) -> None:
        for offset, entry in enumerate(self.log):
            assert len(entry) == 3, "no transactions here"
            key, value, producer_id = entry
            record = decode_record(key, value)
            assert record is not None
            machine.replay(record, offset, producer_id)

    def append(self, record: Any, write: Any) -> None:
        if not isinstance(record, self.records):
            super().append(record, write)
            return
        key, value = encode_record(record, RecordVersions())
        assert decode_record(key, value) == record
        self.machine.replay(record, len(self.log))
        self.log.append((key, value, -1))
        self.output.append(f"log {self.render_own(record)}")

    def ask(self, ticket: str, request: Any) -> None:
        super().ask(ticket, replace(request, owner=OWNER) if isinstance(request, self.owned) else request)

    # --- commands

    def renew(self) -> None:
        """Begin again with the settings of now."""
        self.machine = self.new_machine()
        self._tell_topics()

    def do_reload(self, *settings: str) -> None:
        self.resign()
        assert self.budget.total == 0
        self.renew()
        self._replay_into(self.machine)
        self.run(run_to_end(self.machine.activate(self.machine.ids(), self.now, WorkBudget())))


def with_settings(config: S, settings: Iterable[str]) -> S:
    """`name=number` for each field that is another one."""
    values: Any = {key: int(value) for key, value in (setting.split("=") for setting in settings)}
    changed: S = replace(config, **values)  # type: ignore[type-var]
    return changed
