"""Settings of topics and brokers, with their source and their meaning.

What a key means says the broker that has it (KIP-569): another Kafka has Kafka's words, kpybroker has its own. A broker
of before 2.6 explains nothing.
"""

from __future__ import annotations

import html
import re
from typing import Any, Final

from confluent_kafka.admin import ConfigResource

from kpybroker.client.actions.resources import config_row, config_rows
from kpybroker.client.connect import raw_configs
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.errors import CommandError, Failures
from kpybroker.client.connect.wire import WireCluster
from kpybroker.client.direct.cluster import DirectCluster

Rows = list[dict[str, Any]]
ORDER: Final = ("topic", "broker", "cluster-default", "server.properties")
"""Sources that someone chose, the nearest first; the defaults follow."""
LINES: Final = re.compile(r"<(?:br|/p|/li|/ul|ul|p)\b[^>]*>", re.IGNORECASE)
TAG: Final = re.compile(r"</?[a-zA-Z][^<>]*>")


def of_topic(cluster: Cluster, name: str, failures: Failures) -> Rows:
    """The topic's settings; those that were set for it first."""
    return _described(cluster, raw_configs.TOPIC, name, f"settings of topic {name}", failures)


def of_broker(cluster: Cluster, broker: int, failures: Failures) -> Rows:
    """The broker's settings; those that were set while it runs first, then those of its file."""
    return _described(cluster, raw_configs.BROKER, str(broker), f"settings of broker {broker}", failures)


def compared(cluster: Cluster, first: str, second: str, failures: Failures) -> Rows:
    """A row for each key of two topics, those whose values differ first; None for a key that one has not."""
    ours, theirs = ({row["key"]: row for row in of_topic(cluster, name, failures)} for name in (first, second))
    if not ours or not theirs:
        return []
    rows = []
    for key in sorted({*ours, *theirs}):
        a, b = (side.get(key, {}).get("value") for side in (ours, theirs))
        meaning = ours.get(key, theirs.get(key, {})).get("meaning", "")
        rows.append({"key": key, "first": a, "second": b, "differs": a != b, "meaning": meaning})
    return sorted(rows, key=lambda row: (not row["differs"], row["key"]))


def _described(cluster: Cluster, kind: int, name: str, item: str, failures: Failures) -> Rows:
    ask = _direct if isinstance(cluster, DirectCluster) else _by_librdkafka
    try:
        rows = ask(cluster, kind, name)
    except CommandError as error:
        failures.add(item, error)
        return []
    return sorted(rows, key=lambda row: ORDER.index(row["source"]) if row["source"] in ORDER else len(ORDER))


def _direct(cluster: Cluster, kind: int, name: str) -> Rows:
    wire: WireCluster = cluster.admin.wire
    broker = wire.broker(int(name)) if kind == raw_configs.BROKER else wire.any()
    entries = raw_configs.describe(wire, kind, [name], broker)[name]
    if isinstance(entries, CommandError):
        raise entries
    rows = [{**config_row(entry), "meaning": words(entry.documentation)} for entry in entries]
    return sorted(rows, key=lambda row: str(row["key"]))


def _by_librdkafka(cluster: Cluster, kind: int, name: str) -> Rows:
    """Which asks for no explanation."""
    resource = ConfigResource(ConfigResource.Type(kind), name)
    ((_, entries, error),) = cluster.results(cluster.admin.describe_configs([resource], **cluster.timeout))
    if error is not None:
        raise error
    return [{**row, "meaning": ""} for row in config_rows(entries.values(), True)]


def words(documentation: str | None) -> str:
    """A broker's explanation without the tags of HTML that Kafka's has."""
    text = TAG.sub("", LINES.sub(" ", documentation or ""))
    return " ".join(html.unescape(text).split())
