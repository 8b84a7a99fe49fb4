"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs: topics, brokers, loggers."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.script import Ask, ask, script
from compat_tests.differential.steps import create
from kpybroker.wire.api import ApiKey

DESCRIBE = ApiKey.DESCRIBE_CONFIGS
ALTER = ApiKey.ALTER_CONFIGS
INCREMENTAL = ApiKey.INCREMENTAL_ALTER_CONFIGS

UNKNOWN, TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 0, 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
SOME_KEYS = ["retention.ms", "cleanup.policy", "max.message.bytes", "segment.bytes"]


def describe(kind: int, name: str, keys: list[str] | None = None, **options: Any) -> Ask:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    fields: dict[str, Any] = {"include_synonyms": True, "include_documentation": False, **options}
    return ask(DESCRIBE, resources=[resource], **fields)


def alter(kind: int, name: str, validate_only: bool = False, **config: str | None) -> Ask:
    configs = [{"name": key.replace("_", "."), "value": value} for key, value in config.items()]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    return ask(ALTER, resources=[resource], validate_only=validate_only)


def change(kind: int, name: str, *changes: tuple[int, str, str | None], validate_only: bool = False) -> Ask:
    configs = [{"config_operation": operation, "name": key, "value": value} for operation, key, value in changes]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    return ask(INCREMENTAL, resources=[resource], validate_only=validate_only)


def topic_now() -> Ask:
    return describe(TOPIC, "{t}", SOME_KEYS, v=4)


