"""A group without members whose last offset is deleted: gone at once in Kafka 3.9, in 4.3 after the next cleanup."""

from __future__ import annotations

from compat_tests.differential.grouped import commit, committed, describe, drop, everything, joined, leave, part
from compat_tests.differential.kafka_4.steps import delete
from compat_tests.differential.script import Reference, Script, Step, ask, led, script
from compat_tests.differential.steps import create
from kpybroker.wire.api import ApiKey

LIST = ask(ApiKey.LIST_GROUPS, v=4, states_filter=[], only={"groups": "group_id={t}-"})
LAST = [
    *(drop("{t}", 0), LIST, drop("{t}", 0), drop("{t}", 7), drop("{t}-none", 0), drop("{t}", 1), describe(v=5)),
    *(everything(v=7), commit(part(1, 3), v=8), LIST, drop("{t}", 1), LIST, describe(v=5), delete(), drop("{t}", 0)),
    *(describe(v=5), LIST),
]
"""What is asked of a group with one offset, in partition 0."""
WAYS: dict[str, list[Step]] = {
    "simple": [commit(part(0, 5), v=8)],
    "left": [
        *joined("m"),
        commit(part(0, 5), member="{m}", generation="{m_gen}", v=8),
        leave(("{m}", None), v=5),
    ],
    "never-committed": [*joined("m"), leave(("{m}", None), v=5)],
}


TOPIC_GONE = [
    ask(ApiKey.DELETE_TOPICS, v=5, topic_names=["{t}"], timeout_ms=60_000),
    committed(0, v=7, until={"topics.0.partitions.0.committed_offset": -1}),
    *(LIST, describe(v=5), delete(), describe(v=5)),
]


def _scripts() -> list[Script]:
    return [
        script(
            f"last-offset-{what}-{way}{name}",
            api,
            f"the only offset of a group ({way}): {what}",
            create("{t}", partitions=2),
            led({"{t}": 2}) if reference is Reference.KAFKA_4_3 else [],
            reached,
            asked,
            versions=versions,
            reference=reference,
        )
        for what, api, asked, versions in (
            ("deleted", ApiKey.OFFSET_DELETE, LAST, (0, 0)),
            ("of-deleted-topic", ApiKey.DELETE_TOPICS, TOPIC_GONE, (5, 5)),
        )
        for way, reached in WAYS.items()
        for name, reference in (("", Reference.KAFKA_3_9), ("-next-to-4", Reference.KAFKA_4_3))
    ]


SCRIPTS = _scripts()
