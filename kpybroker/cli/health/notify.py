"""Reports to the service manager when the broker is ready and when it stops: systemd's `Type=notify`.

The protocol is that of sd_notify(3): one datagram to the socket that NOTIFY_SOCKET names. Without that variable nothing
happens. A broker that is embedded in another program never comes here.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

logger = logging.getLogger("kafka.server.KafkaServer")

SEND_SECONDS_MAX = 1.0
STOPPING = "STOPPING=1\nSTATUS=Shutting down"


def ready(address: str) -> str:
    """The state of a broker that serves at `address`."""
    return f"READY=1\nSTATUS=Serving at {address}"


def notify(state: str, environment: Mapping[str, str] = os.environ) -> None:
    """Send `state`. A failure is logged, since the service manager would end the broker without a reason in its log."""
    path = environment.get("NOTIFY_SOCKET", "")
    if not path:
        return
    import socket

    family = getattr(socket, "AF_UNIX", None)  # not on Windows, where no service manager asks for this
    if family is None:
        return

    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sender:
            sender.settimeout(SEND_SECONDS_MAX)
            sender.connect("\0" + path[1:] if path.startswith("@") else path)  # @ is Linux's abstract namespace
            sender.sendall(state.encode())
    except OSError as error:
        logger.warning("The service manager at NOTIFY_SOCKET=%s could not be notified: %s", path, error)
