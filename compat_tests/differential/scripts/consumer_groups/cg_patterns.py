"""Subscriptions by regular expression (RE2/J's), ConsumerGroupHeartbeat 1: valid or not, what they match, what changes.

All patterns of a group are resolved at most every ten seconds, so each script changes them in groups of their own.
"""

from __future__ import annotations

from typing import Any

from compat_tests.differential.kafka_4.steps import HEARTBEAT, beat, full, joins, leaves, next_to_4, topic, view
from compat_tests.differential.script import Ask, Step

VERSIONS = (1, 1)
INVALID = (
    *(
        "(",
        ")",
        "[",
        "[]",
        "*",
        "+",
        "?",
        "a**",
        "a++",
        "(?",
        "(?P<n",
        "(?P<n>a)(?P<n>b)",
        "\\",
        "a\\",
        "\\8",
        "(a)\\1",
    ),
    *("(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?>a)", "\\pX", "[b-a]", "[[:foo:]]", "\\xg", "(?z)a", "\\Z"),
)
VALID = (
    "",
    " ",
    "a||b",
    "(?i)A",
    "(?P<name>a)",
    "[[:alpha:]]+",
    "\\pL+",
    "\\Qa.b\\E",
    "a|",
    "^a$",
    "(?s).*",
    "\\d\\D\\w",
)


def by_pattern(member: str, pattern: str, **options: Any) -> Ask:
    """With the assignor whose choice does not depend on the order of ids, which are random."""
    return joins(member, subscribed_topic_regex=pattern, server_assignor="range", **options)


def resolved(member: str, pattern: str, epoch: int, wanted: int, **options: Any) -> list[Step]:
    """A member joins, and waits until the topics are found."""
    return [
        by_pattern(member, pattern, **options),
        beat(member, epoch, until={"member_epoch": wanted}, compared=False, **options),
        beat(member, wanted, **options),
    ]


def some_topics() -> list[Step]:
    return [*topic("{t}-a", 2, id_as="a"), *topic("{t}-b", 2, id_as="b"), *topic("{t}-c", 2, id_as="c")]


SCRIPTS = [
    next_to_4(
        "cg-patterns-invalid",
        HEARTBEAT,
        "texts that are not regular expressions, and the words for it; no group is made",
        *(by_pattern("a", pattern, group=f"{{t}}-{number}") for number, pattern in enumerate(INVALID)),
        *(view(f"{{t}}-{number}") for number in (0, 5)),
        topic(),
        joins("a", "{t}"),
        [beat("a", 2, subscribed_topic_regex=pattern) for pattern in INVALID],
        beat("a", 2),
        view(),
        versions=VERSIONS,
    ),
    next_to_4(
        "cg-patterns-valid",
        HEARTBEAT,
        "patterns that match no topic here; no pattern at all",
        *(by_pattern("a", pattern, group=f"{{t}}-{number}") for number, pattern in enumerate(VALID)),
        *(beat("a", 1, group=f"{{t}}-{number}", until={"error_code": 0}) for number in (0, 1)),
        versions=VERSIONS,
    ),
    next_to_4(
        "cg-pattern-alone",
        HEARTBEAT,
        "one member, two topics of three: the first response has none, the next epoch both",
        some_topics(),
        resolved("a", "{t}-[ab]", 1, 2),
        view(),
        full("a", 2, subscribed_topic_regex="{t}-[ab]", owned={"a": [0, 1], "b": [0, 1]}),
        beat("a", 2, subscribed_topic_regex="{t}-[ab]"),
        by_pattern("a", "{t}-[ab]"),
        beat("a", 2, subscribed_topic_regex=""),
        beat("a", 2, {}),
        beat("a", 3, {}),
        view(),
        leaves("a"),
        view(),
        versions=VERSIONS,
    ),
    next_to_4(
        "cg-pattern-none",
        HEARTBEAT,
        "a pattern that matches nothing, or only a part of a name",
        some_topics(),
        by_pattern("a", "{t}-"),
        by_pattern("b", "-[abc]", group="{t}-h"),
        [beat("a", 1), beat("b", 1, group="{t}-h")],
        view(),
        view("{t}-h"),
        leaves("a"),
        versions=VERSIONS,
    ),
    next_to_4(
        "cg-pattern-and-names",
        HEARTBEAT,
        "a member with a pattern and with names too, and one with names alone",
        some_topics(),
        resolved("a", "{t}-a", 2, 3, subscribed_topic_names=["{t}-b"], topic_partitions=[]),
        view(),
        joins("b", "{t}-c", "{t}-a", server_assignor="range"),
        view(),
        versions=VERSIONS,
    ),
    next_to_4(
        "cg-pattern-shared",
        HEARTBEAT,
        "members that have the same pattern: the second need not wait; it stays until the last of them leaves",
        some_topics(),
        resolved("a", "{t}-[ab]", 1, 2),
        by_pattern("b", "{t}-[ab]"),
        view(),
        by_pattern("c", "{t}-c"),
        beat("a", 2, {}),
        view(),
        leaves("a"),
        leaves("b"),
        view(),
        beat("c", 3, subscribed_topic_regex="", subscribed_topic_names=["{t}-c"]),
        beat("c", 6),
        view(),
        versions=VERSIONS,
    ),
    next_to_4(
        "cg-pattern-static",
        HEARTBEAT,
        "an instance with a pattern goes for a while, and its next member has the same one or another",
        some_topics(),
        resolved("a", "{t}-[ab]", 1, 2, instance_id="one"),
        leaves("a", -2, instance_id="one"),
        by_pattern("b", "{t}-[ab]", instance_id="one"),
        view(),
        leaves("b", -2, instance_id="one"),
        joins("c", "{t}-c", instance_id="one"),
        view(),
        leaves("c", -2, instance_id="one"),
        joins("d", "{t}-c", instance_id="one", subscribed_topic_regex=""),
        view(),
        versions=VERSIONS,
    ),
]
