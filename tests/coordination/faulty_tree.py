"""A tree with faults, around any tree: what a network and an ensemble do to a client, decided by a seed.

Each fault occurs with real ZooKeeper, and keeps what ZooKeeper guarantees:

* *cut*: the connection breaks while operations are in flight. They return `ConnectionLoss`; of the writes among them
  the first few were applied, in order, and the rest were not: the unknown outcome. The listener gets DISCONNECTED,
  operations are refused, and watch events wait until the connection is back: after `refusals_max` refused operations,
  at the next `wait_until_connected`, or when `reconnect` is called;
* *expiry*: the session ends before an operation;
* *late watch*: events are delayed until the next result arrives (which they must precede) or `release` is called.

The same seed and the same operations give the same faults. `later`, if given, receives a function to call after a
while, so that a delayed event arrives even if no other operation follows. No trio, no clock.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from kpybroker.control.levers.tree import ExpirableTree, ForwardingTree
from kpybroker.coordination.client_watches import ClientWatches
from kpybroker.core import tree as t
from kpybroker.core.tree import SessionEvent, SessionState, TreeEvent, WatchEvent, path_of

_WRITES = (t.Create, t.SetData, t.Delete, t.Multi, t.SetAcl)


@dataclass(frozen=True, slots=True)
class FaultRates:
    """Probabilities: of a cut and of an expiry for each operation, of a late arrival for each watch event."""

    cut: float = 0.0
    expire: float = 0.0
    late_watch: float = 0.0


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What happens to a batch: the first `completed` operations get their result, the writes up to `applied` happen."""

    completed: int
    applied: int
    expire: bool = False


