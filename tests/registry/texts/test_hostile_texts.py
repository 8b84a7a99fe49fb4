"""Strangers' texts of all shapes: each gets a reply, no process but a worker ends, and nothing grows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing

import pytest

from kpybroker.registry.texts.desk import Desk
from kpybroker.registry.texts.questions import (
    CHECK_NAMES,
    COMPARE,
    FORMAT,
    IDENTIFY,
    READ,
    SOUGHT,
    Question,
    Reply,
    Source,
)
from tests.registry.texts.hostile import GOOD, hostile, table

COUNT = int(os.environ.get("KPYBROKER_TEST_HOSTILE_TEXTS", "66"))
PARTS = 6
REPLY_S = 300.0
"""For a loaded machine. No test waits for it."""
INVALID_SCHEMA = 42201
DETAILS: dict[str, tuple[str | int, ...]] = {
    COMPARE: ("FULL", 1),
    FORMAT: ("serialized",),
    IDENTIFY: (SOUGHT, True),
}


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with closing(Desk()) as made:
        made.start()
        yield made


def reply_of(desk: Desk, what: str, client: str, *sources: Source) -> Reply:
    return desk.ask(Question(what, sources, *DETAILS.get(what, ())), client).result(REPLY_S)


def test_a_text_is_the_same_for_the_same_number() -> None:
    assert list(table(60)) == [hostile(number) for number in range(60)]


@pytest.mark.parametrize("part", range(PARTS))
def test_each_text_gets_a_reply_and_so_do_others(desk: Desk, part: int) -> None:
    for number, one in enumerate(table(COUNT // PARTS, part * COUNT // PARTS)):
        source = Source(one.kind, one.text, {}, is_new=True)
        reply = reply_of(desk, READ, "a stranger", source)
        assert reply.code in (0, INVALID_SCHEMA), (one.name, reply)
        if reply.code == 0:
            assert reply_of(desk, COMPARE, "a stranger", source, source).code in (0, INVALID_SCHEMA), one.name
            for what in (IDENTIFY, CHECK_NAMES, FORMAT):
                assert reply_of(desk, what, "a stranger", source).code in (0, INVALID_SCHEMA), (one.name, what)
        good = Source(one.kind, f"{GOOD[one.kind]}{' ' * number}", {})
        assert reply_of(desk, READ, "somebody else", good).code == 0, one.name


@pytest.mark.parametrize("kind", ["oneOf", "anyOf"])
@pytest.mark.parametrize("count", [10, 100])
def test_a_union_of_a_hundred_definitions_of_one_another_is_compared(desk: Desk, kind: str, count: int) -> None:
    union = {kind: [{"$ref": f"#/definitions/K{number}"} for number in range(count)]}
    members = {"id": {"type": "string"}, "u": union}
    whole = {"definitions": {f"K{number}": {"type": "object", "properties": members} for number in range(count)}}
    old = Source("JSON", json.dumps({**whole, **union}), {})
    new = Source("JSON", json.dumps({**whole, **union, "description": "changed"}), {})
    whole["definitions"]["K3"] = {"type": "object", "properties": {**members, "id": {"type": "integer"}}}
    bad = Source("JSON", json.dumps({**whole, **union}), {})
    assert reply_of(desk, COMPARE, "a", new, old) == Reply([])
    assert reply_of(desk, COMPARE, "a", bad, old).value


def test_what_ends_a_worker_is_refused_with_a_reason_and_the_next_one_is_there(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kpybroker.registry.texts.desk.CPU_S_MAX", 0.05)
    monkeypatch.setattr("kpybroker.registry.texts.desk.QUICK_CPU_S", 0.01)
    definitions = {
        f"K{at}": {"anyOf": [{"title": f"{at} {to}", "items": {"$ref": f"#/definitions/K{to}"}} for to in range(40)]}
        for at in range(40)
    }
    slow = Source("JSON", json.dumps({"definitions": definitions, "$ref": "#/definitions/K0"}), {})
    refused = reply_of(desk, COMPARE, "a", slow, slow)
    assert refused.code == INVALID_SCHEMA
    assert "more than" in refused.why
    monkeypatch.undo()
    assert reply_of(desk, READ, "a", Source("AVRO", '"int"', {})) == Reply('"int"')
