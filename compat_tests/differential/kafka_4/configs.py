"""Scripts about settings, for a broker in the place of Kafka 4.3: names, defaults, sources, rules, texts."""

from __future__ import annotations

from collections.abc import Iterator

from compat_tests.differential.allowed import MISSING, Allowed
from compat_tests.differential.kafka_4.steps import next_to_4
from compat_tests.differential.script import Ask
from compat_tests.differential.scripts.configs import (
    APPEND,
    BROKER,
    DELETE,
    GROUP,
    LOGGER,
    SET,
    SUBTRACT,
    TOPIC,
    UNKNOWN,
    alter,
    change,
    describe,
)
from compat_tests.differential.steps import create
from kpybroker.config.keys.releases import TOPIC_CHANGED, TOPIC_REMOVED
from kpybroker.config.keys.topic import TOPIC_ROWS
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode

DESCRIBE, ALTER = ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_CONFIGS
INCREMENTAL, CREATE = ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.CREATE_TOPICS

VALUES = ("", "-3", "-1", "0", "1", "13", "1048575", "1048576", "true", "x", "x,x", "delete,delete", "*", "0:1")
"""Each is a good value of some keys, and a bad one of others."""


def there(name: str) -> Ask:
    """Wait until the broker knows a topic."""
    return describe(TOPIC, name, ["retention.ms"], v=4, until={"results.0.error_code": 0})


def has(kind: int, name: str, key: str, value: str) -> Ask:
    """Wait until a key has a value."""
    return describe(kind, name, [key], v=4, until={"results.0.configs.0.value": value})


def every_value_of_every_key() -> Iterator[Ask]:
    for row in TOPIC_ROWS:
        for value in VALUES:
            yield change(TOPIC, "{t}", (SET, row[0], value), validate_only=True)


