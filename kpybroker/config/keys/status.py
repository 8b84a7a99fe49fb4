"""What becomes of a key: honoured, or without effect and why.

A row names one of these codes; the sentence is what the start-up report and `docs/reference/configuration.md` print.
Every key of Kafka 3.9.1 is accepted, validated and described; a key without effect is never dropped in
silence.
"""

from __future__ import annotations

from typing import Final

HONOURED: Final = "honoured"
WITH_REPLICATION: Final = "with-replication"
WITH_QUOTAS: Final = "with-quotas"
NO_TLS: Final = "no-tls"
NO_SASL: Final = "no-sasl"
NO_AUTHORIZER: Final = "no-authorizer"
NO_KRAFT: Final = "no-kraft"
KRAFT_MAPPED: Final = "kraft-mapped"
NO_TIERED_STORAGE: Final = "no-tiered-storage"
NO_CONSUMER_PROTOCOL: Final = "no-consumer-protocol"
NO_SHARE_GROUPS: Final = "no-share-groups"
NO_JVM_PLUGIN: Final = "no-jvm-plugin"
NO_JMX: Final = "no-jmx"
NO_THREADS: Final = "no-threads"
NO_PURGATORY: Final = "no-purgatory"
NO_DELEGATION_TOKENS: Final = "no-delegation-tokens"
NO_PASSWORD_ENCODER: Final = "no-password-encoder"
NO_CNXN_SOCKET: Final = "no-cnxn-socket"
SINCE_3_0_IGNORED: Final = "since-3.0-ignored"
NO_REVOCATION: Final = "no-revocation"
OWN_INTERVAL: Final = "own-interval"
WITH_RETENTION_CHECK: Final = "with-retention-check"
ONE_LISTENER_PLANE: Final = "one-listener-plane"
ASYNC_COMMIT: Final = "async-commit"

REASONS: Final[dict[str, str]] = {
    HONOURED: "",
    WITH_REPLICATION: "brokers among themselves use what the system gives",
    WITH_QUOTAS: "quotas are not built yet",
    NO_TLS: "TLS listeners are not available yet",
    NO_SASL: "SASL listeners are not available yet",
    NO_AUTHORIZER: "no authorizer is available yet: every request is allowed",
    NO_KRAFT: "there is no KRaft quorum here: coordination is the embedded tree or ZooKeeper",
    KRAFT_MAPPED: "KRaft key: mapped to its ZooKeeper-mode counterpart",
    NO_TIERED_STORAGE: "there is no tiered storage: all data stay in the local log directories",
    NO_CONSUMER_PROTOCOL: "the consumer group protocol of KIP-848 is not served",
    NO_SHARE_GROUPS: "share groups (KIP-932) are not served",
    NO_JVM_PLUGIN: "it names a Java class; there is no JVM here to load it",
    NO_JMX: "there is no JMX: metrics are read over HTTP",
    NO_THREADS: "one event loop does this work: there is no thread pool to size",
    NO_PURGATORY: "requests wait on their partitions' own lists: there is no purgatory to purge",
    NO_DELEGATION_TOKENS: "delegation tokens are not available yet",
    NO_PASSWORD_ENCODER: "no dynamic password is accepted yet, so none has to be encoded",
    NO_CNXN_SOCKET: "it names a Java class: here zookeeper.ssl.client.enable is enough for TLS",
    SINCE_3_0_IGNORED: "as in Kafka since 3.0: records are always written in format v2",
    NO_REVOCATION: "no revocation is checked: with true the broker does not start",
    OWN_INTERVAL: "each background task first runs after its own interval",
    WITH_RETENTION_CHECK: "producers are forgotten along with the retention check",
    ONE_LISTENER_PLANE: "requests are not queued, so no separate plane is needed to overtake a queue",
    ASYNC_COMMIT: "as in Kafka, only -1 is accepted",
}
