"""The budget of what clients build in memory: its limits from the configuration, one log line a minute when full."""

from __future__ import annotations

import logging
import time

from kpybroker.broker.requests.clients import shown
from kpybroker.config.broker import BrokerConfig
from kpybroker.core.budget import Owner, StateBudget, StateLimits

logger = logging.getLogger("kafka.server.KafkaServer")

LOG_INTERVAL_S = 60.0


def state_budget(config: BrokerConfig) -> StateBudget:
    """A budget with the broker's `kpybroker.max.state.bytes` keys."""
    limits = StateLimits(
        total=config.get_int("kpybroker.max.state.bytes"),
        address=config.get_int("kpybroker.max.state.bytes.per.ip"),
        principal=config.get_int("kpybroker.max.state.bytes.per.principal"),
    )
    return StateBudget(limits, _Refusals())


class _Refusals:
    """Counts what is refused, and logs it once a minute."""

    __slots__ = ("_count", "_quiet_until")

    def __init__(self) -> None:
        self._count = 0
        self._quiet_until = 0.0

    def __call__(self, owner: Owner, size: int) -> None:
        self._count += 1
        now = time.monotonic()
        if now < self._quiet_until:
            return
        logger.warning(
            "Requests are refused because groups, offsets, transactional ids and fetch sessions take as much memory as "
            "kpybroker.max.state.bytes and its keys for one address and one principal allow "
            "(%d since the last such line; the last one of %s, for %d bytes)",
            self._count,
            shown(str(owner)),
            size,
        )
        self._count, self._quiet_until = 0, now + LOG_INTERVAL_S
