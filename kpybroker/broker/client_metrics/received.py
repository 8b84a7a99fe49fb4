"""What clients have pushed: decoded off the loop, kept as the last value of each series, and read by one query.

Only `clients` and `series` read it: `/metrics`, OTLP, the console and the test kit have nothing else. The table is made
with the first push, which also imports what reads OTLP: `packages.available` says whether that can be.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import trio

from kpybroker.broker.client_metrics.receiver import InvalidMetrics, Pushed

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.metrics.clients.decoding import Decoded
    from kpybroker.metrics.clients.series import Client
    from kpybroker.metrics.clients.table import ClientTable

logger = logging.getLogger("kafka.server.ClientMetricsManager")

TEXT_CHARS_MAX: Final = 256
"""Of what the broker knows of a client; more is cut off."""
LOG_INTERVAL_S: Final = 60.0


class ReceivedMetrics:
    """The `Receiver` of a broker. `host` is its broker."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._table: ClientTable | None = None
        self._changed = trio.Event()
        self._quiet_until = 0.0

    async def receive(self, pushed: Pushed) -> None:
        """Take a push. Raises InvalidMetrics."""
        decoded = await self._host.slow_work.run(pushed.address, partial(_decoded, pushed.metrics))
        if isinstance(decoded, str):
            raise InvalidMetrics(decoded)
        from kpybroker.metrics.clients.table import ClientTable, Push

        if self._table is None:
            self._table = ClientTable()
        push = Push(
            instance_id=pushed.instance_id,
            client_id=pushed.client_id[:TEXT_CHARS_MAX],
            software_name=pushed.software_name[:TEXT_CHARS_MAX],
            software_version=pushed.software_version[:TEXT_CHARS_MAX],
            address=pushed.address,
            interval_ms=pushed.interval_ms,
            is_last=pushed.terminating,
        )
        client = self._table.push(push, decoded.resource, decoded.samples, decoded.left_out, self._now_ms)
        if client.left_out:
            self._warn(client)
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    def clients(self) -> list[Client]:
        """The clients that have pushed, without their series; those that pushed longest ago first."""
        return [] if self._table is None else self._table.clients(self._now_ms)

    def series(self, client_id: str | None = None, name: str | None = None) -> Iterator[Client]:
        """Those clients with their series: of this client id, of this name. Each step is about a millisecond."""
        return iter(()) if self._table is None else self._table.series(self._now_ms, client_id, name)

    async def wait_push(self) -> None:
        """Return after the next push."""
        await self._changed.wait()

    @property
    def _now_ms(self) -> int:
        return self._host.clock.time_ms()

    def _warn(self, client: Client) -> None:
        """A line a minute at most."""
        now = self._host.clock.monotonic()
        if now >= self._quiet_until:
            self._quiet_until = now + LOG_INTERVAL_S
            text = "Client %r at %s pushed %d values that are not kept: they are too many, twice the same, or malformed"
            logger.warning(text, client.client_id, client.address, client.left_out)


def _decoded(metrics: bytes) -> Decoded | str:
    """In a thread, the import as well: it takes longer than a push. A text for what is not OTLP.

    The error is not raised there: an exception that passes from thread to thread is part of a reference cycle.
    """
    from kpybroker.metrics.clients.decoding import NotOtlp, decode

    try:
        return decode(metrics)
    except NotOtlp as error:
        return str(error)


Query: TypeAlias = "Callable[[], Iterator[Client]]"
"""All clients with all their series: what `/metrics` and OTLP read."""
