"""What the controller's requests share: for which registration of this broker they are."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

logger = logging.getLogger("kafka.server.KafkaApis")

UNKNOWN_BROKER_EPOCH = -1


def is_stale(broker: Broker, broker_epoch: int, controller_id: int, controller_epoch: int, name: str) -> bool:
    """Whether the request was meant for an earlier registration of this broker (KIP-380).

    A broker that restarts quickly may receive requests for its earlier registration. A newer epoch than its own is
    fine: the controller sees a registration before the broker receives the response to it.
    """
    current = broker.broker_epoch
    if broker_epoch == UNKNOWN_BROKER_EPOCH or broker_epoch >= current:
        return False
    logger.info(
        "Received %s request with broker epoch %d smaller than the current broker epoch %d from controller %d with "
        "epoch %d.",
        name,
        broker_epoch,
        current,
        controller_id,
        controller_epoch,
    )
    return True
