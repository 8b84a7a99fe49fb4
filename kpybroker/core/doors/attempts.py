"""Wrong passwords, and who has to wait for them: an address, and a name from addresses that it has not been used at.

- *By address*: an address that has sent too many wrong passwords waits, whatever the names are.
- *By name*: a name for which too many were sent, from wherever, waits too; but not at an address where it has logged in
  lately, so that strangers who guess cannot lock its user out.

There is no limit for all together: guesses of some never make others wait. Each table is bounded; where one is full,
the oldest entry goes. A failure is worth a place in a bucket that empties steadily: after `failures` of them the next
place is free `per_s / failures` later.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple, TypeVar

from kpybroker.core.doors.crowd import network_of

ENTRIES_MAX: Final = 10_000

K = TypeVar("K")
V = TypeVar("V")


class Rules(NamedTuple):
    """So many wrong passwords in so many seconds. No limit by name: where there is one name for all."""

    of_address: int = 10
    of_name: int | None = 100
    per_s: float = 60.0
    known_s: float = 24 * 3600.0
    """How long an address at which a name has logged in counts as its user's."""


DEFAULT: Final = Rules()


class Attempts:
    """The wrong passwords of one door."""

    def __init__(self, rules: Rules = DEFAULT, entries_max: int = ENTRIES_MAX) -> None:
        self._rules = rules
        self._entries_max = entries_max
        self._addresses: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._names: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._known: OrderedDict[tuple[str, str], float] = OrderedDict()

    def wait_s(self, address: str, name: str, now: float) -> float:
        """How long this client has to wait before a password of it is looked at; 0: not at all."""
        rules, network = self._rules, network_of(address)
        waits = self._wait_s(self._addresses.get(network), rules.of_address, now)
        if rules.of_name is None or now < self._known.get((network, name), now):
            return waits
        return max(waits, self._wait_s(self._names.get(name), rules.of_name, now))

    def failed(self, address: str, name: str, now: float) -> None:
        """A password was wrong, or the name is no one's."""
        self._add(self._addresses, network_of(address), self._rules.of_address, now)
        if self._rules.of_name is not None:
            self._add(self._names, name, self._rules.of_name, now)

    def succeeded(self, address: str, name: str, now: float) -> None:
        """A password was right. Wrong ones from the same address still count: it may be shared."""
        if self._rules.of_name is not None:
            self._put(self._known, (network_of(address), name), now + self._rules.known_s)

    def _wait_s(self, entry: tuple[float, float] | None, failures: int, now: float) -> float:
        if entry is None:
            return 0.0
        return max(0.0, (self._level(entry, failures, now) + 1 - failures) * self._rules.per_s / failures)

    def _level(self, entry: tuple[float, float] | None, failures: int, now: float) -> float:
        """How many wrong passwords are in the bucket now, of a level at a time."""
        if entry is None:
            return 0.0
        level, at = entry
        return max(0.0, level - (now - at) * failures / self._rules.per_s)

    def _add(self, table: OrderedDict[str, tuple[float, float]], key: str, failures: int, now: float) -> None:
        level = min(self._level(table.get(key), failures, now) + 1, failures)
        self._put(table, key, (level, now))

    def _put(self, table: OrderedDict[K, V], key: K, value: V) -> None:
        table[key] = value
        table.move_to_end(key)
        if len(table) > self._entries_max:
            table.popitem(last=False)
