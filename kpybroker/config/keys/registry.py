"""Every broker key of Kafka 3.9.1 and 4.3.1 (`KafkaConfig`) and of ours, by name."""

from __future__ import annotations

from typing import Final

from kpybroker.config.keys import group, kraft, log, network, own, remote, replication, security, zookeeper
from kpybroker.config.keys.definition import Key

_TABLES: Final = (remote, zookeeper, replication, network, log, group, kraft, security, own)

BROKER_KEYS: Final[dict[str, Key]] = {row[0]: Key._make(row) for table in _TABLES for row in table.ROWS}
"""Name -> key, in the order in which Kafka declares them; ours are last."""

PASSWORDS: Final = frozenset(name for name, key in BROKER_KEYS.items() if key.sensitive)
"""Those whose values are never shown."""
