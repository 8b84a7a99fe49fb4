"""Which permissions a page needs of the console's user, which it names after a refusal. The names are Kafka's."""

from __future__ import annotations

import re
from typing import Final

from kpybroker.console.changes.change import REFUSED as REFUSED

_NEEDS: Final = (
    (r"/topics/[^/]+/(messages|follow|download).*", "Describe and Read on the topic"),
    (r"/topics/[^/]+/produce.*", "Describe and Write on the topic"),
    (r"/topics/[^/]+/configuration", "DescribeConfigs on the topic"),
    (r"/topics/[^/]+/groups", "Describe on the topic and on each group, and for producers Read on the topic"),
    (r"/topics.*", "Describe on each topic, and for sizes Describe on the cluster"),
    (r"/groups?", "Describe on each group, and Describe on its topics"),
    (r"/brokers/[0-9]+", "DescribeConfigs on the cluster"),
    (r"/transactions", "Describe on each transactional id, and Read on the topic"),
    (r"/access", "Describe and DescribeConfigs on the cluster"),
    (r"/search", "Describe on each topic and group"),
    (r"/compare", "Describe and DescribeConfigs on both topics"),
    (r"/health", "Describe on the cluster, on each group and topic, and Read and DescribeConfigs on each topic"),
    (r"/(replication|log-dirs)?", "Describe on the cluster"),
)


def needed(path: str) -> str:
    """What a page needs, in words; empty for one that needs nothing."""
    return next((words for pattern, words in _NEEDS if re.fullmatch(pattern, path)), "")
