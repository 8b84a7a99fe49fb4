"""A report every so often. Nothing is queued: after a report that failed, the next one has the values of its own time.

A report that fails is logged once, and the first that arrives again once more. Retries are at first a second apart,
then twice as far each time, up to `BACKOFF_S_MAX`, whatever the interval is.
"""

from __future__ import annotations

import errno
import logging
import os
import ssl
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host

logger = logging.getLogger("kafka.server.KafkaServer")

BACKOFF_S: Final = 1.0
BACKOFF_S_MAX: Final = 30.0


class ReportError(Exception):
    """A report did not arrive; `str()` is why, in a few words."""


class Periodic:
    """Calls `report`, which raises ReportError, every `interval_s`.

    `place` is where reports go, `fix` what to do when they do not arrive; both are logged, so neither holds a secret.
    """

    def __init__(
        self, host: Host, interval_s: float, report: Callable[[], Awaitable[None]], place: str, fix: str
    ) -> None:
        self.place = place
        self._host = host
        self._interval_s = interval_s
        self._report = report
        self._fix = fix
        self._failures = 0
        self._failed_at = 0.0

    async def run(self) -> None:
        """Report until cancelled, for the first time after one interval."""
        clock, interval_s = self._host.clock, self._interval_s
        logger.info("[KafkaServer id=%d] Metrics go to %s every %g s", self._host.node_id, self.place, interval_s)
        due = clock.monotonic() + interval_s
        while True:
            await clock.pause(max(due - clock.monotonic(), 0.0))
            arrived = await self._attempt()
            now = clock.monotonic()
            if arrived:
                due += interval_s * (max(now - due, 0.0) // interval_s + 1)
            else:
                due = now + min(BACKOFF_S * 2 ** min(self._failures - 1, 10), BACKOFF_S_MAX)

    async def _attempt(self) -> bool:
        """Whether it arrived."""
        node_id, now = self._host.node_id, self._host.clock.monotonic()
        try:
            await self._report()
        except ReportError as error:
            if not self._failures:
                self._failed_at = now
                text = "[KafkaServer id=%d] Metrics do not arrive at %s: %s. It is tried again; to fix: %s"
                logger.warning(text, node_id, self.place, error, self._fix)
            self._failures += 1
            return False
        if self._failures:
            text = "[KafkaServer id=%d] Metrics arrive at %s again, after %d s"
            logger.info(text, node_id, self.place, now - self._failed_at)
            self._failures = 0
        return True


def reason(error: BaseException) -> str:
    """Why a connection failed, as the system says it: libraries wrap that, and repeat the address.

    Of several addresses it is the first that was tried.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        if isinstance(cause, ssl.SSLError):
            return str(cause)
        if isinstance(cause, OSError) and cause.errno is not None and cause.errno in errno.errorcode:
            return os.strerror(cause.errno)
        cause = cause.__cause__ or cause.__context__
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
