"""The process: its brokers, its log, its end."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kpybroker import __version__
from kpybroker.control.errors import ControlError
from kpybroker.control.levers.leadership import active_controller, awake
from kpybroker.control.levers.topology import Topology
from kpybroker.control.log_ring import LINES_MAX, LogRing
from kpybroker.control.registry import JSON, methods

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.control.hosted import Hosted


async def status(hosted: Hosted) -> JSON:
    """Version and process id, and each broker: its state, its listeners, its log directories, its metrics."""
    up = next(iter(hosted.brokers.values()), None)
    controller = active_controller(awake(hosted))
    return {
        "version": __version__,
        "pid": os.getpid(),
        "cluster_id": None if up is None else up.cluster_id,
        "controller": None if controller is None else controller.node_id,
        "brokers": [broker_status(hosted, broker_id) for broker_id in hosted.ids],
    }


def broker_status(hosted: Hosted, broker_id: int) -> JSON:
    """State, listeners, log directories and metrics of one broker. Raises ControlError."""
    broker = hosted.brokers.get(broker_id)
    config = hosted.plan(broker_id).config()
    return {
        "id": broker_id,
        "state": _state(hosted, broker),
        "listeners": _listeners(broker) if broker else [],
        "rack": config.get_str("broker.rack") or None,
        "log_dirs": list(config.log_dirs),
        "metrics": broker.metrics.url if broker is not None and broker.metrics is not None else None,
    }


def _state(hosted: Hosted, broker: Broker | None) -> str:
    if broker is None:
        return "down"
    return "paused" if hosted.part(Topology).is_paused(broker.node_id) else "up"


def _listeners(broker: Broker) -> JSON:
    return [
        {"name": bound.name, "host": bound.listener.address[0], "port": bound.listener.address[1]}
        for bound in broker.bound
    ]


async def reset(hosted: Hosted) -> JSON:
    """Remove all faults, resume what is paused, heal the network. The clock and the data stay as they are."""
    await hosted.reset()


async def log(hosted: Hosted, lines: int = 200) -> JSON:
    """The last log lines of the process, oldest first."""
    if not 0 < lines <= LINES_MAX:
        raise ControlError(f"log: `lines` is {lines}", f"give 1 to {LINES_MAX}")
    return hosted.part(LogRing).last(lines)


async def stop(hosted: Hosted) -> JSON:
    """Stop all brokers in order and end the process."""
    hosted.stop()


METHODS = methods(status, reset, log, stop)
