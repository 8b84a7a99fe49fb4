"""How many connections there may be, and how fast they may be opened: of the broker, a listener, an address.

Kafka's ``ConnectionQuotas``. Numbers (`max.connections`, also of one listener): at the limit accepting pauses; the
listener between brokers is not bound by the broker's number where there is another one, which then gives up the
connection that was idle longest. Of one address (`max.connections.per.ip`, with overrides, which may name a host): the
new one is closed. Hosts are looked up once, by the first connection after a change.

Rates (`max.connection.creation.rate`, also of one listener): accepting pauses until the rate is down again, at most for
one window. Of one address (`connection_creation_rate`, KIP-612): the new connection is closed, after the time that
would have brought the rate down, and does not count. At most `DELAYED_MAX` connections wait to be closed; further ones
are closed at once. A rate without a limit is not counted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import trio

from kpybroker.core.line_limit import about_client
from kpybroker.core.rate import Rate

if TYPE_CHECKING:
    from kpybroker.broker.loop.clock import Clock
    from kpybroker.broker.network.transport import Stream
    from kpybroker.broker.requests.connection import Connection
    from kpybroker.config.broker import BrokerConfig

logger = logging.getLogger("kafka.network.SocketServer")

UNLIMITED: Final = 2**31 - 1
RATES_MAX: Final = 10_000
"""Addresses whose rate is remembered; the one that connected longest ago is forgotten first."""

DELAYED_MAX: Final = 1_000


async def resolve(name: str) -> str:
    """The first address of a host; an address is its own. Raises OSError."""
    try:
        found = await trio.socket.getaddrinfo(name, None, type=trio.socket.SOCK_STREAM)
    except ValueError as error:  # a label that is too long, a null character
        raise OSError(f"{name!a} is not the name of a host: {error}") from None
    return str(found[0][4][0])


class ConnectionLimits:
    """The open connections, counted, and what is allowed of them. Limits are live: the next connection sees a change.

    A listener calls `wait_for_slot`, accepts, and calls `admit`. What is served is counted from `opened` to `closed`.
    """

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._listeners = 0
        self._total = 0
        self._of_listener: dict[str, int] = {}
        self._of_address: dict[str, int] = {}
        self._overrides: tuple[tuple[str, ...], dict[str, int]] = ((), {})  # as configured, and by address
        self._slot_freed = trio.Event()
        self._rate: Rate | None = None  # of the broker
        self._listener_rates: dict[str, Rate] = {}
        self._address_rates: dict[str, Rate] = {}
        self._default_ip_rate: int | None = None
        self._ip_rates: dict[str, int] = {}
        self.host_rates: dict[str, int | None] = {}
        """The rates of addresses and hosts as they are configured; None for one that had a rate."""
        self._delayed = 0
        config.on_change(self._look_for_slots)

    def listen(self, listeners: int) -> None:
        """So many listeners share the limits."""
        self._listeners = listeners

    def set_default_ip_rate(self, rate: int | None) -> None:
        """Connections a second of each address that has no rate of its own; None: without limit."""
        self._default_ip_rate = rate

    def set_ip_rate(self, address: str, rate: int | None) -> None:
        """Connections a second of one address; None: the default."""
        if rate is None:
            self._ip_rates.pop(address, None)
        else:
            self._ip_rates[address] = rate

    # --- numbers

    def opened(self, listener: str, address: str) -> None:
        """A connection is served from now on."""
        self._total += 1
        self._of_listener[listener] = self._of_listener.get(listener, 0) + 1
        self._of_address[address] = self._of_address.get(address, 0) + 1

    def closed(self, listener: str, address: str) -> None:
        """It has ended."""
        self._total -= 1
        for counts, key in ((self._of_listener, listener), (self._of_address, address)):
            counts[key] -= 1
            if not counts[key]:
                del counts[key]
        self._look_for_slots()

    def to_give_up(self, connections: Iterable[Connection]) -> list[Connection]:
        """The connections above `max.connections`: those idle longest, of listeners that are not protected."""
        excess = self._total - self._config.get_int("max.connections")
        if excess <= 0:
            return []
        candidates = [one for one in connections if not self.is_protected(one.listener_name)]
        ending = sum(one.scope.cancel_called for one in candidates)
        candidates = [one for one in candidates if not one.scope.cancel_called]
        candidates.sort(key=lambda one: one.idle_rank)
        return candidates[: max(excess - ending, 0)]

    def is_protected(self, listener: str) -> bool:
        """Whether it is the listener between brokers, and not the only one: the limits of the broker do not bind it."""
        return self._listeners > 1 and listener == self._config.inter_broker_listener_name

    async def wait_for_slot(self, listener: str) -> bool:
        """Wait while `max.connections` are open, of the listener or of the broker. Whether there was a wait."""
        waited = False
        while not self._has_slot(listener):
            waited = True
            await self._slot_freed.wait()
        return waited

    def _has_slot(self, listener: str) -> bool:
        config = self._config
        of_listener = config.get_int(f"listener.name.{listener.lower()}.max.connections")
        if self._of_listener.get(listener, 0) >= of_listener:
            return False
        return self.is_protected(listener) or self._total < config.get_int("max.connections")

    def _look_for_slots(self, _changed: frozenset[str] = frozenset()) -> None:
        """A connection has ended, or a limit may be higher: each listener at the limit looks again."""
        self._slot_freed.set()
        self._slot_freed = trio.Event()

    async def _has_too_many(self, address: str) -> bool:
        configured = self._config.get_list("max.connections.per.ip.overrides")
        if configured != self._overrides[0]:
            self._overrides = (configured, await _by_address(configured))
        limit = self._overrides[1].get(address, self._config.get_int("max.connections.per.ip"))
        if self._of_address.get(address, 0) < limit:
            return False
        text = "Rejected connection from /%s, address already has the configured maximum of %d"
        logger.info(text, address, limit, extra=about_client(address))
        return True

    # --- rates

    async def admit(self, listener: str, address: str, stream: Stream) -> float | None:
        """Wait as long as the rates want. None: it is accepted; otherwise it must be closed, after so many seconds.

        A connection whose wait is cancelled is closed.
        """
        try:
            return await self._admit(listener, address)
        except BaseException:
            stream.close()
            raise

    async def _admit(self, listener: str, address: str) -> float | None:
        now_ms = self._clock.time_ms()
        counted = self._rates_of(listener)
        wait_ms = max((self._count(rate, limit, now_ms) for rate, limit in counted), default=0)
        if wait_ms > 0:
            logger.debug("Connections of listener %s are opened too fast: wait_ms=%d", listener, wait_ms)
            await trio.sleep(wait_ms / 1000)
            await self.wait_for_slot(listener)
        delay_ms = self._throttle_address(address)
        if delay_ms > 0:
            logger.debug("Delaying closing of connection from /%s for %d ms", address, delay_ms)
            for rate, _ in counted:
                rate.record(-1, now_ms)
            return delay_ms / 1000
        return 0 if await self._has_too_many(address) else None

    def _rates_of(self, listener: str) -> list[tuple[Rate, int]]:
        """The rates that a connection counts for, with their limits."""
        counted = []
        limit = self._config.get_int("max.connection.creation.rate")
        if limit != UNLIMITED and not self.is_protected(listener):
            self._rate = self._rate or self._new_rate()
            counted.append((self._rate, limit))
        limit = self._config.get_int(f"listener.name.{listener.lower()}.max.connection.creation.rate")
        if limit != UNLIMITED:
            counted.append((self._listener_rates.setdefault(listener, self._new_rate()), limit))
        return counted

    def _throttle_address(self, address: str) -> int:
        """Count it for its address, unless that is too fast already."""
        limit = self._ip_rates.get(address, self._default_ip_rate)
        if limit is None or limit == UNLIMITED:
            return 0
        rate = self._address_rates.pop(address, None) or self._new_rate()
        while len(self._address_rates) >= RATES_MAX:
            del self._address_rates[next(iter(self._address_rates))]
        self._address_rates[address] = rate
        now_ms = self._clock.time_ms()
        delay_ms = self._count(rate, limit, now_ms)
        if delay_ms > 0:
            rate.record(-1, now_ms)
        return delay_ms

    def _new_rate(self) -> Rate:
        return Rate(self._config.get_int("quota.window.num"), self._window_ms)

    @property
    def _window_ms(self) -> int:
        return self._config.get_int("quota.window.size.seconds") * 1000

    def _count(self, rate: Rate, limit: int, now_ms: int) -> int:
        from kpybroker.core.security.quotas import throttle_ms  # of brokers with such a limit only

        rate.record(1, now_ms)
        return throttle_ms(rate, limit, now_ms, self._window_ms)

    # --- connections that are not accepted

    async def close_later(self, stream: Stream, delay_s: float) -> None:
        """Close it after the delay, so that its client does not try again at once."""
        if self._delayed >= DELAYED_MAX:
            stream.close()
            return
        self._delayed += 1
        try:
            await trio.sleep(delay_s)
        finally:
            self._delayed -= 1
            stream.close()


async def _by_address(overrides: Iterable[str]) -> dict[str, int]:
    """The limits of `host:number`s by address. A host that has none is reported and left out."""
    limits: dict[str, int] = {}
    for entry in overrides:
        name, _, value = entry.rpartition(":")
        try:
            limits[await resolve(name)] = int(value)
        except OSError as error:
            logger.error("Cannot limit the connections of %s (max.connections.per.ip.overrides): %s", name, error)
    return limits
