"""A sentence on every key, for `DescribeConfigs` with `include_documentation` and for `docs/CONFIGURATION.md`.

Not loaded at start. A key that has no effect here says so after its sentence.
"""

from __future__ import annotations

from kpybroker.config import (
    docs_group,
    docs_kraft,
    docs_log,
    docs_network,
    docs_own,
    docs_remote,
    docs_replication,
    docs_security,
    docs_topic,
    docs_zookeeper,
)
from kpybroker.config.definition import BROKER_KEYS
from kpybroker.config.status import REASONS
from kpybroker.config.topic import TOPIC_KEYS

_BROKER_DOCS = {
    name: text
    for module in (
        docs_group,
        docs_kraft,
        docs_log,
        docs_network,
        docs_own,
        docs_remote,
        docs_replication,
        docs_security,
        docs_zookeeper,
    )
    for name, text in module.DOCS.items()
}


def broker_doc(name: str) -> str | None:
    """None for a name that is no key."""
    key = BROKER_KEYS.get(name)
    return None if key is None else _with_status(_BROKER_DOCS[name], key.status)


def topic_doc(name: str) -> str | None:
    row = TOPIC_KEYS.get(name)
    return None if row is None else _with_status(docs_topic.DOCS[name], row[6])


def _with_status(text: str, status: str) -> str:
    reason = REASONS[status]
    return f"{text} Without effect in kpybroker: {reason}." if reason else text
