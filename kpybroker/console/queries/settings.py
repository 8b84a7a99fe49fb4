"""Settings of topics and brokers, with their source and their meaning."""

from __future__ import annotations

from typing import Any, Final

from confluent_kafka.admin import ConfigResource

from kpybroker.client.actions.resources import config_rows
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import Failures
from kpybroker.config.docs.lookup import broker_doc, topic_doc

Rows = list[dict[str, Any]]
ORDER: Final = ("topic", "broker", "cluster-default", "server.properties")
"""Sources that someone chose, the nearest first; the defaults follow."""


def of_topic(cluster: Cluster, name: str, failures: Failures) -> Rows:
    """The topic's settings; those that were set for it first."""
    return _described(cluster, ConfigResource(ConfigResource.Type.TOPIC, name), f"settings of topic {name}", failures)


def of_broker(cluster: Cluster, broker: int, failures: Failures) -> Rows:
    """The broker's settings; those that were set while it runs first, then those of its file."""
    resource = ConfigResource(ConfigResource.Type.BROKER, str(broker))
    return _described(cluster, resource, f"settings of broker {broker}", failures)


def _described(cluster: Cluster, resource: Any, item: str, failures: Failures) -> Rows:
    is_topic = resource.restype == ConfigResource.Type.TOPIC
    rows: Rows = []
    for _, entries, error in cluster.results(cluster.admin.describe_configs([resource], **cluster.timeout)):
        if error is not None:
            failures.add(item, error)
        else:
            rows = [
                {**row, "meaning": meaning(str(row["key"]), is_topic)} for row in config_rows(entries.values(), True)
            ]
    return sorted(rows, key=lambda row: ORDER.index(row["source"]) if row["source"] in ORDER else len(ORDER))


def meaning(key: str, is_topic: bool) -> str:
    """A sentence on a key; empty for one that we do not know."""
    return (topic_doc(key) if is_topic else broker_doc(key)) or ""
