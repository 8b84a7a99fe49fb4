"""The status of a key: honoured, or without effect and why.

Each row names one of these codes. The start-up report and the configuration page print its sentence, and
`tests/config/keys/test_status.py` holds it against the code that reads the key. Every key of Kafka 3.9.1 and of Kafka
4.3.1 is accepted, validated and described; a key without effect is always reported.
"""

from __future__ import annotations

from typing import Final

HONOURED: Final = "honoured"
REQUEST_TIMEOUTS: Final = "request-timeouts"
SYSTEM_BUFFER: Final = "system-buffer"
OPENSSL: Final = "openssl"
NO_SASL: Final = "no-sasl"
NO_KRAFT: Final = "no-kraft"
KRAFT_MAPPED: Final = "kraft-mapped"
NO_TIERED_STORAGE: Final = "no-tiered-storage"
NO_TWO_PHASE_COMMIT: Final = "no-two-phase-commit"
NO_JVM_PLUGIN: Final = "no-jvm-plugin"
NO_JMX: Final = "no-jmx"
NO_THREADS: Final = "no-threads"
NO_QUEUE: Final = "no-queue"
NO_PURGATORY: Final = "no-purgatory"
NO_CNXN_SOCKET: Final = "no-cnxn-socket"
SINCE_3_0_IGNORED: Final = "since-3.0-ignored"
NO_REVOCATION: Final = "no-revocation"
NO_ASSERTION: Final = "no-assertion"
OWN_INTERVAL: Final = "own-interval"
ALL_ACKS: Final = "all-acks"
AT_ONCE: Final = "at-once"
ONE_COORDINATOR: Final = "one-coordinator"
EARLY_ACCESS: Final = "early-access"

REASONS: Final[dict[str, str]] = {
    HONOURED: "",
    REQUEST_TIMEOUTS: "a connection must be established within the timeout of the request that needs it",
    SYSTEM_BUFFER: "connections between brokers use the receive buffer that the system chooses",
    OPENSSL: "it chooses a part of Java's TLS: here OpenSSL is used, with the versions of ssl.enabled.protocols",
    NO_SASL: "it is for a Java plug-in of logins, or for the way in which Java gets tickets and tokens of its own",
    NO_KRAFT: "there is no KRaft quorum here: coordination is the embedded tree or ZooKeeper",
    KRAFT_MAPPED: "it is used only to read a KRaft file, one that sets process.roles",
    NO_TIERED_STORAGE: "there is no tiered storage: all data stays in the local log directories",
    NO_TWO_PHASE_COMMIT: "two-phase commit (KIP-939) is not served, as by every Kafka so far",
    NO_JVM_PLUGIN: "it names a Java class; there is no JVM here to load it",
    NO_JMX: "there is no JMX here, and the metrics that are served are not sampled",
    NO_THREADS: "one event loop does this work: there is no thread pool to size",
    NO_QUEUE: "requests are not queued for a pool of threads",
    NO_PURGATORY: "requests wait on their partitions' own lists: there is no purgatory to purge",
    NO_CNXN_SOCKET: "it names a Java class; zookeeper.ssl.client.enable alone turns TLS on here",
    SINCE_3_0_IGNORED: "as in Kafka since 3.0: records are always written in format v2",
    NO_REVOCATION: "revocation is not checked: with true, a broker that uses TLS to ZooKeeper does not start",
    NO_ASSERTION: "a broker logs in with a client id and a secret, not with an assertion of its own",
    OWN_INTERVAL: "each background task first runs after its own interval",
    ALL_ACKS: "a commit always waits for all in-sync replicas, as with -1",
    AT_ONCE: "the coordinator appends the records of a request at once, without a buffer of its own",
    ONE_COORDINATOR: "one coordinator serves both protocols of groups",
    EARLY_ACCESS: "it is of the early access in Kafka 3.9: as in Kafka 4, share.version decides, without limit",
}
"""Code -> why the key has no effect; empty for HONOURED."""

SECURITY: Final = frozenset({NO_SASL, NO_ASSERTION})
"""Of keys that a user sets for safety: that they have no effect is a warning."""

PER_LISTENER_REASON: Final = "it has no limit of its own for one listener: the plain key counts all listeners together"
"""Of a listener's own key (`listener.name.<listener>.<key>`) whose plain key is honoured."""
