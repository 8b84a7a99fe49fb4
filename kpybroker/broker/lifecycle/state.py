"""What a broker is doing, with the numbers of Kafka's `BrokerState`."""

from __future__ import annotations

from enum import IntEnum


class BrokerState(IntEnum):
    """In the order of a broker's life."""

    NOT_RUNNING = 0
    STARTING = 1
    """It opens the tree, and waits for it."""
    RECOVERY = 2
    """Its logs are loaded; it registers and waits for a controller."""
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    """A stop is requested: it hands over what it leads."""
    SHUTTING_DOWN = 7
