"""ListTransactions 2 by a pattern (KIP-1152), and ListConfigResources 0-1 by types (KIP-1142)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compat_tests.differential.kafka_4.steps import next_to_4
from compat_tests.differential.kafka_4.topics import made
from compat_tests.differential.script import Ask, Names, Step, ask
from compat_tests.differential.scripts.configs import BROKER, CLIENT_METRICS, GROUP, LOGGER, SET, TOPIC, UNKNOWN, change
from compat_tests.differential.scripts.consumer_groups.cg_patterns import INVALID
from compat_tests.differential.transactional import LIST, begin
from kpybroker.wire.api import ApiKey

RESOURCES = ApiKey.LIST_CONFIG_RESOURCES
ENDINGS = (
    *("a", "b", "ab", "AB", "a.b", "a b", "42", "_x-y", "k", "\u212a", "s", "\u017f", ""),
    *("\u00e4", "\u00c4", "a\u0308", "\u00df", "\u1e9e", "\u03c3", "\u03c2", "\u03a3", "\u044f", "\u042f"),
    *("\u4e2d\u6587", "\u0663", "\u2028", "\u00a0", "\U0001f603", "\U0001d400", "\U00010428", "\U00010400"),
    *("\u0130", "\u0131", "i", "I", "\u01c5", "\u00e5", "\u212b", "\u03c9", "\u2126", "a\nb", "\ufffd", "\u1e900"),
)
"""Of transactional ids: ASCII, other letters in both cases, marks, digits, spaces, and code points of two units."""

PATTERNS: dict[str, tuple[str, ...]] = {
    "letters": (
        "a",
        "ab",
        "(?i)ab",
        "a|b",
        "a.b",
        "a\\.b",
        "\\Qa.b\\E",
        "",
        ".",
        "..",
        ".*",
        "(?s).*",
        "(?s)a.b",
        "a\\nb",
    ),
    "other-letters": (
        "\u00e4",
        "(?i)\u00e4",
        "(?i)\u00c4",
        "a\u0308",
        "\u4e2d.",
        "\U0001f603",
        "\\x{1F603}",
        "\\xe4",
        "\u00df",
    ),
    "folding": (
        *("(?i)k", "(?i)\u212a", "(?i)s", "(?i)\u017f", "(?i)\u00df", "(?i)\u1e9e", "(?i)\u03c3", "(?i)\u03a3"),
        *("(?i)\u03c2", "(?i)\u044f", "(?i)\u0130", "(?i)\u0131", "(?i)i", "(?i)\u01c6", "(?i)\u01c4", "(?i)\u212b"),
        *("(?i)\u2126", "(?i)\U00010400", "(?i)\U00010428", "(?i)[a-\u03ff]", "(?i)[\u0400-\u042f]", "(?i)[^\u00e4]"),
    ),
    "classes": (
        *(
            "[\u00e4]",
            "[^\u00e4]",
            "[^a]",
            "[a-z]",
            "[a-\u044f]",
            "[\u0430-\u044f]",
            "[^\\x00-\\x7f]",
            "[^\\x00-\\x7f]+",
        ),
        *("\\w", "\\W", "\\w+", "\\W+", "\\d+", "\\D+", "\\s", "\\S+", "[[:alpha:]]+", "[[:^alpha:]]+", "[[:^ascii:]]"),
        *("[\\U0001f603-\\U0001f64f]", "[\U0001f603-\U0001f64f]", "[^\U0001f603]", "[\\W\\d]+"),
    ),
    "categories": tuple(
        f"\\{sign}{name}"
        for sign in "pP"
        for name in ("L", "{Ll}", "{Lu}", "{Lt}", "M", "{Nd}", "Z", "{Zl}", "{So}", "{Any}", "{Co}", "P")
    ),
    "scripts": tuple(
        f"\\{sign}{{{name}}}+"
        for sign in "pP"
        for name in ("Greek", "Cyrillic", "Latin", "Han", "Common", "Arabic", "Inherited", "Deseret", "^Greek")
    ),
    "folded-classes": (
        *(
            "(?i)\\p{Lu}",
            "(?i)\\P{Lu}",
            "(?i)\\p{Lt}",
            "(?i)\\p{Greek}",
            "(?i)\\p{Latin}",
            "(?i)[[:upper:]]",
        ),
        *("(?i)\\w", "(?i)\\W", "(?i)[^[:lower:]]", "(?i)\\p{Cyrillic}+"),
    ),
    "places": ("^.$", "\\A.\\z", "(?m)^a$\\n^b$", "\\b.\\b", "\\B.\\B", ".\\b", "\\B.*\\b", "(?m)^.$", ".\\B"),
    "counts": (".{1}", ".{2}", ".{2,}", "a{1}", "[^a]{1,2}", ".{0}", ".{1000}", ".?", ".+?"),
}
"""What comes after the script's own part of a pattern."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern after the script's prefix. Braces in it are no names."""

    text: str
    prefix: str = "-"

    def build(self, names: Names) -> str:
        before = "".join(names["t"]) + self.prefix
        return f"{before}(?:{self.text})" if self.text else before


def by_pattern(pattern: Any, **options: Any) -> Ask:
    fields: dict[str, Any] = {"state_filters": [], "producer_id_filters": [], **options}
    only = {"transaction_states": "transactional_id={t}-"}
    return ask(LIST, only=only, transactional_id_pattern=pattern, v=2, **fields)


@dataclass(frozen=True, slots=True)
class Plain:
    """A pattern as it is."""

    text: str

    def build(self, names: Names) -> str:
        return self.text


def producers() -> list[Step]:
    return [begin("{t}-" + ending, f"p{number}") for number, ending in enumerate(ENDINGS)]


def resources(types: Sequence[int], prefix: str, **options: Any) -> Ask:
    return ask(RESOURCES, resource_types=list(types), only={"config_resources": f"resource_name={prefix}"}, **options)


TYPES: dict[str, tuple[Sequence[int], ...]] = {
    "one": tuple([kind] for kind in (TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP)),
    "wrong": tuple([kind] for kind in (UNKNOWN, 1, 3, 64, -1, 127, -128)),
    "several": ((TOPIC, GROUP), (GROUP, TOPIC), (TOPIC, TOPIC), (BROKER, LOGGER, BROKER), (TOPIC, 1), (1, TOPIC), ()),
}

SCRIPTS = [
    *(
        next_to_4(
            f"later-transactions-{what}",
            LIST,
            "ids that a pattern matches as a whole, in the language of RE2",
            producers(),
            [by_pattern(Pattern(text)) for text in patterns],
            versions=(2, 2),
        )
        for what, patterns in PATTERNS.items()
    ),
    next_to_4(
        "later-transactions-invalid",
        LIST,
        "patterns that are none, and the words for it (there are none in this response); an empty one and null are all",
        begin("{t}-a", "a"),
        [by_pattern(Plain(text)) for text in (*INVALID, "", "\u00e4(", "[\u00f6-\u00e4]", "\\p{\u00e4}")],
        by_pattern(None),
        versions=(2, 2),
    ),
    next_to_4(
        "later-transactions-filters",
        LIST,
        "a pattern together with states, producers and ages",
        begin("{t}-a", "a"),
        begin("{t}-b", "b"),
        *(
            by_pattern(Pattern("[ab]"), **filters)
            for filters in (
                {"state_filters": ["Empty"]},
                {"state_filters": ["Ongoing"]},
                {"state_filters": ["nonsense"]},
                {"producer_id_filters": ["{a}"]},
                {"producer_id_filters": ["{a}", "{b}"], "state_filters": ["Empty"]},
                {"duration_filter": 3_600_000},
                {"duration_filter": 0},
            )
        ),
        by_pattern(Plain("("), state_filters=["nonsense"]),
        by_pattern(Plain("("), producer_id_filters=[1]),
        versions=(2, 2),
    ),
    *(
        next_to_4(
            f"later-resources-{what}",
            RESOURCES,
            "the names of what has a configuration",
            made("{t}-a"),
            made("{t}-b", retention_ms=1000),
            change(GROUP, "{t}-g", (SET, "consumer.session.timeout.ms", "46000")),
            change(GROUP, "{t}-h", (SET, "consumer.session.timeout.ms", "46000")),
            ask(
                RESOURCES,
                v=1,
                resource_types=[GROUP],
                only={"config_resources": "resource_name={t}"},
                until={"config_resources.1.resource_type": GROUP},
                compared=False,
            ),
            [resources(types, prefix) for types in kinds for prefix in ("{t}", "0")],
        )
        for what, kinds in TYPES.items()
    ),
]