class FaultyTree(ForwardingTree):
    """`inner` with random faults at `rates`, and those that `cut_next` and `expire_next` request."""

    def __init__(
        self,
        inner: ExpirableTree,
        seed: int = 0,
        rates: FaultRates | None = None,
        *,
        refusals_max: int = 3,
        later: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        self.rates = rates or FaultRates()
        super().__init__(inner)
        self._random = Random(seed)
        self._refusals_max = refusals_max
        self._later = later
        self._watches = ClientWatches()
        self._in_flight: Counter[str] = Counter()  # the paths of reads with a watch that are in flight
        self._cut = False
        self._cuts = 0
        self._refusals = 0
        self._delayed: deque[TreeEvent] = deque()  # bounded by the watches that are set
        self._requested: list[
            tuple[Callable[[t.Operation], bool], bool | None]
        ] = []  # None: expire; else cut, applied?
        inner.listen(self._on_event)

    # --- faults on demand

    def cut_next(self, match: Callable[[t.Operation], bool] = lambda op: True, *, applied: bool) -> None:
        """Cut the connection at the next operation that `match`es, which is then applied or not."""
        self._requested.append((match, applied))

    def expire_next(self, match: Callable[[t.Operation], bool] = lambda op: True) -> None:
        """End the session before the next operation that `match`es."""
        self._requested.append((match, None))

    def disconnect(self) -> None:
        """Break the connection now: operations in flight will return `ConnectionLoss`."""
        if not self._cut and self._inner.connected:
            self._cut, self._refusals = True, 0
            self._cuts += 1
            self._deliver(SessionEvent(SessionState.DISCONNECTED, self.generation))
            if self._later is not None:
                self._later(self.reconnect)

    def reconnect(self) -> None:
        """End a cut: the listener gets CONNECTED, then the delayed events."""
        if self._cut:
            self._cut = False
            if self._inner.connected:
                self._deliver(SessionEvent(SessionState.CONNECTED, self.generation))
            self.release()

    def release(self) -> None:
        """Deliver the delayed watch events, unless the connection is cut."""
        while self._delayed and not self._cut and not self._is_early(self._delayed[0]):
            self._deliver(self._delayed.popleft())

    # --- the contract

    @property
    def connected(self) -> bool:
        """Whether `inner` is connected and the connection is not cut."""
        return self._inner.connected and not self._cut

    async def start(self, timeout: float) -> None:
        """Open the first session of `inner`, without faults."""
        await self._inner.start(timeout)

    async def reopen(self) -> None:
        """Replace an expired session of `inner`, without faults."""
        await self._inner.reopen()

    async def wait_until_connected(self) -> None:
        """End a cut, then wait for `inner`."""
        self.reconnect()
        await self._inner.wait_until_connected()

    async def close(self) -> None:
        """Close `inner`; delayed events are dropped."""
        self._cut = False
        self._delayed.clear()
        await self._inner.close()

    async def submit_many(self, ops: Sequence[t.Operation]) -> list[t.Result | t.TreeError]:
        """Perform all, with the faults that are planned for them."""
        if self._cut and not self._refuse():
            return [t.ConnectionLoss(path_of(op)) for op in ops]
        cuts = self._cuts
        plan = self._plan(ops)
        applied = [op for i, op in enumerate(ops[: plan.applied]) if i < plan.completed or isinstance(op, _WRITES)]
        results = await self._perform(applied)
        if plan.expire:
            await self._inner.expire()
            results += await self._perform(ops[plan.completed :])
        elif self._cuts != cuts:
            results = []  # another call has cut the connection
        elif plan.completed < len(ops):
            del results[plan.completed :]
            self._take(ops, results)
            self.disconnect()
            return results + [t.ConnectionLoss(path_of(op)) for op in ops[len(results) :]]
        self._take(ops, results)
        return results + [t.ConnectionLoss(path_of(op)) for op in ops[len(results) :]]

    # --- plans

    def _refuse(self) -> bool:
        """Count one refusal; True if it brings the connection back."""
        self._refusals += 1
        if self._refusals > self._refusals_max:
            self.reconnect()
        return not self._cut

    def _plan(self, ops: Sequence[t.Operation]) -> _Outcome:
        for index, op in enumerate(ops):
            requested = self._requested_fault(op)
            if requested is None:
                continue
            fault = requested[0]
            if fault is None:
                return _Outcome(index, index, expire=True)
            return _Outcome(index, index + 1 if fault else index)
        return self._random_plan(ops)

    def _requested_fault(self, op: t.Operation) -> tuple[bool | None] | None:
        for i, (match, fault) in enumerate(self._requested):
            if match(op):
                del self._requested[i]
                return (fault,)
        return None

    def _random_plan(self, ops: Sequence[t.Operation]) -> _Outcome:
        for index in range(len(ops)):
            draw = self._random.random()
            if draw < self.rates.cut:
                return _Outcome(index, self._random.randint(index, len(ops)))
            if draw < self.rates.cut + self.rates.expire:
                return _Outcome(index, index, expire=True)
        return _Outcome(len(ops), len(ops))

    async def _perform(self, ops: Sequence[t.Operation]) -> list[t.Result | t.TreeError]:
        watched = [op.path for op in ops if isinstance(op, t.Get | t.Exists | t.Children) and op.watch]
        self._in_flight.update(watched)
        try:
            return await self._inner.submit_many(ops)
        finally:
            self._in_flight.subtract(watched)

    def _take(self, ops: Sequence[t.Operation], results: list[t.Result | t.TreeError]) -> None:
        """Deliver the delayed events before the results arrive, then note the watches that the results set."""
        if results:
            self.release()
        for op, result in zip(ops, results, strict=False):
            self._watches.keep(op, result)
        if results:
            self.release()

    def _on_event(self, event: TreeEvent) -> None:
        if isinstance(event, SessionEvent):
            self._on_session_event(event)
            return
        late = self.rates.late_watch and self._random.random() < self.rates.late_watch
        if self._cut or late or self._delayed or self._is_early(event):
            self._delayed.append(event)
            if self._later is not None:
                self._later(self.release)
        else:
            self._deliver(event)

    def _is_early(self, event: TreeEvent) -> bool:
        """Whether the event is of a watch whose result the caller has not received yet."""
        if not isinstance(event, WatchEvent) or self._watches.would_fire(event.type, event.path):
            return False
        return self._in_flight[event.path] > 0

    def _on_session_event(self, event: SessionEvent) -> None:
        if event.type in (SessionState.EXPIRED, SessionState.AUTH_FAILED):
            self._cut = False
            self._delayed.clear()
            self._watches.clear()
        if not self._cut:
            self._deliver(event)

    def _deliver(self, event: TreeEvent) -> None:
        if isinstance(event, WatchEvent) and not self._watches.take(event.type, event.path):
            return  # its result was lost, so the caller knows of no watch
        if self._listener is not None:
            self._listener(event)
