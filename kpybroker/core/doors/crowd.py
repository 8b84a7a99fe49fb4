"""The connections of one server that are of strangers, or wait: so many that they can keep no one out.

A connection *waits* while its client has to send or to take something, and is *busy* while a request of it is handled.
If all seats are taken, a new connection gets that of one that waits: of the address that has most seats, the one that
has waited longest. So a client that opens connections and says nothing pushes out its own, and a connection whose
client speaks at once is served.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from math import inf
from typing import Final

_BITS_OF_A_NETWORK: Final = 64
_WITH_PORT: Final = re.compile(r"(?P<v4>[0-9.]{7,15}):[0-9]{1,5}|\[(?P<v6>[^\]]{2,60})\](?::[0-9]{1,5})?")


class Seat:
    """One connection's. `close` ends the connection; it must not call the crowd."""

    __slots__ = ("_address", "_since", "close")

    def __init__(self, address: str, close: Callable[[], None], now: float) -> None:
        self._address = address
        self._since = now
        self.close = close

    def wait(self, now: float) -> None:
        """The client is to do something, from now on."""
        self._since = now

    def be_busy(self) -> None:
        """A request is handled: it keeps its seat."""
        self._since = inf

    @property
    def address(self) -> str:
        """The client's."""
        return self._address

    @property
    def waits_since(self) -> float:
        """When its client was last heard; infinite while it is busy."""
        return self._since


class Crowd:
    """At most `seats_max` connections."""

    def __init__(self, seats_max: int) -> None:
        self.seats_max: Final = seats_max
        self._seats: dict[Seat, None] = {}
        self._of_address: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._seats)

    def enter(self, address: str, close: Callable[[], None], now: float) -> Seat | None:
        """A seat, which may be another one's, whose `close` is called; None where all others are busy."""
        if len(self._seats) >= self.seats_max:
            longest = self._longest()
            if longest is None:
                return None
            self.leave(longest)
            longest.close()
        seat = Seat(network_of(address), close, now)
        self._seats[seat] = None
        self._of_address[seat.address] = self._of_address.get(seat.address, 0) + 1
        return seat

    def leave(self, seat: Seat) -> None:
        """The connection has ended, or is one of strangers no more. A second call does nothing."""
        if seat not in self._seats:
            return
        del self._seats[seat]
        left = self._of_address.pop(seat.address) - 1
        if left:
            self._of_address[seat.address] = left

    def _longest(self) -> Seat | None:
        waiting = (seat for seat in self._seats if seat.waits_since != inf)
        return max(waiting, key=lambda seat: (self._of_address[seat.address], -seat.waits_since), default=None)


def network_of(address: str) -> str:
    """What counts as one address: an IPv4 address, or the /64 that one machine has in IPv6. Without a port, which some
    proxies write behind it."""
    with_port = _WITH_PORT.fullmatch(address)
    try:
        found = ip_address((with_port["v4"] or with_port["v6"] if with_port else address).partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return f"{IPv6Address(int(found) >> _BITS_OF_A_NETWORK << _BITS_OF_A_NETWORK)}/{_BITS_OF_A_NETWORK}"
    return str(found)