SCRIPTS = [
    next_to_4(
        "configs-4-topic",
        DESCRIBE,
        "every key of a topic: name, value, source, synonyms, type",
        create("{t}", v=4),
        there("{t}"),
        describe(TOPIC, "{t}"),
        describe(TOPIC, "{t}", include_synonyms=False),
        describe(TOPIC, "{t}", include_documentation=True),
        describe(TOPIC, "{t}", sorted(TOPIC_REMOVED)),
        describe(TOPIC, "{t}", sorted(TOPIC_CHANGED)),
        describe(TOPIC, "{t}", ["internal.segment.bytes"]),
        describe(TOPIC, "{t}-missing"),
        describe(TOPIC, "bad name"),
        describe(TOPIC, ""),
    ),
    next_to_4(
        "configs-4-broker",
        DESCRIBE,
        "every key of a broker; the defaults of all; brokers that are others",
        describe(BROKER, "0"),
        describe(BROKER, "0", include_synonyms=False),
        describe(BROKER, "0", include_documentation=True),
        describe(BROKER, "0", ["log.retention.ms", "no.such.key", "broker.id", "zookeeper.connect"]),
        describe(BROKER, ""),
        describe(BROKER, "1"),
        describe(BROKER, "x"),
    ),
    next_to_4(
        "configs-4-others",
        DESCRIBE,
        "loggers, and kinds that there are not",
        describe(LOGGER, "0", ["no.such.logger"]),
        describe(LOGGER, "0", ["root"]),
        describe(LOGGER, "1"),
        describe(LOGGER, ""),
        describe(LOGGER, "x"),
        describe(UNKNOWN, "x"),
        describe(99, "x"),
        describe(GROUP, ""),
    ),
    next_to_4(
        "configs-4-created",
        CREATE,
        "topics with settings, and what the response says of them",
        # a step that binds is not played in an older version, without settings in its response
        create("{t}", bind={"id": "topics.0.topic_id"}),
        create("{t}-1", bind={"id": "topics.0.topic_id"}, retention_ms=5, internal_segment_bytes=100),
        create("{t}-2", segment_bytes=1000),
        create("{t}-2", no_such_key=1),
        create("{t}-2", cleanup_policy="delete,delete"),
        create("{t}-2", min_compaction_lag_ms=5, max_compaction_lag_ms=2),
        create("{t}-2", remote_storage_enable="true"),
        create("{t}-2", remote_log_copy_disable="true"),
        create("{t}-2", message_downconversion_enable="true"),
        create("{t}-2", message_format_version="3.0"),
        create("{t}-2", message_timestamp_difference_max_ms=1),
    ),
    next_to_4(
        "configs-4-topic-values",
        INCREMENTAL,
        "every key of topics with good and bad values",
        create("{t}", v=4),
        there("{t}"),
        *every_value_of_every_key(),
    ),
    next_to_4(
        "configs-4-topic-changed",
        INCREMENTAL,
        "set, appended to, subtracted from, removed",
        create("{t}", v=4),
        there("{t}"),
        change(TOPIC, "{t}", (SET, "retention.ms", "1"), (SET, "internal.segment.bytes", "100")),
        has(TOPIC, "{t}", "retention.ms", "1"),
        describe(TOPIC, "{t}", ["internal.segment.bytes", "segment.bytes"], v=4),
        describe(TOPIC, "{t}", v=4),
        change(TOPIC, "{t}", (APPEND, "cleanup.policy", "compact")),
        has(TOPIC, "{t}", "cleanup.policy", "delete,compact"),
        change(TOPIC, "{t}", (APPEND, "cleanup.policy", "compact")),
        change(TOPIC, "{t}", (SUBTRACT, "cleanup.policy", "delete")),
        has(TOPIC, "{t}", "cleanup.policy", "compact"),
        change(TOPIC, "{t}", (SUBTRACT, "cleanup.policy", "compact")),
        change(TOPIC, "{t}", (APPEND, "retention.ms", "1")),
        change(TOPIC, "{t}", (APPEND, "no.such.key", "1")),
        change(TOPIC, "{t}", (SET, "retention.ms", None)),
        change(TOPIC, "{t}", (SET, "retention.ms", "1"), (SET, "retention.ms", "2")),
        change(TOPIC, "{t}", (DELETE, "no.such.key", None)),
        change(TOPIC, "{t}", (9, "retention.ms", "1")),
        change(TOPIC, "{t}-missing", (SET, "retention.ms", "1")),
        change(TOPIC, "bad name", (SET, "retention.ms", "1")),
        change(TOPIC, "", (SET, "retention.ms", "1")),
        change(UNKNOWN, "x", (SET, "retention.ms", "1")),
        change(99, "x", (SET, "retention.ms", "1")),
        change(TOPIC, "{t}", (DELETE, "retention.ms", None), (DELETE, "internal.segment.bytes", None)),
        has(TOPIC, "{t}", "retention.ms", "-1"),
    ),
    next_to_4(
        "configs-4-topic-replaced",
        ALTER,
        "all of a topic's settings at once",
        create("{t}", v=4),
        there("{t}"),
        alter(TOPIC, "{t}", retention_ms="5"),
        has(TOPIC, "{t}", "retention.ms", "5"),
        alter(TOPIC, "{t}", segment_bytes="1000"),
        alter(TOPIC, "{t}", retention_ms="soon"),
        alter(TOPIC, "{t}", no_such_key="1"),
        alter(TOPIC, "{t}", retention_ms=None),
        alter(TOPIC, "{t}", cleanup_policy="burn"),
        alter(TOPIC, "{t}-missing", retention_ms="1"),
        alter(LOGGER, "0", root="INFO"),
        alter(UNKNOWN, "x", retention_ms="1"),
        alter(TOPIC, "{t}", validate_only=True),
    ),
    next_to_4(
        "configs-4-broker-changed",
        INCREMENTAL,
        "of one broker and of all; read-only keys, removed keys, other brokers",
        *(
            change(BROKER, name, (SET, key, value), validate_only=True)
            for name in ("0", "")
            for key, value in (
                ("message.max.bytes", "1"),
                ("log.segment.bytes", "1000"),
                ("log.cleanup.policy", "delete,delete"),
                ("log.cleanup.policy", ""),
                ("num.io.threads", "500"),
                ("num.io.threads", "many"),
                ("log.dirs", "/x"),
                ("broker.id", "5"),
                ("no.such.key", "5"),
                ("ssl.keystore.type", "PEM"),
                ("advertised.listeners", "PLAINTEXT://:1"),
                ("log.message.downconversion.enable", "true"),
                ("zookeeper.connect", "x"),
                ("max.connections", "0"),
                ("group.coordinator.cached.buffer.max.bytes", "1"),
                ("remote.list.offsets.request.timeout.ms", "0"),
                ("cordoned.log.dirs", "/x"),
                ("cordoned.log.dirs", "*,/x"),
                ("cordoned.log.dirs", ""),
            )
        ),
        change(BROKER, "1", (SET, "message.max.bytes", "1")),
        change(BROKER, "x", (SET, "message.max.bytes", "1")),
        change(BROKER, "0", (APPEND, "message.max.bytes", "1")),
        change(BROKER, "0", (DELETE, "no.such.key", None)),
        change(BROKER, "0", (SET, "message.max.bytes", "130000")),
        has(BROKER, "0", "message.max.bytes", "130000"),
        change(BROKER, "0", (DELETE, "message.max.bytes", None)),
        has(BROKER, "0", "message.max.bytes", "100000"),
    ),
    next_to_4(
        "configs-4-loggers",
        INCREMENTAL,
        "levels set and unset, names and levels that there are not",
        change(LOGGER, "0", (SET, "root", "ERROR")),
        describe(LOGGER, "0", ["root"], v=4),
        change(LOGGER, "0", (SET, "root", "LOUD")),
        change(LOGGER, "0", (SET, "root", "info")),
        change(LOGGER, "0", (SET, "no.such.logger", "INFO")),
        change(LOGGER, "0", (DELETE, "no.such.logger", None)),
        change(LOGGER, "0", (APPEND, "root", "INFO")),
        change(LOGGER, "0", (SUBTRACT, "root", "INFO")),
        change(LOGGER, "0", (9, "root", "INFO")),
        change(LOGGER, "0", (SET, "root", None)),
        change(LOGGER, "0", (DELETE, "root", None)),
        change(LOGGER, "1", (SET, "root", "INFO")),
        change(LOGGER, "", (SET, "root", "INFO")),
        change(LOGGER, "x", (SET, "root", "INFO")),
    ),
]

