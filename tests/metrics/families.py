"""All families, by area."""

from __future__ import annotations

from typing import Final

from kpybroker.metrics.mbeans import Family
from kpybroker.metrics.tables import (
    client_metrics,
    controller,
    coordinators,
    exporter,
    log,
    network,
    process,
    replication,
    requests,
    server,
    share,
    topics,
)

AREAS: Final[dict[str, tuple[Family, ...]]] = {
    "Traffic by topic": topics.FAMILIES,
    "Requests": requests.FAMILIES,
    "Network and event loop": network.FAMILIES,
    "Replication": replication.FAMILIES,
    "Logs": log.FAMILIES,
    "Controller": controller.FAMILIES,
    "Groups": coordinators.FAMILIES,
    "Share groups": share.FAMILIES,
    "Metrics of clients": client_metrics.FAMILIES,
    "Broker": server.FAMILIES,
    "As kafka_exporter": exporter.FAMILIES,
    "Process": process.FAMILIES,
}
FAMILIES: Final[tuple[Family, ...]] = tuple(family for families in AREAS.values() for family in families)
