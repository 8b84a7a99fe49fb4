"""What the keys of Kafka 4.3.1 have otherwise than those of Kafka 3.9.1, as data.

The tables of this package have every key of both, with the types, defaults and rules of 3.9.1. These hold for a broker
without `kpybroker.kafka.version`, and for one in the place of 3.9. One in the place of Kafka 4 has what is here on top:
`keys_of` for brokers, `topic_keys_of` for topics. All its minor releases have the same.

A key that Kafka 4 removed keeps its effect, since most are about ZooKeeper. Only topics may not set theirs any more.
`compat_tests/config` holds all of this against the jars of both releases.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from kpybroker.config.keys.definition import CLUSTER_WIDE, HIGH, READ_ONLY, Key
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.topic import TOPIC_KEYS, TopicRow
from kpybroker.config.values import INT, LIST, at_least, between, distinct

KAFKA_4: Final = "4."
"""How the releases begin whose place takes what is here."""

ADDED: Final = frozenset(
    {
        "add.partitions.to.txn.retry.backoff.max.ms",
        "add.partitions.to.txn.retry.backoff.ms",
        "config.providers",
        "controller.performance.always.log.threshold.ms",
        "controller.performance.sample.period.ms",
        "controller.quorum.auto.join.enable",
        "controller.quorum.fetch.max.bytes",
        "controller.quorum.fetch.snapshot.max.bytes",
        "cordoned.log.dirs",
        "follower.fetch.last.tiered.offset.enable",
        "group.consumer.assignment.interval.ms",
        "group.consumer.max.assignment.interval.ms",
        "group.consumer.migration.policy",
        "group.consumer.min.assignment.interval.ms",
        "group.consumer.regex.refresh.interval.ms",
        "group.coordinator.background.threads",
        "group.coordinator.cached.buffer.max.bytes",
        "group.share.assignment.interval.ms",
        "group.share.assignors",
        "group.share.initialize.retry.interval.ms",
        "group.share.max.assignment.interval.ms",
        "group.share.max.delivery.count.limit",
        "group.share.max.partition.max.record.locks",
        "group.share.max.share.sessions",
        "group.share.min.assignment.interval.ms",
        "group.share.min.delivery.count.limit",
        "group.share.min.partition.max.record.locks",
        "group.share.persister.class.name",
        "group.streams.assignment.interval.ms",
        "group.streams.heartbeat.interval.ms",
        "group.streams.initial.rebalance.delay.ms",
        "group.streams.max.assignment.interval.ms",
        "group.streams.max.heartbeat.interval.ms",
        "group.streams.max.session.timeout.ms",
        "group.streams.max.size",
        "group.streams.max.standby.replicas",
        "group.streams.min.assignment.interval.ms",
        "group.streams.min.heartbeat.interval.ms",
        "group.streams.min.session.timeout.ms",
        "group.streams.num.standby.replicas",
        "group.streams.session.timeout.ms",
        "internal.metadata.delete.delay.millis",
        "internal.metadata.log.segment.bytes",
        "internal.metadata.max.batch.size.in.bytes",
        "remote.list.offsets.request.timeout.ms",
        "remote.log.index.file.cache.ttl.ms",
        "remote.log.manager.follower.thread.pool.size",
        "sasl.oauthbearer.assertion.algorithm",
        "sasl.oauthbearer.assertion.claim.aud",
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        "sasl.oauthbearer.assertion.claim.iss",
        "sasl.oauthbearer.assertion.claim.jti.include",
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        "sasl.oauthbearer.assertion.claim.sub",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.template.file",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.jwt.validator.class",
        "sasl.oauthbearer.scope",
        "share.coordinator.append.linger.ms",
        "share.coordinator.cached.buffer.max.bytes",
        "share.coordinator.cold.partition.snapshot.interval.ms",
        "share.coordinator.load.buffer.size",
        "share.coordinator.snapshot.update.records.per.snapshot",
        "share.coordinator.state.topic.compression.codec",
        "share.coordinator.state.topic.min.isr",
        "share.coordinator.state.topic.num.partitions",
        "share.coordinator.state.topic.prune.interval.ms",
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.segment.bytes",
        "share.coordinator.threads",
        "share.coordinator.write.timeout.ms",
        "share.fetch.purgatory.purge.interval.requests",
        "transaction.two.phase.commit.enable",
    }
)
"""Keys of brokers that 3.9.1 does not have, or does not list in DescribeConfigs, and 4.3.1 does."""

REMOVED: Final = frozenset(
    {
        "auto.include.jmx.reporter",
        "broker.id.generation.enable",
        "control.plane.listener.name",
        "controlled.shutdown.max.retries",
        "controlled.shutdown.retry.backoff.ms",
        "delegation.token.master.key",
        "eligible.leader.replicas.enable",
        "group.coordinator.new.enable",
        "group.share.enable",
        "group.share.max.groups",
        "inter.broker.protocol.version",
        "leader.imbalance.per.broker.percentage",
        "log.message.downconversion.enable",
        "log.message.format.version",
        "log.message.timestamp.difference.max.ms",
        "metadata.log.segment.min.bytes",
        "offsets.commit.required.acks",
        "password.encoder.cipher.algorithm",
        "password.encoder.iterations",
        "password.encoder.key.length",
        "password.encoder.keyfactory.algorithm",
        "password.encoder.old.secret",
        "password.encoder.secret",
        "reserved.broker.max.id",
        "zookeeper.clientCnxnSocket",
        "zookeeper.connect",
        "zookeeper.connection.timeout.ms",
        "zookeeper.max.in.flight.requests",
        "zookeeper.metadata.migration.enable",
        "zookeeper.metadata.migration.min.batch.size",
        "zookeeper.session.timeout.ms",
        "zookeeper.set.acl",
        "zookeeper.ssl.cipher.suites",
        "zookeeper.ssl.client.enable",
        "zookeeper.ssl.crl.enable",
        "zookeeper.ssl.enabled.protocols",
        "zookeeper.ssl.endpoint.identification.algorithm",
        "zookeeper.ssl.keystore.location",
        "zookeeper.ssl.keystore.password",
        "zookeeper.ssl.keystore.type",
        "zookeeper.ssl.ocsp.enable",
        "zookeeper.ssl.protocol",
        "zookeeper.ssl.truststore.location",
        "zookeeper.ssl.truststore.password",
        "zookeeper.ssl.truststore.type",
    }
)
"""Keys of brokers that 4.3.1 does not have."""

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
"""Keys of brokers that 3.9.1 has, and does not list in DescribeConfigs."""

INTERNAL_IN_4: Final = frozenset(
    {
        "controller.performance.always.log.threshold.ms",
        "controller.performance.sample.period.ms",
        "group.consumer.regex.refresh.interval.ms",
        "group.share.initialize.retry.interval.ms",
        "group.share.persister.class.name",
        "internal.metadata.delete.delay.millis",
        "internal.metadata.log.segment.bytes",
        "internal.metadata.max.batch.size.in.bytes",
        "log.initial.task.delay.ms",
        "producer.id.expiration.check.interval.ms",
        "remote.log.index.file.cache.ttl.ms",
        "remote.log.manager.task.retry.backoff.max.ms",
        "remote.log.manager.task.retry.backoff.ms",
        "remote.log.manager.task.retry.jitter",
        "server.max.startup.time.ms",
        "share.coordinator.cold.partition.snapshot.interval.ms",
        "share.coordinator.state.topic.prune.interval.ms",
        "unclean.leader.election.interval.ms",
        "unstable.api.versions.enable",
        "unstable.feature.versions.enable",
    }
)
"""The same of 4.3.1."""

MIN_SEGMENT_BYTES: Final = 1 << 20
"""KIP-1030."""

Changes = Mapping[str, Mapping[str, Any]]
"""Key -> field of its row -> what Kafka 4.3.1 has there."""

_QUORUM_TIMES: Final = (
    *("append.linger", "election.backoff.max", "election.timeout", "fetch.timeout", "request.timeout", "retry.backoff"),
)
_POOL: Final = {"default": "10", "validator": at_least(1), "mode": CLUSTER_WIDE}

CHANGED: Final[Changes] = {
    "advertised.listeners": {"type": LIST, "validator": distinct(empty=False), "mode": READ_ONLY},
    "controller.listener.names": {"type": LIST, "validator": distinct(empty=False)},
    **{f"controller.quorum.{name}.ms": {"validator": at_least(0)} for name in _QUORUM_TIMES},
    "early.start.listeners": {"type": LIST, "validator": distinct()},
    "group.consumer.assignors": {"default": "uniform,range"},
    "group.coordinator.append.linger.ms": {"default": "-1", "validator": at_least(-1)},
    "group.coordinator.rebalance.protocols": {
        "default": "classic,consumer,streams",
        "validator": distinct("consumer", "classic", "share", "streams", empty=False),
    },
    "group.coordinator.threads": {"default": "4", "importance": HIGH},
    "group.share.max.size": {"type": INT, "validator": between(1, 1000)},
    "group.share.partition.max.record.locks": {"default": "2000"},
    "group.share.record.lock.duration.ms": {"validator": between(1000, 3600000)},
    "kafka.metrics.reporters": {"validator": distinct()},
    "listeners": {"type": LIST, "validator": distinct(empty=False)},
    "log.cleanup.policy": {"validator": distinct("compact", "delete")},
    "log.dir": {"type": LIST, "validator": distinct(empty=False)},
    "log.dirs": {"type": LIST, "validator": distinct(empty=False)},
    "log.message.timestamp.after.max.ms": {"default": "3600000"},
    "log.segment.bytes": {"validator": at_least(MIN_SEGMENT_BYTES)},
    "metadata.log.segment.bytes": {"validator": at_least(8 * 1024 * 1024)},
    "metric.reporters": {"default": "org.apache.kafka.common.metrics.JmxReporter", "validator": distinct()},
    "num.recovery.threads.per.data.dir": {"default": "2"},
    "num.replica.fetchers": {"validator": at_least(1)},
    "process.roles": {"default": None, "validator": distinct("broker", "controller", empty=False)},
    "remote.log.manager.copier.thread.pool.size": _POOL,
    "remote.log.manager.expiration.thread.pool.size": _POOL,
    "remote.log.manager.thread.pool.size": {"default": "2"},
    "remote.log.reader.threads": {"mode": CLUSTER_WIDE},
    "sasl.enabled.mechanisms": {"validator": distinct()},
    "sasl.kerberos.principal.to.local.rules": {"validator": distinct()},
    "sasl.oauthbearer.expected.audience": {"default": "", "validator": distinct(), "importance": HIGH},
    "sasl.oauthbearer.expected.issuer": {"importance": HIGH},
    "ssl.cipher.suites": {"validator": distinct()},
    "ssl.enabled.protocols": {"validator": distinct()},
}
"""Keys of brokers. `node.id` is not here: in 4.3.1 it must be set, and here it is another name of `broker.id`."""

TOPIC_CHANGED: Final[Changes] = {
    "segment.bytes": {"validator": at_least(MIN_SEGMENT_BYTES)},
    "message.timestamp.after.max.ms": {"default": "3600000"},
    "cleanup.policy": {"validator": distinct("compact", "delete")},
}
"""Keys of topics."""

TOPIC_REMOVED: Final = frozenset(
    {"message.downconversion.enable", "message.format.version", "message.timestamp.difference.max.ms"}
)
"""Keys of topics that 4.3.1 does not have."""

TOPIC_ADDED: Final = frozenset({"internal.segment.bytes"})
"""Keys of topics that 3.9.1 does not have; 4.3.1 does not list it in DescribeConfigs."""


def is_kafka_4(release: str | None) -> bool:
    """Whether a value of `kpybroker.kafka.version` is a Kafka 4."""
    return release is not None and release.startswith(KAFKA_4)


@cache
def keys_of(release: str | None) -> Mapping[str, Key]:
    """Every key of brokers, as a release of Kafka has it; None: as without `kpybroker.kafka.version`."""
    if not is_kafka_4(release):
        return BROKER_KEYS
    return BROKER_KEYS | {name: BROKER_KEYS[name]._replace(**fields) for name, fields in CHANGED.items()}


@cache
def default_texts(release: str | None) -> Mapping[str, str]:
    """The default of every key of brokers that has one."""
    return {name: key.default for name, key in keys_of(release).items() if key.default is not None}


@cache
def listed(release: str | None, *, with_kafka_4: bool) -> frozenset[str]:
    """The keys of brokers that DescribeConfigs lists, unasked and unset. `with_kafka_4`: without a release, those that
    Kafka 4 added, too.
    """
    if is_kafka_4(release):
        return frozenset(BROKER_KEYS.keys() - INTERNAL_IN_4 - REMOVED)
    of_3_9 = frozenset(BROKER_KEYS.keys() - INTERNAL - ADDED)
    return of_3_9 | (ADDED - INTERNAL_IN_4) if release is None and with_kafka_4 else of_3_9


@cache
def listed_of_topics(release: str | None) -> frozenset[str]:
    """The same of topics."""
    return frozenset(topic_keys_of(release)) - TOPIC_ADDED


@cache
def topic_keys_of(release: str | None) -> Mapping[str, TopicRow]:
    """The keys that topics may set in a release of Kafka; None: all that are known."""
    if release is None:
        return TOPIC_KEYS
    if not is_kafka_4(release):
        return {name: row for name, row in TOPIC_KEYS.items() if name not in TOPIC_ADDED}
    return {name: _changed(row) for name, row in TOPIC_KEYS.items() if name not in TOPIC_REMOVED}


def _changed(row: TopicRow) -> TopicRow:
    name, type_name, default, validator, importance, synonyms, status = row
    fields = TOPIC_CHANGED.get(name, {})
    return (
        name,
        type_name,
        fields.get("default", default),
        fields.get("validator", validator),
        importance,
        synonyms,
        status,
    )
