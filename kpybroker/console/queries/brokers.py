"""The cluster and its brokers: addresses, versions, controller, disks."""

from __future__ import annotations

from typing import Any

from kpybroker.client.actions.clusters import log_dir_rows, overview
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import Failures
from kpybroker.client.connect.wire import WireCluster


def described(cluster: Cluster, failures: Failures) -> dict[str, Any]:
    """The cluster with a row for each broker; `disk` is the size of its replicas, None if it does not say."""
    with WireCluster(cluster.settings) as wire:
        found = overview(wire, failures)
        directories, _ = log_dir_rows(wire, sorted(wire.nodes), failures)
    for row in found["brokers"]:
        own = [one for one in directories if one["broker"] == row["broker"]]
        row["disk"] = sum(one["size"] for one in own) if own else None
        row["usable"] = _sum(one["usable"] for one in own)
        row["replicas"] = sum(one["replicas"] for one in own) if own else None
        row["offline"] = sum(one["error"] is not None for one in own)
    return found


def _sum(values: Any) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
