"""Which of the stored schemas is the wanted one: asked in batches, and known afterwards."""

from __future__ import annotations

import json

import pytest

from kpybroker.registry.errors import RegistryError
from kpybroker.registry.rules.library import BATCH_MAX, Library
from kpybroker.registry.schemas.model import Definition, Reference
from kpybroker.registry.store import contexts
from kpybroker.registry.store.state import State
from kpybroker.registry.texts.known import Known
from kpybroker.registry.texts.questions import OWN, Question, Unknown
from tests.registry.conftest import Direct

WANTED = Definition("AVRO", '{"type":"record","name":"R","fields":[{"name":"n","type":"int"}]}')
STORED = Definition("AVRO", json.dumps(json.loads(WANTED.text), indent=1))


def other(number: int) -> Definition:
    return Definition("AVRO", json.dumps({"type": "enum", "name": f"E{number}", "symbols": ["A"]}))


class Asked:
    """A library whose questions are counted, round by round."""

    def __init__(self) -> None:
        self.rounds: list[list[Question]] = []
        self._known = Known()
        self._desk = Direct()
        self._library = Library(State(), self._known)

    def same(self, wanted: Definition, stored: list[Definition], *, normalize: bool = False) -> Definition | None:
        while True:
            try:
                return self._library.same(wanted, stored, contexts.DEFAULT, normalize=normalize)
            except Unknown as unknown:
                self.rounds.append(unknown.questions)
                for question in unknown.questions:
                    self._known.keep(question, self._desk.ask(question, "test").result())


def test_questions_are_asked_in_batches_and_once() -> None:
    asked = Asked()
    stored = [*map(other, range(2 * BATCH_MAX)), STORED]
    assert asked.same(WANTED, stored) == STORED
    assert [len(one) for one in asked.rounds] == [BATCH_MAX, BATCH_MAX, 2], "the wanted one, and those stored"
    asked.rounds.clear()
    assert asked.same(WANTED, stored) == STORED
    assert asked.rounds == []
    assert asked.same(other(-1), stored) is None
    assert [[one.details[0] for one in each] for each in asked.rounds] == [["sought"]], "what is stored is known"


def test_what_stands_behind_the_one_that_is_found_is_not_asked_for_again() -> None:
    asked = Asked()
    assert asked.same(WANTED, [STORED]) == STORED
    assert asked.same(WANTED, [STORED, *map(other, range(BATCH_MAX))]) == STORED
    assert sum(map(len, asked.rounds)) == 2


def test_a_stored_schema_that_cannot_be_read_is_none() -> None:
    broken = Definition("AVRO", "{")
    gone = WANTED._replace(references=(Reference("a", "a", 1),))
    assert Asked().same(WANTED, [broken, gone, STORED]) == STORED
    assert Asked().same(WANTED, [broken, gone]) is None
    with pytest.raises(RegistryError):
        Asked().same(broken, [STORED])


def test_normalized_texts_count_where_that_is_asked_for() -> None:
    one, other_order = (
        Definition("JSON", text) for text in ('{"title":"x","type":"string"}', '{"type":"string","title":"x"}')
    )
    assert Asked().same(one, [other_order]) is None
    assert Asked().same(one, [other_order], normalize=True) == other_order
    assert [one.details for one in asked_of(one, other_order)] == [("sought", True), (OWN, True)]


def asked_of(wanted: Definition, stored: Definition) -> list[Question]:
    """The questions of one round."""
    asked = Asked()
    asked.same(wanted, [stored], normalize=True)
    return asked.rounds[0]
