"""The brokers' `group.*` keys: what each is, which may change while brokers run, and what a change does to a group.

Left out are the keys of share and streams groups. What is changed is set back at the end
of each script: the brokers are shared.
"""

from __future__ import annotations

from compat_tests.differential.kafka_4.steps import beat, joins, next_to_4, reaches, seen, topic
from compat_tests.differential.script import Ask
from compat_tests.differential.scripts.configs import BROKER, DELETE, SET, change, describe
from kpybroker.wire.api import ApiKey

ALL, ONE = "", "0"
STATIC = 4
"""A value of the properties file."""
INTERVAL = "group.consumer.assignment.interval.ms"
VALUES = {
    "group.min.session.timeout.ms": "6000",
    "group.max.session.timeout.ms": "1800000",
    "group.initial.rebalance.delay.ms": "0",
    "group.max.size": "4",
    "group.coordinator.rebalance.protocols": "classic,consumer",
    "group.coordinator.threads": "1",
    "group.coordinator.append.linger.ms": "10",
    "group.consumer.session.timeout.ms": "45000",
    "group.consumer.min.session.timeout.ms": "45000",
    "group.consumer.max.session.timeout.ms": "60000",
    "group.consumer.heartbeat.interval.ms": "5000",
    "group.consumer.min.heartbeat.interval.ms": "5000",
    "group.consumer.max.heartbeat.interval.ms": "15000",
    "group.consumer.max.size": "4",
    "group.consumer.assignors": "uniform",
    INTERVAL: "0",
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.max.assignment.interval.ms": "15000",
    "group.consumer.migration.policy": "upgrade",
}
"""The keys with a value that each may have."""


def holds(name: str, value: str, **more: int) -> Ask:
    """Wait until the broker has this interval, and `more` of what is said of it."""
    until = {f"results.0.configs.0.{field}": expected for field, expected in {"value": value, **more}.items()}
    return describe(BROKER, name, [INTERVAL], v=4, until=until)


SCRIPTS = [
    next_to_4(
        "cg-config-keys",
        ApiKey.DESCRIBE_CONFIGS,
        "which keys may change, their types, defaults and sources",
        describe(BROKER, ONE, list(VALUES)),
        describe(BROKER, ONE, list(VALUES), include_synonyms=False),
        describe(BROKER, ALL, list(VALUES)),
    ),
    next_to_4(
        "cg-config-updates",
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        "each key, for one broker and for all",
        *(
            change(BROKER, name, (SET, key, value), validate_only=True)
            for key, value in VALUES.items()
            for name in (ALL, ONE)
        ),
    ),
    next_to_4(
        "cg-config-interval-refused",
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        "values that the interval may not have",
        *(
            change(BROKER, name, (SET, INTERVAL, value), validate_only=True)
            for name in (ALL, ONE)
            for value in ("", "x", "-1", "15001", "2147483648")
        ),
        holds(ONE, "0"),
    ),
    next_to_4(
        "cg-config-interval-changed",
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        "a longer interval defers an assignment; without one again it is computed at once",
        topic(),
        joins("a", "{t}"),
        reaches("a", 2, 2),
        change(BROKER, ALL, (SET, INTERVAL, "15000")),
        holds(ONE, "15000"),
        holds(ALL, "15000"),
        joins("b", "{t}"),
        beat("a", 2),
        seen("Assigning"),
        change(BROKER, ONE, (SET, INTERVAL, "0")),
        holds(ONE, "0"),
        beat("b", 2),
        seen("Reconciling"),
        change(BROKER, ONE, (DELETE, INTERVAL, None)),
        change(BROKER, ALL, (DELETE, INTERVAL, None)),
        holds(ONE, "0", config_source=STATIC),  # Kafka shows the value before it has forgotten the one for all
        versions=(1, 1),
    ),
]
