"""Every broker configuration key of Kafka 3.9.1 (`KafkaConfig`), gathered from the `keys_*` tables.

A row is a plain tuple, so that the whole table costs a millisecond at start:
name, type, default (as text, None when Kafka's is null), validator, importance, dynamic mode, status.

The mode is Kafka's (KIP-226): READ_ONLY needs a restart; PER_BROKER may be set for one broker only;
CLUSTER_WIDE may be set for one broker or as the default of all. Sentences about keys stand in `docs_*.py`,
which only `DescribeConfigs` with `include_documentation` and the generated `docs/reference/configuration.md` load.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kpybroker.config.values import PASSWORD, Validator, Value, check_value, parse_value

HIGH: Final = "HIGH"
MEDIUM: Final = "MEDIUM"
LOW: Final = "LOW"

READ_ONLY: Final = "read-only"
PER_BROKER: Final = "per-broker"
CLUSTER_WIDE: Final = "cluster-wide"

Row = tuple[str, str, str | None, Validator, str, str, str]


class Key(NamedTuple):
    """One row of the tables."""

    name: str
    type: str
    default: str | None
    validator: Validator
    importance: str
    mode: str
    status: str

    @property
    def sensitive(self) -> bool:
        """Never shown, not even to whoever set it."""
        return self.type == PASSWORD

    def parse(self, text: str | None) -> Value:
        """The typed, checked value of `text`; raises `ConfigError`."""
        value = parse_value(self.name, self.type, text)
        if value is not None or text is not None:
            check_value(self.name, value, self.validator)
        return value


INTERNAL: Final = frozenset(
    {
        "group.consumer.migration.policy",
        "group.coordinator.new.enable",
        "group.share.enable",
        "log.initial.task.delay.ms",
        "metadata.log.segment.min.bytes",
        "producer.id.expiration.check.interval.ms",
        "remote.log.manager.task.retry.backoff.max.ms",
        "remote.log.manager.task.retry.backoff.ms",
        "remote.log.manager.task.retry.jitter",
        "server.max.startup.time.ms",
        "unclean.leader.election.interval.ms",
        "unstable.api.versions.enable",
        "unstable.feature.versions.enable",
        "zookeeper.metadata.migration.min.batch.size",
    }
)


def _all_keys() -> dict[str, Key]:
    from kpybroker.config.keys import group as keys_group
    from kpybroker.config.keys import kraft as keys_kraft
    from kpybroker.config.keys import log as keys_log
    from kpybroker.config.keys import network as keys_network
    from kpybroker.config.keys import own as keys_own
    from kpybroker.config.keys import remote as keys_remote
    from kpybroker.config.keys import replication as keys_replication
    from kpybroker.config.keys import security as keys_security
    from kpybroker.config.keys import zookeeper as keys_zookeeper

    tables = (
        keys_remote,
        keys_zookeeper,
        keys_replication,
        keys_network,
        keys_log,
        keys_group,
        keys_kraft,
        keys_security,
        keys_own,
    )
    return {row[0]: Key._make(row) for table in tables for row in table.ROWS}


BROKER_KEYS: Final[dict[str, Key]] = _all_keys()
