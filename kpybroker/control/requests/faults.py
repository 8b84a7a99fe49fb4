"""The request faults of a process: rules with their state, shared by the interceptors of all its brokers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import inf
from typing import Any

from kpybroker.broker.loop.clock import Clock
from kpybroker.broker.loop.steps import Steps, Wait
from kpybroker.broker.requests.context import ConnectionInfo
from kpybroker.control.requests.handles import Handles, Hits
from kpybroker.control.rules import acts
from kpybroker.control.rules.rule import Rule
from kpybroker.wire.headers import RequestHeader

Client = tuple[str | None, str]
"""(client id, host)."""
WAITING = acts.Hold | acts.Delay | acts.NeverAnswer


class Fault:
    """A rule, how often it has matched and acted, and what it keeps waiting.

    `hits` counts each time it acts; an act that follows the work is counted when it happens.
    """

    def __init__(self, fault_id: int, rule: Rule, clock: Clock, on_remove: Callable[[Fault], None]) -> None:
        self.id = fault_id
        self.rule = rule
        self.hits = Hits()
        self.can_hold = isinstance(rule.act, WAITING)
        self.matches = 0
        """Requests that its match selected."""
        self.undecided = 0
        """Requests about which its predicate did not decide in time."""
        self.clients: set[Client] = set()
        """Those of a black hole."""
        self.is_open = False
        """A hold that was released."""
        self.is_removed = False
        self._fired = 0
        self._clock = clock
        self._added = clock.monotonic()
        self._random = random.Random(rule.trigger.seed)
        self._held: dict[Wait, None] = {}
        self._silenced: dict[int, ConnectionInfo] = {}
        self._on_remove = on_remove

    @property
    def age_ms(self) -> float:
        """Time since it was added."""
        return (self._clock.monotonic() - self._added) * 1000

    @property
    def is_over(self) -> bool:
        """Whether its trigger can never fire again."""
        return self.rule.trigger.is_over(self.matches, self._fired, self.age_ms)

    def fires(self) -> bool:
        """Whether to act on a request that the match selects; counts it."""
        self.matches += 1
        fires = self.rule.trigger.fires(self.matches, self._fired, self.age_ms, self._random.random)
        self._fired += fires
        return fires

    def jitter_ms(self, jitter_ms: int) -> float:
        """A random difference, drawn from the trigger's seed."""
        return self._random.uniform(-jitter_ms, jitter_ms) if jitter_ms else 0.0

    def hold(self, seconds: float = inf) -> Steps[None]:
        """Wait so long on the broker's clock, unless `release` or `remove` ends it."""
        wait = Wait(inf)
        self._held[wait] = None
        try:
            yield partial(self._wait, wait, self._clock.monotonic() + seconds)
        finally:
            self._held.pop(wait, None)

    async def _wait(self, wait: Wait, deadline: float) -> None:
        with self._clock.move_on_at(deadline):
            await wait()

    def silence(self, connection: ConnectionInfo) -> None:
        """Ignore what arrives on a connection until the fault is removed, which closes it."""
        self._silenced[id(connection)] = connection

    def ignores(self, header: RequestHeader, connection: ConnectionInfo) -> bool:
        """Whether a request gets no response because of what happened before."""
        if id(connection) in self._silenced:
            return True
        for_ms = self.rule.trigger.for_ms
        return (header.client_id, connection.client_host) in self.clients and (for_ms is None or self.age_ms < for_ms)

    def described(self) -> Mapping[str, Any]:
        """As `Handle.described`."""
        return {
            "id": self.id,
            **self.rule.data,
            "hits": self.hits.count,
            "matches": self.matches,
            **({"undecided": self.undecided} if self.rule.match.is_asked else {}),
            "holds": len(self._held),
            "is_over": self.is_over or self.is_open,
        }

    def release(self, *, again: bool) -> int:
        """As `Handle.release`; an act that does not wait has nothing to release."""
        if not self.can_hold:
            return 0
        held = list(self._held)
        self.is_open = not again
        for wait in held:
            wait.end()
        return len(held)

    def remove(self) -> None:
        """As `Handle.remove`. Connections whose requests got no response are closed, so that their clients connect
        again.
        """
        self.is_removed = True
        self._on_remove(self)
        self.release(again=False)
        for connection in self._silenced.values():
            connection.end()
        self._silenced.clear()
        self.clients.clear()


class FaultRules:
    """All request faults, in the order in which they were added. `handles` are theirs, and those of other faults."""

    def __init__(self) -> None:
        self.handles = Handles()
        self._faults: dict[int, Fault] = {}

    def __len__(self) -> int:
        return len(self._faults)

    def add(self, rule: Rule, clock: Clock) -> Fault:
        """A fault that acts from now on; its delays and its `for_ms` are on this clock."""
        fault = Fault(self.handles.next_id(), rule, clock, self._forget)
        self._faults[fault.id] = fault
        self.handles.add(fault.id, fault)
        return fault

    def ignoring(self, header: RequestHeader, connection: ConnectionInfo) -> Fault | None:
        """A fault because of which nothing that arrives here gets a response."""
        return next((fault for fault in self._faults.values() if fault.ignores(header, connection)), None)

    def candidates(self, broker_id: int, header: RequestHeader, connection: ConnectionInfo) -> list[Fault]:
        """Faults that may act on a request, by all that is known before its body is decoded."""
        return list(self._candidates(broker_id, header, connection))

    def _candidates(self, broker_id: int, header: RequestHeader, connection: ConnectionInfo) -> Iterator[Fault]:
        for fault in self._faults.values():
            match = fault.rule.match
            if (
                match.matches_api(header.api_key, header.api_version)
                and match.matches_client(
                    broker_id, header.client_id, str(connection.principal), connection.listener_name
                )
                and not fault.is_over
            ):
                yield fault

    def _forget(self, fault: Fault) -> None:
        self._faults.pop(fault.id, None)