SAME_KEYS = {
    "num.recovery.threads.per.data.dir": "1",
    "socket.request.max.bytes": "104857600",
    "socket.send.buffer.bytes": "102400",
    "socket.receive.buffer.bytes": "102400",
    "num.partitions": "1",
    "log.retention.hours": "168",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""What `support.services` and `support.kraft` set on one of both brokers."""

OF_KRAFT = r"(process\.roles|controller\.listener\.names|controller\.quorum\.voters|listener\.security\.protocol\.map)"

ALLOWED_OF_CONFIGS: tuple[Allowed, ...] = (
    Allowed(
        "eligible leader replicas, which are of KRaft, set it for all brokers",
        r"(results|topics)\[0\]\.configs\.min\.insync\.replicas(\..*)?",
    ),
    Allowed("KRaft needs to know its quorum", rf"results\[0\]\.configs\.({OF_KRAFT})\..*", DESCRIBE),
    Allowed(
        "Kafka knows no code for an operation that there is not",
        r"responses\[0\]\.error_code",
        INCREMENTAL,
        kafka=int(ErrorCode.UNKNOWN_SERVER_ERROR),
        ours=int(ErrorCode.INVALID_REQUEST),
    ),
    Allowed(
        "Kafka knows no code for an operation that there is not",
        r"responses\[0\]\.error_message",
        INCREMENTAL,
        kafka=None,
        ours="Unknown operations type 9",
    ),
    Allowed(
        "keys that Kafka 4 removed keep their effect, and cannot be changed dynamically",
        r"responses\[0\]\.error_code",
        INCREMENTAL,
        scripts="configs-4-broker-changed",
        kafka=int(ErrorCode.NONE),
        ours=int(ErrorCode.INVALID_REQUEST),
    ),
    Allowed(
        "keys that Kafka 4 removed keep their effect, and cannot be changed dynamically",
        r"responses\[0\]\.error_message",
        INCREMENTAL,
        kafka=None,
        ours="Cannot update these configs dynamically: [zookeeper.connect]",
    ),
    Allowed(
        "the default text of an error code is in our own words",
        r"results\[0\]\.error_message",
        DESCRIBE,
        kafka="This most likely occurs because of a request being malformed by the client library or the message was "
        "sent to an incompatible broker. See the broker logs for more details.",
    ),
    Allowed(
        "of keys in one bucket of Kafka's hash map, another is first",
        r"results\[0\]\.configs\.order\[\d+\]",
        DESCRIBE,
        scripts="configs-4-broker",
    ),
    Allowed("node.id need not be set here", r"results\[0\]\.configs\.node\.id\.synonyms\[1\]", DESCRIBE),
    Allowed(
        "KRaft has a listener for its quorum, and the default here is the loopback",
        r"results\[0\]\.configs\.listeners\..*",
        DESCRIBE,
    ),
    Allowed("levels are what each log is configured with", r"results\[0\]\.configs\.root\.value", DESCRIBE),
    Allowed("documentation is in our own words", r".*\.documentation", DESCRIBE),
    Allowed(
        "keys of our own",
        r"results\[0\]\.configs\.(kpybroker|kafka\.graphite)\..*",
        DESCRIBE,
        kafka=MISSING,
    ),
)
