"""Subscriptions to client metrics as a resource of configurations (KIP-714): what is described, and what is stored.

Codes and texts are those of Kafka 4.3.1. Where the broker takes the place of Kafka 3.9 they are refused, as by Kafka in
ZooKeeper mode.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kpybroker.broker.handlers.configuration.describe import TYPE_IDS, UNKNOWN_TYPE, Asked, Entry, Source, Synonym
from kpybroker.broker.requests.clients import shown
from kpybroker.config.hash_order import hash_order
from kpybroker.config.values import value_text
from kpybroker.core.client_metrics.configs import KEYS, parse, value_of
from kpybroker.wire import znodes

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

logger = logging.getLogger("kafka.server.ZkAdminManager")


def entries(props: Mapping[str, str], asked: Asked) -> Iterator[Entry]:
    """A subscription's requested keys in Kafka's order; of one that is not there, the defaults. Raises ConfigError,
    KafkaError.
    """
    for name in hash_order(asked.of({*KEYS, *props})):
        yield _entry(props, name, asked)


def _entry(props: Mapping[str, str], name: str, asked: Asked) -> Entry:
    key = KEYS.get(name)
    value = None if key is None else value_text(value_of(props, name), key.type)
    source = Source.CLIENT_METRICS_CONFIG if name in props else Source.DEFAULT_CONFIG
    synonyms = [Synonym(name=name, value=value, source=source)] if name in props else []
    return Entry(
        name=name,
        value=value,
        config_source=source,
        is_sensitive=key is None,  # an unknown key may be a password
        read_only=False,
        synonyms=synonyms if asked.synonyms else [],
        config_type=UNKNOWN_TYPE if key is None else TYPE_IDS[key.type],
        documentation=key.doc if key is not None and asked.documentation else None,
    )


async def stored(broker: Broker, name: str) -> dict[str, str]:
    """What the tree has of a subscription; nothing of one without a name."""
    if not name:
        return {}
    return await broker.configs.read(znodes.CONFIG_CLIENT_METRICS, znodes.client_metrics_entity(name))


async def store(broker: Broker, name: str, props: dict[str, str], validate_only: bool) -> None:
    """Make `props` the whole of a subscription; without any it is removed. Raises KafkaError."""
    parse(name, props)
    if not validate_only and props != await stored(broker, name):
        logger.info("Updating client metrics %s with new configuration : %s", shown(name), props)
        await broker.configs.write(znodes.CONFIG_CLIENT_METRICS, znodes.client_metrics_entity(name), props)
