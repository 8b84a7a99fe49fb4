"""Disks that fail. What each kind does, and what it does not cover: `kpybroker.control.levers.disk`."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import trio

from kpybroker.control.errors import ControlError, did_you_mean
from kpybroker.control.levers.disk import (
    CRASH_BEFORE_FSYNC,
    EIO,
    FULL,
    OPERATIONS,
    SLOW_FSYNC,
    TORN_WRITE,
    DiskFault,
    DiskRule,
)
from kpybroker.control.levers.handles import keep
from kpybroker.control.levers.topology import Levers, Topology
from kpybroker.control.registry import JSON, methods

if TYPE_CHECKING:
    from kpybroker.control.hosted import Hosted

DELAY_MS_MAX = 600_000

_TAKES = {
    FULL: frozenset(("after",)),
    SLOW_FSYNC: frozenset(("delay_ms",)),
    EIO: frozenset(("after", "operations")),
    TORN_WRITE: frozenset[str](),
    CRASH_BEFORE_FSYNC: frozenset[str](),
}
"""The arguments that only some kinds take."""

_PATHS = {TORN_WRITE: "*.log"}
"""The files meant by default, if not all."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Which operations fail, and how."""

    path: str | None = None
    operations: list[str] | None = None
    delay_ms: int = 0
    after: int = 0
    times: int | None = None

    def check(self, kind: str) -> None:
        """Raises ControlError for what makes no sense with this kind of fault."""
        given = {"delay_ms": self.delay_ms, "after": self.after, "operations": self.operations}
        _check_taken(kind, {name for name, value in given.items() if value})
        is_counted = self.after >= 0 and (self.times is None or self.times >= 1)
        if not 0 <= self.delay_ms <= DELAY_MS_MAX or not is_counted:
            raise ControlError(
                "disk_fault: a number is out of range",
                f"give a `delay_ms` of 0 to {DELAY_MS_MAX}, an `after` of 0 or more, a `times` of 1 or more",
            )
        if kind == SLOW_FSYNC and not self.delay_ms:
            raise ControlError("disk_fault: a slow_fsync without `delay_ms` is none", "give milliseconds")
        for operation in self.operations or ():
            if operation not in OPERATIONS:
                cause = f"disk_fault: there is no operation `{operation}`"
                raise ControlError(cause, did_you_mean(operation, OPERATIONS))

    def rule(self, kind: str) -> DiskRule:
        """What the lever of the disk takes."""
        path, operations = self.path or _PATHS.get(kind, "*"), frozenset(self.operations or ())
        return DiskRule(kind, path, operations, delay_ms=self.delay_ms, after=self.after, times=self.times)


ALWAYS = Effect()


async def disk_fault(
    hosted: Hosted,
    kind: Literal["full", "slow_fsync", "eio", "torn_write", "crash_before_fsync"],
    broker: int | None = None,
    effect: Effect = ALWAYS,
) -> JSON:
    """Let a broker's disk fail, null: those of all; the id of the fault, for `fault`, `wait_fault`, `remove_fault`.

    `path` is a glob for a file's path or the end of it. `after` counts bytes that a `full` disk still takes, or
    operations of an `eio` that still succeed; `operations` are the names of those that fail. `times` is how often it
    happens, null: until it is removed.
    """
    effect.check(kind)
    return {"id": _set(hosted, effect.rule(kind), broker)}


def _check_taken(kind: str, given: set[str]) -> None:
    for name in sorted(given - _TAKES[kind]):
        kinds = [other for other, taken in _TAKES.items() if name in taken]
        raise ControlError(f"disk_fault: {kind} takes no `{name}`", f"leave it out; it is for {' and '.join(kinds)}")


def _set(hosted: Hosted, rule: DiskRule, broker: int | None) -> int:
    topology = hosted.part(Topology)
    if broker is not None:
        hosted.plan(broker)
    chosen = [topology.levers(one) for one in (hosted.ids if broker is None else (broker,))]
    faults: list[tuple[Levers, DiskFault]] = []
    described = {
        "kind": rule.kind,
        "broker": broker,
        "path": rule.path,
        "operations": sorted(rule.operations),
        "delay_ms": rule.delay_ms,
        "after": rule.after,
        "times": rule.times,
    }
    handle = keep(hosted, {"disk": described}, partial(_remove, faults))
    token, loop = trio.lowlevel.current_trio_token(), threading.get_ident()

    def count() -> None:
        if threading.get_ident() == loop:
            handle.hits.add()
        else:
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(handle.hits.add)

    faults += [(levers, levers.files.add(rule, count)) for levers in chosen]
    return handle.id


def _remove(faults: list[tuple[Levers, DiskFault]]) -> None:
    for levers, fault in faults:
        levers.files.remove(fault)


METHODS = methods(disk_fault)
