"""Subscriptions to client metrics as a resource of configurations (type 16), next to Kafka 4.3.1.

Each script takes its subscriptions away at its end: the brokers are shared.
"""

from __future__ import annotations

from compat_tests.differential.kafka_4.client_metrics import ends, lists, sets, sub
from compat_tests.differential.kafka_4.steps import next_to_4
from compat_tests.differential.script import Ask, ask
from compat_tests.differential.scripts.configs import (
    ALTER,
    APPEND,
    CLIENT_METRICS,
    DELETE,
    DESCRIBE,
    INCREMENTAL,
    SET,
    SUBTRACT,
    alter,
    change,
    describe,
)
from kpybroker.wire.api import ApiKey

LIST = ApiKey.LIST_CONFIG_RESOURCES
KEYS = ["interval.ms", "metrics", "match"]
INTERVALS = ("100", "99", "0", "-1", "3600000", "3600001", " 500 ", "+500", "5e2", "", "x", "1.5", "2147483648")
METRICS = ("*", "", " ", "a", "a,b", " a , b ", "a,a", "a,,b", ",", "a,", "org.apache.kafka.", "*,a", "x" * 300)
MATCHES = (
    *("", "client_id=a", " client_id = a ", "client_id=a,client_software_name=b", "client_id=a,client_id=b"),
    *("client_id", "client_id=", "=a", "=", "==", "client_id=a=b", "client_id=a=", "client_id==a", "Client_id=a"),
    *("nope=a", "client_id=a,nope=b", "client_id=a,,client_id=b", "client_id=(", "client_id=[a", "client_id=a)"),
    *("client_id=*", "client_id=a**", "client_id=\\", "client_id=\\q", "client_id=(?i)a"),
    *("client_id=[[:alpha:]", "client_id=\\d+\\.\\w*", "client_id=a|b", "client_id=.*", "client_id=(?:a)b?c+"),
    *("client_instance_id=x", "client_software_version=4\\..*", "client_source_address=127\\..*"),
    *("client_source_port=[0-9]+", "client_id=^a$", "client_id=(?<n>a)", "client_id=\\pL", "client_id=\\Qa.\\E"),
)


def tries(key: str, value: str) -> list[Ask]:
    """Both ways of setting a value, without setting it."""
    return [
        change(CLIENT_METRICS, "{t}", (SET, key, value), validate_only=True),
        ask(
            ALTER,
            resources=[
                {
                    "resource_type": CLIENT_METRICS,
                    "resource_name": "{t}",
                    "configs": [{"name": key, "value": value}],
                }
            ],
            validate_only=True,
        ),
    ]


def values(key: str, *texts: str) -> list[Ask]:
    return [step for text in texts for step in tries(key, text)]


