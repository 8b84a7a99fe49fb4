"""Texts that ended or stopped the whole registry once are refused, and the next request gets its response."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing

import pytest

from kpybroker.registry.errors import RegistryError
from kpybroker.registry.texts.desk import Desk
from kpybroker.registry.texts.questions import COMPARE, IDENTIFY, READ, Question, Reply
from tests.registry.conftest import Direct, Registry

NAMES = {f"{'a' * 200}{number}": {"type": "string"} for number in range(3000)}
TEXTS = {
    "nested options behind a quote in a comment": (
        "PROTOBUF",
        f'// "\nsyntax = "proto3"; option (a) = {"{ a " * 4000};',
    ),
    "the same, closed": ("PROTOBUF", f'// "\nsyntax = "proto3"; option (a) = {"{ a " * 4000}{"}" * 4000};'),
    "line feeds": ("PROTOBUF", "\n" * 80_000 + "message {"),
    "comments that do not end": ("PROTOBUF", "/*a" * 27_000),
    "strings that do not end": ("PROTOBUF", "'" * 80_001),
}


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with closing(Desk()) as desk:
        desk.start()
        yield Registry(desk)


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_ends_a_parser_is_refused(registry: Registry, name: str) -> None:
    kind, text = TEXTS[name]
    body = {"schema": text, "schemaType": kind}
    assert registry.refused("POST", "/subjects/a/versions", body) == 42201
    assert registry.refused("POST", "/subjects/a", body) in (40401, 42201)
    assert registry.refused("POST", "/subjects/a/versions", body) == 42201, "from what is known"
    assert registry.register("after", '"int"') == registry.register("after", '"int"')


def test_a_pattern_is_tried_on_three_thousand_names(registry: Registry) -> None:
    closed = {"additionalProperties": False, "patternProperties": {"a*a*a*b": {"type": "integer"}}}
    registry.register("patterns", json.dumps(closed), schemaType="JSON")
    added = json.dumps({**closed, "properties": NAMES})
    assert registry.register("patterns", added, schemaType="JSON") > 0


def test_a_request_asks_for_all_versions_that_it_is_compared_with(registry: Registry) -> None:
    registry.call("PUT", "/config/many", {"compatibility": "FULL_TRANSITIVE"})
    for number in range(40):
        fields = [{"name": f"f{at}", "type": "int", "default": 0} for at in range(number)]
        registry.register("many", json.dumps({"type": "record", "name": "A", "fields": fields}))
    assert registry.refused("POST", "/subjects/many/versions", {"schema": '"int"'}) == 409


def test_what_is_known_asks_no_worker() -> None:
    class Counting(Direct):
        asked = 0

        def ask(self, question: Question, client: str) -> Future[Reply]:
            self.asked += 1
            return super().ask(question, client)

    counting = Counting()
    registry = Registry(counting)
    registry.register("a", '"int"')
    before = counting.asked
    registry.register("a", '"int"')
    registry.call("POST", "/subjects/a", {"schema": '"int"'})
    registry.register("b", '"int"')
    assert counting.asked == before


def test_a_desk_that_is_full_is_busy_and_not_the_schema_bad() -> None:
    class Full(Direct):
        def ask(self, question: Question, client: str) -> Future[Reply]:
            future: Future[Reply] = Future()
            future.set_exception(RegistryError(429, "Too many"))
            return future

    registry = Registry(Full())
    assert registry.refused("POST", "/subjects/a/versions", {"schema": '"int"'}) == 429
    assert registry.call("GET", "/subjects") == []


class Counting(Direct):
    """Says what was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def ask(self, question: Question, client: str) -> Future[Reply]:
        self.asked.append(question.what)
        return super().ask(question, client)


@pytest.mark.parametrize("kind", ["AVRO", "JSON", "PROTOBUF"])
def test_a_registration_asks_each_question_once(kind: str) -> None:
    texts = {
        "AVRO": ['{"type":"fixed","name":"F","size":1}', '{"type":"fixed","name":"F","size":1,"aliases":["G"]}'],
        "JSON": ['{"type":"string"}', '{"type":"string","title":"s"}'],
        "PROTOBUF": ["message A { }", "message A { } message B { }"],
    }[kind]
    desk = Counting()
    registry = Registry(desk)
    registry.register("a", texts[0], schemaType=kind)
    assert desk.asked == [READ]
    registry.register("a", texts[1], schemaType=kind)
    assert desk.asked[1:] == [READ, IDENTIFY, IDENTIFY, COMPARE]
    registry.register("a", texts[1], schemaType=kind)
    registry.call("POST", "/subjects/a", {"schema": texts[0], "schemaType": kind})
    registry.register("b", texts[0], schemaType=kind)
    assert len(desk.asked) == 5, "all is known"
