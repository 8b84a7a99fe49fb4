"""The broker's clock: what Kafka remembers gets older by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import datetime

    from kpybroker.testing.running.channel import Channel


class BrokerClock:
    """`broker.clock`. Sessions, transactions, retention, compaction and producer ids follow it; clients do not."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, milliseconds: float = 0
    ) -> None:
        """Move it forward. Every timer that is due runs, in order of its time, before this returns.

        A long poll of a client does not end, and no request between brokers times out: only the broker's time moves.
        """
        total = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + milliseconds
        self._channel.call("advance", ms=round(total))

    def now_ms(self) -> int:
        """Milliseconds since the epoch, as in the time stamps of records that it appends."""
        now: int = self._channel.call("clock")["now_ms"]
        return now

    def now(self) -> datetime.datetime:
        """The time, in UTC."""
        import datetime

        return datetime.datetime.fromtimestamp(self.now_ms() / 1000, datetime.UTC)

    @property
    def ahead_ms(self) -> int:
        """How far it is ahead of the machine's clock."""
        ahead: int = self._channel.call("clock")["ahead_ms"]
        return ahead
