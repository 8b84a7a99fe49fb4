"""OffsetCommit 10 and OffsetFetch 10: topics by their ids, of which some are those of topics that were made again."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.grouped import G, part
from compat_tests.differential.kafka_4.topics import ASKED, NO_ID, SOME_ID, Probes, in_states
from compat_tests.differential.script import Ask, ask
from kpybroker.wire.api import ApiKey

COMMIT, FETCH = ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH
VERSION = 10
Place = tuple[Any, list[Any]]
"""A topic id, and its partitions."""


def commit(*topics: Place, group: str = G, **options: Any) -> Ask:
    entries = [{"topic_id": topic_id, "partitions": parts} for topic_id, parts in topics]
    fields: dict[str, Any] = {"member_id": "", "generation_id_or_member_epoch": -1, **options}
    return ask(COMMIT, group_id=group, topics=entries, v=VERSION, **fields)


def asked(*topics: Place, group: str = G, **options: Any) -> dict[str, Any]:
    entries = [{"topic_id": topic_id, "partition_indexes": indexes} for topic_id, indexes in topics]
    return {"group_id": group, "topics": entries, **options}


def fetch(*groups: dict[str, Any], require_stable: bool = False) -> Ask:
    return ask(FETCH, groups=list(groups), require_stable=require_stable, v=VERSION)


EVERYTHING = {"group_id": G, "topics": None}
SEEN = [
    fetch(asked((ASKED, [0, 1, 7]))),
    fetch(EVERYTHING),
    ask(FETCH, v=9, groups=[{"group_id": G, "topics": [{"name": "{t}", "partition_indexes": [0, 1, 7]}]}]),
    ask(FETCH, v=9, groups=[EVERYTHING]),
]
"""What is committed, by the id, for all topics, by the name, and for all topics before ids."""

COMMIT_PROBES: Probes = {
    "places": [
        commit((ASKED, [part(0, 11, "m", 3)])),
        commit((ASKED, [part(7, 1)])),
        commit((ASKED, [part(0, 12), part(7, 1), part(-1, 1)])),
        commit((ASKED, [])),
        commit(),
        *SEEN,
    ],
    "twice": [
        commit((ASKED, [part(0, 21)]), (ASKED, [part(1, 22)])),
        commit((ASKED, [part(0, 23), part(0, 24)])),
        commit((ASKED, [part(0, 25)]), (ASKED, [part(0, 26)])),
        *SEEN,
    ],
    "mixed": [
        commit((ASKED, [part(0, 31)]), (SOME_ID, [part(0, 1), part(5, 1)]), ("{other}", [part(0, 32)])),
        commit((NO_ID, [part(0, 1)]), (ASKED, [part(1, 33)])),
        commit((SOME_ID, [part(0, 1)]), (NO_ID, [part(0, 1)]), (SOME_ID, [part(1, 1)])),
        *SEEN,
    ],
    "refused": [
        commit((ASKED, [part(0, 41, "x" * 4097)])),
        commit((ASKED, [part(0, -5)])),
        commit((ASKED, [part(0, 42)]), member_id="who"),
        commit((ASKED, [part(0, 42)]), generation_id_or_member_epoch=5),
        commit((ASKED, [part(0, 42)]), member_id="who", generation_id_or_member_epoch=5),
        commit((ASKED, [part(0, 42)]), group=""),
        commit((ASKED, [part(0, 42)]), group="{t}-none", member_id="who", generation_id_or_member_epoch=1),
        commit((ASKED, [part(0, 42)]), group_instance_id="none"),
        *SEEN,
    ],
}

FETCH_PROBES: Probes = {
    "places": [*SEEN, fetch(asked((ASKED, []))), fetch(asked()), fetch(asked((ASKED, [0])), require_stable=True)],
    "mixed": [
        fetch(asked((ASKED, [0]), (SOME_ID, [0, 3]), ("{other}", [0]))),
        fetch(asked((NO_ID, [0]), (ASKED, [1, 0]))),
        fetch(asked((SOME_ID, [0]), (NO_ID, []))),
    ],
    "twice": [
        fetch(asked((ASKED, [0]), (ASKED, [1]))),
        fetch(asked((ASKED, [0, 0]))),
        fetch(asked((ASKED, [0]), ("{other}", [0]), (ASKED, [0]))),
    ],
    "groups": [
        fetch(asked((ASKED, [0])), asked((ASKED, [0, 1]), group="{t}-none"), EVERYTHING),
        fetch(asked((ASKED, [0])), asked((ASKED, [0]))),
        fetch(asked((ASKED, [0]), group="")),
        fetch(asked((ASKED, [0]), member_id="who", member_epoch=1)),
        fetch(asked((ASKED, [0]), member_id="who", member_epoch=-1)),
        fetch(asked((ASKED, [0]), member_id="", member_epoch=-1)),
        fetch({**EVERYTHING, "member_id": "who", "member_epoch": 1}),
    ],
}

SCRIPTS = [
    *in_states("id-commit", COMMIT, COMMIT_PROBES, versions=(VERSION, VERSION)),
    *in_states("id-committed", FETCH, FETCH_PROBES, versions=(VERSION, VERSION)),
]
