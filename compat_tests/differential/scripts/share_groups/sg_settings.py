"""The `share.*` settings of a group: values that are refused, what is shown then, and bounds of the broker.

All is validated only, or about a group of the script's own: the brokers are shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compat_tests.differential.grouped import G
from compat_tests.differential.kafka_4.share_steps import sets
from compat_tests.differential.kafka_4.steps import next_to_4
from compat_tests.differential.script import Script
from compat_tests.differential.scripts.configs import (
    APPEND,
    BROKER,
    DELETE,
    GROUP,
    SET,
    SUBTRACT,
    alter,
    change,
    describe,
)
from kpybroker.wire.api import ApiKey

NUMBERS = ("", " ", "x", "-1", "0", "1", "1.5", "2147483648", "9223372036854775808", None)
WORDS = ("", " ", "x", None)
VALUES: dict[str, Sequence[str | None]] = {
    "share.session.timeout.ms": (*NUMBERS, "44999", "45000", "60000", "60001"),
    "share.heartbeat.interval.ms": (*NUMBERS, "4999", "5000", "15000", "15001"),
    "share.record.lock.duration.ms": (*NUMBERS, "999", "1000", "60000", "60001"),
    "share.delivery.count.limit": (*NUMBERS, "2", "10", "11"),
    "share.partition.max.record.locks": (*NUMBERS, "99", "100", "4000", "4001"),
    "share.assignment.interval.ms": (*NUMBERS, "15000", "15001"),
    "share.isolation.level": (*WORDS, "read_committed", "READ_COMMITTED", " read_committed ", "serializable"),
    "share.renew.acknowledge.enable": (*WORDS, "true", "FALSE", " True ", "1", "yes"),
    "share.auto.offset.reset": (
        *WORDS,
        *("latest", "Latest", " earliest ", "EARLIEST", "none", "by_duration", "by_duration:", "by_duration:x"),
        *("by_duration:P1D", "by_duration:P1DT1H", "by_duration:pt1.5s", "by_duration:-PT1S", "by_duration:PT-1S"),
        *("by_duration:PT0S", "by_duration:P1Y", "by_duration:P1M", "by_duration:P1W", "by_duration:P"),
        *("by_duration:PT", "by_duration:P1DT", "by_duration:PT1H:2", "BY_DURATION:PT1H", " by_duration:PT1H "),
        *("by_duration: PT1H", "by_duration:PT1,5S", "by_duration:P99999999999999999999D"),
        *("by_duration:PT1.1234567891S", "by_duration:P+1D", "by_duration:+P1D", "by_duration:PT1H-30M"),
    ),
}
"""Each key with values that it may and may not have."""
BROKER_KEYS = {
    "group.share.session.timeout.ms": "50000",
    "group.share.min.session.timeout.ms": "45000",
    "group.share.max.session.timeout.ms": "60000",
    "group.share.heartbeat.interval.ms": "6000",
    "group.share.min.heartbeat.interval.ms": "5000",
    "group.share.max.heartbeat.interval.ms": "15000",
    "group.share.max.size": "10",
    "group.share.assignors": "simple",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.assignment.interval.ms": "0",
    "group.share.max.assignment.interval.ms": "15000",
    "group.share.initialize.retry.interval.ms": "30000",
    "group.share.delivery.count.limit": "5",
    "group.share.min.delivery.count.limit": "2",
    "group.share.max.delivery.count.limit": "10",
    "group.share.record.lock.duration.ms": "30000",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.max.record.lock.duration.ms": "60000",
    "group.share.partition.max.record.locks": "2000",
    "group.share.min.partition.max.record.locks": "100",
    "group.share.max.partition.max.record.locks": "4000",
    "group.share.max.share.sessions": "12",
    "share.fetch.purgatory.purge.interval.requests": "1000",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.append.linger.ms": "5",
    "share.coordinator.snapshot.update.records.per.snapshot": "500",
}
"""Keys of brokers with a value that each may have."""
ALL, ONE = "", "0"


def _wide(script: Script) -> Script:
    return replace(script, is_wide=True)


SCRIPTS = [
    *(
        _wide(
            next_to_4(
                f"sg-setting-{key}",
                ApiKey.INCREMENTAL_ALTER_CONFIGS,
                "values that it may and may not have, one after the other",
                *(change(GROUP, G, (SET, key, value), validate_only=True) for value in values),
                *(change(GROUP, G, (SET, key, value)) for value in values),
                *(change(GROUP, G, (operation, key, values[-2])) for operation in (APPEND, SUBTRACT)),
                change(GROUP, G, (DELETE, key, None)),
                change(GROUP, G, (DELETE, key, None)),
            )
        )
        for key, values in VALUES.items()
    ),
    _wide(
        next_to_4(
            "sg-settings-together",
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            "good and bad ones, the same one twice, keys of other kinds, groups of odd names",
            *sets(("share.session.timeout.ms", "50000")),
            change(
                GROUP,
                G,
                (SET, "share.delivery.count.limit", "7"),
                (SET, "share.heartbeat.interval.ms", "4"),
            ),
            change(
                GROUP,
                G,
                (SET, "share.delivery.count.limit", "7"),
                (SET, "share.delivery.count.limit", "8"),
            ),
            change(GROUP, G, (SET, "share.delivery.count", "7")),
            change(GROUP, G, (SET, "group.share.delivery.count.limit", "7")),
            change(GROUP, G, (SET, "cleanup.policy", "compact")),
            change(GROUP, G, (SET, "share.session.timeout.ms", "45000"), (SET, "share.heartbeat.interval.ms", "5000")),
            change(GROUP, G, (SET, "consumer.session.timeout.ms", "45000"), (SET, "share.session.timeout.ms", "9")),
            change(GROUP, "", (SET, "share.delivery.count.limit", "7")),
            change(GROUP, "a b/c", (SET, "share.delivery.count.limit", "7"), validate_only=True),
            change(GROUP, G),
            describe(GROUP, G, ["share.session.timeout.ms"], until={"results.0.configs.0.value": "45000"}),
            describe(GROUP, G, ["share.session.timeout.ms", "share.delivery.count.limit"]),
            describe(GROUP, ""),
            describe(GROUP, "{t}-none", ["share.auto.offset.reset", "no.such.key"]),
        )
    ),
    _wide(
        next_to_4(
            "sg-settings-replaced",
            ApiKey.ALTER_CONFIGS,
            "AlterConfigs replaces all of them",
            *sets(("share.session.timeout.ms", "50000"), ("share.delivery.count.limit", "7")),
            alter(GROUP, G, share_delivery_count_limit="99"),
            alter(GROUP, G, validate_only=True, share_delivery_count_limit="6"),
            alter(GROUP, G, share_delivery_count_limit=None),
            alter(GROUP, G, share_delivery_count_limit="6"),
            describe(GROUP, G, ["share.delivery.count.limit"], v=4, until={"results.0.configs.0.value": "6"}),
            describe(GROUP, G, ["share.session.timeout.ms"], v=4),
        )
    ),
    _wide(
        next_to_4(
            "sg-settings-shown",
            ApiKey.DESCRIBE_CONFIGS,
            "each with its type, default and synonyms, of a group that has nothing and of one that has some",
            describe(GROUP, "{t}-none", list(VALUES)),
            *sets(("share.isolation.level", "read_committed"), ("share.partition.max.record.locks", "150")),
            describe(GROUP, G, list(VALUES)),
            describe(GROUP, G, list(VALUES), include_synonyms=False),
        )
    ),
    _wide(
        next_to_4(
            "sg-settings-of-brokers",
            ApiKey.DESCRIBE_CONFIGS,
            "which keys may change, their types, defaults and sources",
            describe(BROKER, ONE, list(BROKER_KEYS)),
            describe(BROKER, ALL, list(BROKER_KEYS)),
        )
    ),
    _wide(
        next_to_4(
            "sg-settings-of-brokers-changed",
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            "each key, for one broker and for all; nothing is kept",
            *(
                change(BROKER, name, (SET, key, value), validate_only=True)
                for key, good in BROKER_KEYS.items()
                for name in (ALL, ONE)
                for value in (good, "-1", "x", "99999999")
            ),
        )
    ),
]