SCRIPTS = [
    script(
        "describe-topic-configs",
        DESCRIBE,
        "all keys, some, unknown ones, with and without synonyms and documentation",
        create("{t}", retention_ms=1000, cleanup_policy="compact"),
        describe(TOPIC, "{t}"),
        describe(TOPIC, "{t}", include_synonyms=False),
        describe(TOPIC, "{t}", SOME_KEYS),
        describe(TOPIC, "{t}", ["no.such.key", "retention.ms"]),
        describe(TOPIC, "{t}", []),
        describe(TOPIC, "{t}", ["retention.ms"], include_documentation=True),
        describe(TOPIC, "{t}-missing"),
        describe(TOPIC, "bad name"),
        describe(TOPIC, ""),
    ),
    script(
        "describe-topic-documentation",
        DESCRIBE,
        "every key's type and text",
        create("{t}"),
        describe(TOPIC, "{t}", include_documentation=True),
        versions=(3, 4),
    ),
    script(
        "describe-broker-configs",
        DESCRIBE,
        "all keys of the broker; the cluster's defaults; brokers that are others",
        describe(BROKER, "0"),
        describe(BROKER, "0", include_synonyms=False),
        describe(BROKER, "0", ["log.retention.ms", "no.such.key", "broker.id"]),
        describe(BROKER, ""),
        describe(BROKER, "", ["log.retention.ms"]),
        describe(BROKER, "1"),
        describe(BROKER, "x"),
        describe(BROKER, "-1"),
    ),
    script(
        "describe-broker-documentation",
        DESCRIBE,
        "every key's type and text",
        describe(BROKER, "0", include_documentation=True),
        versions=(3, 4),
    ),
    script(
        "describe-other-configs",
        DESCRIBE,
        "loggers, and kinds that there are not",
        describe(LOGGER, "0", ["no.such.logger"]),
        describe(LOGGER, "1"),
        describe(LOGGER, ""),
        describe(LOGGER, "x"),
        describe(UNKNOWN, "x"),
        describe(99, "x"),
        describe(GROUP, "x"),
        ask(DESCRIBE, resources=[]),
        ask(
            DESCRIBE,
            resources=[
                {"resource_type": BROKER, "resource_name": "0", "configuration_keys": ["broker.id"]},
                {"resource_type": TOPIC, "resource_name": "{t}", "configuration_keys": None},
            ],
        ),
    ),
    script(
        "alter-topic-configs",
        ALTER,
        "replaces all of a topic's configuration",
        create("{t}", retention_ms=1000),
        alter(TOPIC, "{t}", segment_bytes="2000"),
        topic_now(),
        alter(TOPIC, "{t}", validate_only=True, retention_ms="1"),
        alter(TOPIC, "{t}", retention_ms="soon"),
        alter(TOPIC, "{t}", no_such_key="1"),
        alter(TOPIC, "{t}", retention_ms=None),
        alter(TOPIC, "{t}", cleanup_policy="burn"),
        alter(TOPIC, "{t}", cleanup_policy="compact,delete"),
        topic_now(),
        alter(TOPIC, "{t}"),
        topic_now(),
        alter(TOPIC, "{t}-missing", retention_ms="1"),
        alter(TOPIC, "bad name", retention_ms="1"),
        alter(TOPIC, "", retention_ms="1"),
        alter(UNKNOWN, "x", retention_ms="1"),
        alter(99, "x", retention_ms="1"),
        alter(LOGGER, "0", root="INFO"),
        alter(GROUP, "x", metrics="a"),
        ask(ALTER, resources=[]),
        topic_now(),
    ),
    script(
        "alter-broker-configs",
        ALTER,
        "of one broker and of all; read-only keys; other brokers",
        alter(BROKER, "0", log_cleaner_threads="2", validate_only=True),
        alter(BROKER, "0", message_max_bytes="120000"),
        describe(BROKER, "0", ["message.max.bytes"], v=4, until={"results.0.configs.0.value": "120000"}),
        alter(BROKER, "", log_retention_ms="7777777"),
        describe(BROKER, "", ["log.retention.ms"], v=4, until={"results.0.configs.0.value": "7777777"}),
        describe(BROKER, "0", ["log.retention.ms"], v=4, until={"results.0.configs.0.value": "7777777"}),
        alter(BROKER, "0", broker_id="5"),
        alter(BROKER, "0", zookeeper_connect="x"),
        alter(BROKER, "0", no_such_key="5"),
        alter(BROKER, "0", log_cleaner_threads="many"),
        alter(BROKER, "0", log_cleaner_threads="0"),
        alter(BROKER, "0", log_cleaner_threads="100"),
        alter(BROKER, "1", log_cleaner_threads="2"),
        alter(BROKER, "x", log_cleaner_threads="2"),
        alter(BROKER, "0"),
        alter(BROKER, ""),
        describe(BROKER, "0", ["message.max.bytes"], v=4, until={"results.0.configs.0.value": "100000"}),
        describe(BROKER, "0", ["log.retention.ms"], v=4, until={"results.0.configs.0.value": None}),
    ),
    script(
        "change-topic-configs",
        INCREMENTAL,
        "set, delete, append, subtract, and their mistakes",
        create("{t}", retention_ms=1000),
        change(TOPIC, "{t}", (SET, "segment.bytes", "2000"), (SET, "retention.ms", "5")),
        topic_now(),
        change(TOPIC, "{t}", (DELETE, "retention.ms", None)),
        topic_now(),
        change(TOPIC, "{t}", (APPEND, "cleanup.policy", "compact")),
        topic_now(),
        change(TOPIC, "{t}", (APPEND, "cleanup.policy", "compact")),
        topic_now(),
        change(TOPIC, "{t}", (SUBTRACT, "cleanup.policy", "delete")),
        topic_now(),
        change(TOPIC, "{t}", (SUBTRACT, "cleanup.policy", "compact")),
        topic_now(),
        change(TOPIC, "{t}", (SUBTRACT, "cleanup.policy", "nothing")),
        change(TOPIC, "{t}", (APPEND, "retention.ms", "1")),
        change(TOPIC, "{t}", (SUBTRACT, "retention.ms", "1")),
        change(TOPIC, "{t}", (SET, "retention.ms", None)),
        change(TOPIC, "{t}", (APPEND, "cleanup.policy", None)),
        change(TOPIC, "{t}", (DELETE, "max.message.bytes", "x")),
        change(TOPIC, "{t}", (9, "retention.ms", "1")),
        change(TOPIC, "{t}", (SET, "retention.ms", "soon")),
        change(TOPIC, "{t}", (SET, "no.such.key", "1")),
        change(TOPIC, "{t}", (DELETE, "no.such.key", None)),
        change(TOPIC, "{t}", (SET, "retention.ms", "1"), (SET, "retention.ms", "2")),
        change(TOPIC, "{t}", (SET, "retention.ms", "1"), (SET, "cleanup.policy", "burn")),
        change(TOPIC, "{t}", (SET, "retention.ms", "9"), validate_only=True),
        change(TOPIC, "{t}"),
        topic_now(),
        change(TOPIC, "{t}-missing", (SET, "retention.ms", "1")),
        change(TOPIC, "bad name", (SET, "retention.ms", "1")),
        change(TOPIC, "", (SET, "retention.ms", "1")),
        change(UNKNOWN, "x", (SET, "retention.ms", "1")),
        change(99, "x", (SET, "retention.ms", "1")),
        change(GROUP, "x", (SET, "metrics", "1")),
        ask(INCREMENTAL, resources=[]),
    ),
    script(
        "change-connection-limits",
        INCREMENTAL,
        "of the broker and of a listener: numbers, rates, addresses",
        *(
            change(BROKER, name, (SET, key, value), validate_only=True)
            for name in ("0", "")
            for key in ("max.connections", "max.connection.creation.rate")
            for prefix in ("", "listener.name.plaintext.")
            for value in ("-1", "0", "1", "many")
            for key in (f"{prefix}{key}",)
        ),
        change(BROKER, "0", (SET, "max.connections.per.ip", "0"), validate_only=True),
    ),
    script(
        "change-broker-configs",
        INCREMENTAL,
        "of one broker and of all; read-only keys; other brokers; loggers",
        change(BROKER, "0", (SET, "message.max.bytes", "130000")),
        describe(BROKER, "0", ["message.max.bytes"], v=4, until={"results.0.configs.0.value": "130000"}),
        change(BROKER, "", (SET, "log.cleanup.policy", "compact")),
        change(BROKER, "", (APPEND, "log.cleanup.policy", "delete")),
        describe(BROKER, "0", ["log.cleanup.policy"], v=4, until={"results.0.configs.0.value": "compact,delete"}),
        change(BROKER, "0", (APPEND, "message.max.bytes", "1")),
        change(BROKER, "0", (SET, "broker.id", "5")),
        change(BROKER, "0", (SET, "no.such.key", "5")),
        describe(BROKER, "0", ["no.such.key"], v=4, until={"results.0.configs.0.name": "no.such.key"}),
        change(BROKER, "0", (DELETE, "no.such.key", None)),
        change(BROKER, "0", (SET, "num.io.threads", "many")),
        change(BROKER, "0", (SET, "num.io.threads", "500")),
        change(BROKER, "0", (SET, "log.retention.ms", "1"), validate_only=True),
        change(BROKER, "0", (SET, "listeners", "x")),
        change(BROKER, "1", (SET, "message.max.bytes", "1")),
        change(BROKER, "x", (SET, "message.max.bytes", "1")),
        change(BROKER, "0", (DELETE, "message.max.bytes", None)),
        change(BROKER, "", (DELETE, "log.cleanup.policy", None)),
        describe(BROKER, "0", ["message.max.bytes"], v=4, until={"results.0.configs.0.value": "100000"}),
        describe(BROKER, "0", ["log.cleanup.policy"], v=4, until={"results.0.configs.0.value": "delete"}),
        change(LOGGER, "0", (SET, "kafka.server.KafkaApis", "DEBUG")),
        describe(LOGGER, "0", ["kafka.server.KafkaApis"], v=4),
        change(LOGGER, "0", (DELETE, "kafka.server.KafkaApis", None)),
        change(LOGGER, "0", (SET, "kafka.server.KafkaApis", "LOUD")),
        change(LOGGER, "0", (SET, "kafka.server.KafkaApis", "info")),
        change(LOGGER, "0", (SET, "no.such.logger", "INFO")),
        change(LOGGER, "0", (APPEND, "kafka.server.KafkaApis", "INFO")),
        change(LOGGER, "0", (DELETE, "root", None)),
        change(LOGGER, "1", (SET, "root", "INFO")),
        change(LOGGER, "", (SET, "root", "INFO")),
    ),
    script(
        "client-metrics-described",
        DESCRIBE,
        "subscriptions to client metrics, which Kafka 3.9 has in KRaft mode only",
        describe(CLIENT_METRICS, "x"),
    ),
    script(
        "client-metrics-altered",
        ALTER,
        "subscriptions to client metrics, which Kafka 3.9 has in KRaft mode only",
        alter(CLIENT_METRICS, "x", metrics="a"),
    ),
    script(
        "client-metrics-changed",
        INCREMENTAL,
        "subscriptions to client metrics, which Kafka 3.9 has in KRaft mode only",
        change(CLIENT_METRICS, "x", (SET, "metrics", "1")),
    ),
]