SCRIPTS = [
    next_to_4("cm-intervals", INCREMENTAL, "which intervals there are", values("interval.ms", *INTERVALS)),
    next_to_4("cm-prefixes", INCREMENTAL, "which lists of metrics there are", values("metrics", *METRICS)),
    *(
        next_to_4(f"cm-match-{n}", INCREMENTAL, "which patterns of clients there are", values("match", text))
        for n, text in enumerate(MATCHES)
    ),
    next_to_4(
        "cm-describe-nothing",
        DESCRIBE,
        "a subscription that is not there has the defaults; one without a name is refused",
        describe(CLIENT_METRICS, "{t}"),
        describe(CLIENT_METRICS, "{t}", KEYS, include_synonyms=False),
        describe(CLIENT_METRICS, "{t}", ["metrics", "nope"]),
        describe(CLIENT_METRICS, "{t}", ["nope"]),
        describe(CLIENT_METRICS, "{t}", [], include_documentation=True),
        describe(CLIENT_METRICS, "{t}", include_documentation=True),
        describe(CLIENT_METRICS, ""),
    ),
    next_to_4(
        "cm-describe",
        DESCRIBE,
        "what is set, with its source and synonyms",
        sets(sub("", ("interval.ms", " 5000 "), ("metrics", " a , b,a"), ("match", "client_id = x "))),
        describe(CLIENT_METRICS, "{t}"),
        describe(CLIENT_METRICS, "{t}", include_synonyms=False),
        describe(CLIENT_METRICS, "{t}", ["metrics", "nope"]),
        describe(CLIENT_METRICS, "{t}", include_documentation=True),
        ends(""),
        describe(CLIENT_METRICS, "{t}"),
    ),
    *(
        next_to_4(
            f"cm-name-{n}",
            INCREMENTAL,
            "any name can be that of a subscription, but the empty one",
            change(CLIENT_METRICS, name, (SET, "interval.ms", "1000"), validate_only=True),
            change(CLIENT_METRICS, name, (SET, "interval.ms", "1"), validate_only=True),
            change(CLIENT_METRICS, name, (APPEND, "metrics", "a"), validate_only=True),
            change(CLIENT_METRICS, name, (DELETE, "metrics", None), validate_only=True),
            change(CLIENT_METRICS, name, validate_only=True),
        )
        for n, name in enumerate(("", " ", ".", "..", "<default>", "a/b", "\u00e9%", "x" * 300))
    ),
    *(
        next_to_4(
            f"cm-odd-names-{n}",
            LIST,
            "such a subscription is kept, listed and described",
            sets([(name, [("metrics", "a")])]),
            lists(name),
            describe(CLIENT_METRICS, name, v=4),
            change(CLIENT_METRICS, name, (DELETE, "metrics", None)),
            lists(),
        )
        for n, name in enumerate((".", "..", "<default>", "a/b c", "\u00e9%", "x" * 249))
    ),
    next_to_4(
        "cm-operations",
        INCREMENTAL,
        "kinds of operations on one key, and keys that there are not",
        *(
            change(CLIENT_METRICS, "{t}", (operation, key, value), validate_only=True)
            for operation in (SET, DELETE, APPEND, SUBTRACT)
            for key, value in (("metrics", "a"), ("match", "client_id=a"), ("interval.ms", "100"), ("nope", "a"))
        ),
        change(CLIENT_METRICS, "{t}", (SET, "metrics", None), validate_only=True),
        change(CLIENT_METRICS, "{t}", (APPEND, "metrics", None), validate_only=True),
        change(CLIENT_METRICS, "{t}", (SET, "metrics", "a"), (SET, "metrics", "b"), validate_only=True),
        change(CLIENT_METRICS, "{t}", (SET, "no", "a"), (SET, "nope", "b"), validate_only=True),
        change(CLIENT_METRICS, "{t}", (SET, "interval.ms", "1"), (SET, "match", "x"), validate_only=True),
        change(CLIENT_METRICS, "{t}", (SET, "interval.ms", "x"), (SET, "match", "x"), validate_only=True),
        change(CLIENT_METRICS, "{t}", (SET, "metrics", "a,,b"), (SET, "interval.ms", "x"), validate_only=True),
        describe(CLIENT_METRICS, "{t}", v=4),
    ),
    next_to_4(
        "cm-keys-one-by-one",
        INCREMENTAL,
        "keys are kept, changed and removed one by one; with the last the subscription is gone",
        sets(sub("", ("metrics", "a"))),
        change(CLIENT_METRICS, "{t}", (SET, "interval.ms", "1000")),
        describe(CLIENT_METRICS, "{t}", ["interval.ms"], v=4, until={"results.0.configs.0.value": "1000"}),
        describe(CLIENT_METRICS, "{t}", v=4),
        change(CLIENT_METRICS, "{t}", (DELETE, "metrics", None), (SET, "match", "client_id=x")),
        change(CLIENT_METRICS, "{t}", (SET, "interval.ms", "1")),
        change(CLIENT_METRICS, "{t}", (DELETE, "match", None)),
        change(CLIENT_METRICS, "{t}", (DELETE, "match", None), (DELETE, "interval.ms", None)),
        lists(),
        change(CLIENT_METRICS, "{t}", (DELETE, "interval.ms", None)),
        change(CLIENT_METRICS, "{t}"),
        lists(),
    ),
    next_to_4(
        "cm-replaced",
        ALTER,
        "AlterConfigs replaces everything, and removes with nothing",
        alter(CLIENT_METRICS, "{t}", metrics="a", interval_ms="1000"),
        lists("{t}"),
        alter(CLIENT_METRICS, "{t}", validate_only=True, match="x"),
        alter(CLIENT_METRICS, "{t}", nope="x"),
        alter(CLIENT_METRICS, "{t}", metrics=None),
        alter(CLIENT_METRICS, "", metrics="a"),
        alter(CLIENT_METRICS, "{t}"),
        lists(),
    ),
    next_to_4(
        "cm-resources-twice",
        INCREMENTAL,
        "a resource that is named twice is refused, and the others are not",
        ask(
            INCREMENTAL,
            resources=[
                {
                    "resource_type": CLIENT_METRICS,
                    "resource_name": name,
                    "configs": [{"config_operation": SET, "name": "metrics", "value": "a"}],
                }
                for name in ("{t}", "{t}-2", "{t}")
            ],
            validate_only=True,
        ),
    ),
    next_to_4(
        "cm-listed",
        LIST,
        "by their type, with others, and by the version that knows no other",
        sets(sub("", ("metrics", "a")), sub("-2", ("interval.ms", "100"))),
        lists("{t}", "{t}-2"),
        ask(LIST, v=1, resource_types=[CLIENT_METRICS, 32], only={"config_resources": "resource_type=16"}),
        ask(LIST, v=0),
        ends("", "-2"),
    ),
]
