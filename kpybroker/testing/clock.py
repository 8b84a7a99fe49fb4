"""The broker's clock: what Kafka remembers gets older by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kpybroker.testing.checking import kinds
from kpybroker.testing.checking.calls import checked
from kpybroker.testing.errors import UsageError

if TYPE_CHECKING:
    import datetime

    from kpybroker.testing.running.channel import Channel


MS_MAX: Final = 100 * 365 * 24 * 3_600_000
_TIME: Final = kinds.number(-MS_MAX, MS_MAX)


class BrokerClock:
    """`broker.clock`. Sessions, transactions, retention, compaction and producer ids follow it; clients do not."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    @checked(days=_TIME, hours=_TIME, minutes=_TIME, seconds=_TIME, milliseconds=_TIME)
    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, milliseconds: float = 0
    ) -> None:
        """Move it forward. Every timer that is due runs, in order of its time, before this returns.

        A long poll of a client does not end, and no request between brokers times out: only the broker's time moves.
        """
        total = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + milliseconds
        if not 1 <= round(total) <= MS_MAX:
            given = "by nothing" if not total else f"by {total:g} ms"
            raise UsageError(f"advance(): the clock would move {given}", "move it forward, by a hundred years at most")
        self._channel.call("advance", ms=round(total))

    @checked()
    def now_ms(self) -> int:
        """Milliseconds since the epoch, as in the time stamps of records that it appends."""
        now: int = self._channel.call("clock")["now_ms"]
        return now

    @checked()
    def now(self) -> datetime.datetime:
        """The time, in UTC."""
        import datetime

        return datetime.datetime.fromtimestamp(self.now_ms() / 1000, datetime.UTC)

    @property
    def ahead_ms(self) -> int:
        """How far it is ahead of the machine's clock."""
        ahead: int = self._channel.call("clock")["ahead_ms"]
        return ahead
