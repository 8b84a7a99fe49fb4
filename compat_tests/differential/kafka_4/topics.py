"""Topics in every state that the id of a client can find them in, and the questions that are asked in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compat_tests.differential.grouped import commit, committed, part
from compat_tests.differential.kafka_4.steps import next_to_4
from compat_tests.differential.records import TIME, Batch
from compat_tests.differential.script import Ask, Script, Step, ask, gone, led
from compat_tests.differential.steps import create, produce
from kpybroker.wire.api import ApiKey

NO_ID = bytes(16)
SOME_ID = b"\x01" * 16
OTHER = "{t}-other"
ASKED = "{asked}"
"""In a question, the id that the client has."""
Probes = Mapping[str, Sequence[Step]]
"""Steps by what they ask about."""


def made(name: str = "{t}", partitions: int = 2, *, id_as: str = "id", **config: Any) -> list[Step]:
    """A topic that the broker leads; its id is bound."""
    wanted = create(name, partitions, bind={id_as: "topics.0.topic_id"}, compared=False, **config)
    return [wanted, *led({name: partitions})]


def deleted(topic_id: str = "{id}", name: str = "{t}") -> list[Step]:
    """The topic is gone, and what was committed for it."""
    return [
        ask(ApiKey.DELETE_TOPICS, v=6, topics=[{"name": None, "topic_id": topic_id}], timeout_ms=60_000),
        gone(name),
        committed(0, topic=name, v=9, until={"groups.0.topics.0.partitions.0.committed_offset": -1}, compared=False),
    ]


def grown(count: int) -> list[Step]:
    topics = [{"name": "{t}", "count": count, "assignments": None}]
    return [ask(ApiKey.CREATE_PARTITIONS, v=3, topics=topics, timeout_ms=60_000), *led({"{t}": count})]


def cut_to(offset: int) -> Step:
    places = [{"partition_index": 0, "offset": offset}]
    return ask(ApiKey.DELETE_RECORDS, v=2, topics=[{"name": "{t}", "partitions": places}], timeout_ms=60_000)


FILLED: list[Step] = [
    produce("{t}", Batch([(b"a", b"one", TIME), (b"b", b"two", TIME + 10)]), v=11),
    produce("{t}", Batch([(b"a", b"three", TIME + 5)]), v=11),
]
COMMITTED: list[Step] = [commit(part(0, 1, "note"), part(1, 0), v=9)]
AGAIN: list[Step] = [
    *made(),
    *FILLED,
    *COMMITTED,
    *deleted(),
    *made(id_as="new"),
    produce("{t}", Batch([(b"a", b"other", TIME + 7)]), v=11),
]


@dataclass(frozen=True, slots=True)
class State:
    """What was done to the topic `{t}`, and the id of it that the client has."""

    steps: Sequence[Step]
    topic_id: Any = "{id}"


STATES: Mapping[str, State] = {
    "empty": State(made()),
    "filled": State([*made(), *FILLED, *COMMITTED]),
    "compacted": State([*made(cleanup_policy="compact"), *FILLED, *COMMITTED]),
    "cut": State([*made(), *FILLED, *COMMITTED, cut_to(2)]),
    "grown": State([*made(partitions=1), *FILLED, *grown(2), *COMMITTED]),
    "deleted": State([*made(), *FILLED, *COMMITTED, *deleted()]),
    "again": State(AGAIN),
    "renewed": State(AGAIN, "{new}"),
    "unknown": State([*made(), *FILLED, *COMMITTED], SOME_ID),
    "zero": State([*made(), *FILLED, *COMMITTED], NO_ID),
}


def in_states(
    prefix: str, api: ApiKey, probes: Probes, *, states: Sequence[str] = tuple(STATES), versions: tuple[int, int]
) -> list[Script]:
    """A script for each state and each entry of `probes`, in which ASKED is the id that the client has.

    Every other one is wide: each state and each entry is among both halves.
    """
    scripts = []
    for row, state in enumerate(states):
        for column, (what, steps) in enumerate(probes.items()):
            played = next_to_4(
                f"{prefix}-{what}-{state}",
                api,
                f"{what}, of a topic that is {state}",
                made(OTHER, id_as="other"),
                STATES[state].steps,
                [holding(step, STATES[state].topic_id) for step in steps],
                versions=versions,
            )
            scripts.append(replace(played, is_wide=(row + column) % 2 == 1))
    return scripts


def holding(step: Step, topic_id: Any) -> Step:
    """The step with the id in the place of ASKED."""
    return replace(step, fields=_put(step.fields, topic_id)) if isinstance(step, Ask) else step


def _put(value: Any, topic_id: Any) -> Any:
    if value == ASKED:
        return topic_id
    if isinstance(value, Mapping):
        return {key: _put(inner, topic_id) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_put(inner, topic_id) for inner in value]
    return value
