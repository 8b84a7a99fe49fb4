"""A sentence on every key, for `DescribeConfigs` with `include_documentation` and for `docs/CONFIGURATION.md`.

Not loaded at start. A key that has no effect here says so after its sentence.
"""

from __future__ import annotations

from kpybroker.config.docs import group as docs_group
from kpybroker.config.docs import kraft as docs_kraft
from kpybroker.config.docs import log as docs_log
from kpybroker.config.docs import network as docs_network
from kpybroker.config.docs import own as docs_own
from kpybroker.config.docs import remote as docs_remote
from kpybroker.config.docs import replication as docs_replication
from kpybroker.config.docs import security as docs_security
from kpybroker.config.docs import topic as docs_topic
from kpybroker.config.docs import zookeeper as docs_zookeeper
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.status import REASONS
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
