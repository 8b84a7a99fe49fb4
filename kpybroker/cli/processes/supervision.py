"""When the process of a broker is started, ended, started again and given up: a state machine without processes.

Rules:

* the first broker, which serves the tree, is started before the others, and they only while it is ready. With a
  ZooKeeper elsewhere there is no first one, and all are started together;
* until all have been ready once, the end of any is the end of all, with its exit code: something is wrong that another
  start would meet too;
* after that, a process that ends is started again, whatever its end: at once if it had run for a while, later and later
  if it keeps ending. `FINAL_CODES` end all, since they need a person;
* the tree learns of a broker whose process has ended, so that its session ends now, not when it times out;
* the stop of a whole cluster hands nothing over: first no controller reacts any more, then all but the first stop, then
  the first. With a ZooKeeper elsewhere they all stop at once, each handing over what it leads.

Times are in seconds of a monotonic clock, and are arguments. Every call returns the actions to take, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple

from kpybroker.broker.lifecycle.errors import EXIT_IDENTITY
from kpybroker.cli.exit_codes import EXIT_CONFIG, EXIT_FAILED, EXIT_OK

FINAL_CODES: Final = (EXIT_CONFIG, EXIT_IDENTITY)
"""Exit codes of a bad configuration, and of the data of another cluster or broker."""

DELAYS_S: Final = (0.0, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Before the first, second... start in a row; the last one from then on."""
STEADY_S: Final = 60.0
"""A process that was ready for as long begins at the first delay again."""
RETIRE_S_MAX: Final = 5.0
"""How long the stop waits for controllers to end."""


class Order(Enum):
    """What the supervisor says to a process."""

    RETIRE = "retire"
    """No longer be, or become, the controller."""
    STOP = "stop"
    ENDED = "ended"
    """The process of another broker has ended."""


class Start(NamedTuple):
    """Start the process of this broker."""

    broker_id: int


class Tell(NamedTuple):
    """Give an order to the process of `broker_id`; `about` is another broker."""

    broker_id: int
    order: Order
    about: int | None = None


class Announce(NamedTuple):
    """All brokers are ready for the first time."""


class Restart(NamedTuple):
    """For the log: it ended with `code`, and is started again in `delay_s`."""

    broker_id: int
    code: int
    delay_s: float


Action = Start | Tell | Announce | Restart


class State(Enum):
    """Of one process."""

    DOWN = auto()
    STARTING = auto()
    UP = auto()


class _Stop(Enum):
    """How far the stop of all is."""

    NOT = auto()
    RETIRING = auto()
    OTHERS = auto()
    LAST = auto()


@dataclass(slots=True)
class _Process:
    state: State = State.DOWN
    starts_at: float = 0.0  # while it is down
    ready_at: float | None = None  # of this process
    failures: int = 0  # in a row
    has_retired: bool = False


class Supervision:
    """`first` is the id of the broker that serves the tree, None with a ZooKeeper elsewhere."""

    def __init__(self, ids: Sequence[int], first: int | None) -> None:
        self._processes = {broker_id: _Process() for broker_id in ids}
        self._first = first
        self._is_announced = False
        self._stop = _Stop.NOT
        self._retire_until = 0.0
        self._code = EXIT_OK

    @property
    def exit_code(self) -> int | None:
        """Of the supervisor; None until it has to end."""
        is_over = self._stop is not _Stop.NOT and not self._running()
        return self._code if is_over else None

    @property
    def deadline(self) -> float | None:
        """When to call `timer`."""
        if self._stop is _Stop.RETIRING:
            return self._retire_until
        if self._stop is not _Stop.NOT:
            return None
        return min((self._processes[one].starts_at for one in self._startable()), default=None)

    def timer(self, now: float) -> list[Action]:
        """The deadline has passed; also called once at the begin."""
        if self._stop is _Stop.RETIRING and now >= self._retire_until:
            return self._stop_others()
        return self._start_due(now)

    def ready(self, broker_id: int, now: float) -> list[Action]:
        """A process has said that its broker is ready."""
        process = self._processes[broker_id]
        process.state, process.ready_at = State.UP, now
        if self._stop is _Stop.RETIRING:
            return [Tell(broker_id, Order.RETIRE)]
        actions = self._start_due(now)
        if not self._is_announced and all(one.state is State.UP for one in self._processes.values()):
            self._is_announced = True
            actions.append(Announce())
        return actions

    def retired(self, broker_id: int) -> list[Action]:
        """A process has done what RETIRE says."""
        self._processes[broker_id].has_retired = True
        return self._go_on()

    def ended(self, broker_id: int, code: int, now: float) -> list[Action]:
        """A process has ended; `code` is minus the signal that ended it, where one did."""
        process = self._processes[broker_id]
        was_ready_for = 0.0 if process.ready_at is None else now - process.ready_at
        process.state, process.ready_at = State.DOWN, None
        if self._stop is not _Stop.NOT:
            return self._go_on()
        if not self._is_announced or code in FINAL_CODES:
            self._code = code if code > 0 else EXIT_FAILED
            return self.stop(now)
        if was_ready_for >= STEADY_S:
            process.failures = 0
        delay_s = DELAYS_S[min(process.failures, len(DELAYS_S) - 1)]
        process.failures += 1
        process.starts_at = now + delay_s
        actions: list[Action] = [Restart(broker_id, code, delay_s)]
        if self._first is not None and broker_id != self._first and self._is_up(self._first):
            actions.append(Tell(self._first, Order.ENDED, broker_id))
        return actions + self._start_due(now)

    def stop(self, now: float) -> list[Action]:
        """End them all, in order."""
        if self._stop is not _Stop.NOT:
            return []
        if self._first is None:
            self._stop = _Stop.LAST
            return [Tell(one, Order.STOP) for one in self._running()]
        self._stop, self._retire_until = _Stop.RETIRING, now + RETIRE_S_MAX
        up = [one for one in self._processes if self._is_up(one)]
        return [Tell(one, Order.RETIRE) for one in up] + self._go_on()

    # --- inside

    def _go_on(self) -> list[Action]:
        """The next step of the stop, if what this one waits for has happened."""
        if self._stop is _Stop.RETIRING:
            if all(one.has_retired for one in self._processes.values() if one.state is State.UP):
                return self._stop_others()
        elif self._stop is _Stop.OTHERS and self._running() == [self._first]:
            return self._stop_first()
        return []

    def _stop_others(self) -> list[Action]:
        others = [one for one in self._running() if one != self._first]
        self._stop = _Stop.OTHERS
        return [Tell(one, Order.STOP) for one in others] if others else self._go_on()

    def _stop_first(self) -> list[Action]:
        assert self._first is not None
        self._stop = _Stop.LAST
        return [Tell(self._first, Order.STOP)]

    def _running(self) -> list[int]:
        return [one for one, process in self._processes.items() if process.state is not State.DOWN]

    def _is_up(self, broker_id: int) -> bool:
        return self._processes[broker_id].state is State.UP

    def _startable(self) -> list[int]:
        has_tree = self._first is None or self._is_up(self._first)
        return [
            one
            for one, process in self._processes.items()
            if process.state is State.DOWN and (has_tree or one == self._first)
        ]

    def _start_due(self, now: float) -> list[Action]:
        if self._stop is not _Stop.NOT:
            return []
        due = [one for one in self._startable() if self._processes[one].starts_at <= now]
        for one in due:
            process = self._processes[one]
            process.state, process.has_retired = State.STARTING, False
        return [Start(one) for one in due]
