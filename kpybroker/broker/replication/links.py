"""How replication reaches other brokers: connections to leaders, and the channel to the controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kpybroker.broker.peers.connection import PeerConnection
    from kpybroker.broker.peers.controller_channel import ControllerChannel


class Links(NamedTuple):
    """Handed in by the broker. Nothing is imported or connected before the first call."""

    connection_to: Callable[[int, str], PeerConnection]
    """A new connection to the broker with this id, under this client id."""
    controller_channel: Callable[[str], ControllerChannel]
    """A new channel to the controller; the name is for the log."""
