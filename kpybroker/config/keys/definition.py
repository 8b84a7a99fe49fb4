"""What a broker key is: the row that defines it, and `Key`, the row with names.

A row is a plain tuple, so that all tables together cost a millisecond at start: name, type, default (as text, None
where Kafka's is null), validator, importance, mode, status.

The mode is Kafka's (KIP-226): READ_ONLY needs a restart, PER_BROKER may be set for one broker only, CLUSTER_WIDE for
one broker or as the default of all. The rows are in the other modules of this package, `registry` has all of them.
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
    """One broker key: a row of the tables, with names."""

    name: str
    type: str
    default: str | None
    validator: Validator
    importance: str
    mode: str
    status: str

    @property
    def sensitive(self) -> bool:
        """Whether the value is never shown, not even to the user who set it."""
        return self.type == PASSWORD

    def parse(self, text: str | None) -> Value:
        """The typed, checked value of `text`; raises `ConfigError`."""
        value = parse_value(self.name, self.type, text)
        if value is not None or text is not None:
            check_value(self.name, value, self.validator)
        return value


OF_KAFKA_4: Final = frozenset(
    {
        "add.partitions.to.txn.retry.backoff.max.ms",
        "add.partitions.to.txn.retry.backoff.ms",
        "group.consumer.assignment.interval.ms",
        "group.consumer.max.assignment.interval.ms",
        "group.consumer.migration.policy",
        "group.consumer.min.assignment.interval.ms",
    }
)
"""Keys that Kafka 3.9 does not have, or does not list in DescribeConfigs, and Kafka 4.3 does."""

INTERNAL: Final = OF_KAFKA_4 | frozenset(
    {
        "group.consumer.regex.refresh.interval.ms",
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
"""Keys that Kafka 3.9 accepts but does not list in DescribeConfigs, and those that it does not have."""
