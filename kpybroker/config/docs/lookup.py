"""The sentence on a key, for DescribeConfigs with `include_documentation` and for the configuration page.

Not imported at start. The sentence of a key without effect ends with the reason.
"""

from __future__ import annotations

from kpybroker.config.docs import group, kraft, log, network, own, remote, replication, security, topic, zookeeper
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.status import REASONS
from kpybroker.config.keys.topic import TOPIC_KEYS

BROKER_SENTENCES = {
    name: text
    for module in (group, kraft, log, network, own, remote, replication, security, zookeeper)
    for name, text in module.DOCS.items()
}
"""Broker key -> its sentence, without its status."""


def broker_doc(name: str) -> str | None:
    """The sentence on a broker key; None for a name that is not a key."""
    key = BROKER_KEYS.get(name)
    return None if key is None else _with_status(BROKER_SENTENCES[name], key.status)


def topic_doc(name: str) -> str | None:
    """The sentence on a topic key; None for a name that is not a key."""
    row = TOPIC_KEYS.get(name)
    return None if row is None else _with_status(topic.DOCS[name], row[6])


def _with_status(text: str, status: str) -> str:
    reason = REASONS[status]
    return f"{text} Without effect in kpybroker: {reason}." if reason else text
