"""Graphite's plaintext protocol over TCP: one connection a report, as `KafkaGraphiteMetricsReporter` does.

The connection is made before the broker is read, so that a server which is down costs nothing. What has been read is
written in slices, and sent as it is written: a slow server holds one reading, for `REPORT_S`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

import trio

from kpybroker.broker.metrics.reporters.periodic import ReportError, reason
from kpybroker.metrics.graphite import Layout, lines

if TYPE_CHECKING:
    from kpybroker.broker.loop.clock import Clock
    from kpybroker.broker.metrics.ticker import Ticker
    from kpybroker.metrics.reading import Reading

REPORT_S: Final = 30.0
"""Of the machine's time: to connect, to read and to send."""
PIECE_CHARS: Final = 64 << 10


class GraphiteReporter:
    """Sends to `host`:`port`. `read` reads the broker."""

    def __init__(
        self,
        host: str,
        port: int,
        layout: Layout,
        read: Callable[[], Awaitable[Sequence[Reading]]],
        ticker: Ticker,
        connect: Callable[[str, int], Awaitable[trio.abc.Stream]] = trio.open_tcp_stream,
    ) -> None:
        self._address = host, port
        self._layout = layout
        self._read = read
        self._ticker = ticker
        self._connect = connect

    async def report(self) -> None:
        """Send one reading. Raises ReportError."""
        try:
            with trio.fail_after(REPORT_S):
                async with await self._connect(*self._address) as stream:
                    await self._send(stream)
        except trio.TooSlowError:
            raise ReportError(f"it took longer than {REPORT_S:g} s") from None
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise ReportError(reason(error)) from None

    async def _send(self, stream: trio.abc.Stream) -> None:
        readings = await self._read()
        clock: Clock = self._ticker.clock
        waiting: list[str] = []
        size = 0
        now_s, epoch_s = clock.monotonic(), clock.time_ms() // 1000
        for text in lines(readings, self._layout, self._ticker.rates, now_s, epoch_s):
            waiting.append(text)
            size += len(text)
            if size >= PIECE_CHARS:
                await stream.send_all("".join(waiting).encode())
                waiting, size = [], 0
            else:
                await trio.lowlevel.checkpoint()
        await stream.send_all("".join(waiting).encode())
