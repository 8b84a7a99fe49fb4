"""The table of pairs with known verdicts, in `pairs/`: a row a line.

    OLD => NEW :: BACKWARD FORWARD :: REASON          of one type, `protobuf.txt` without its line `syntax`
    TYPE FIRST => SECOND => THIRD :: LEVELS :: REASON  in `histories.txt`, the levels at which THIRD may follow

The verdicts on Avro are those of Apache Avro 1.12.1, which was asked for each row; those on JSON Schema and Protobuf
follow the lists of changes of Confluent's registry.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kpybroker.registry.compatibility.check import Earlier, check
from kpybroker.registry.compatibility.levels import LEVELS
from kpybroker.registry.errors import RegistryError
from kpybroker.registry.schemas.model import Parsed
from kpybroker.registry.schemas.parse import parse

PAIRS = Path(__file__).with_name("pairs")
FILES = {"AVRO": "avro.txt", "JSON": "json.txt", "PROTOBUF": "protobuf.txt"}
ROWS_MIN = 200


class Row(NamedTuple):
    kind: str
    texts: list[str]
    verdict: str
    why: str

    def schemas(self) -> list[Parsed]:
        return [parse(self.kind, text, {}, is_new=True) for text in self.texts]


def rows(kind: str, file: str) -> Iterator[Row]:
    for line in (PAIRS / file).read_text(encoding="utf-8").splitlines():
        schemas, verdict, why = line.split(" :: ")
        if file == "histories.txt":
            kind, _, schemas = schemas.partition(" ")
        texts = schemas.split(" => ")
        if kind == "PROTOBUF":
            texts = [text if text.startswith("syntax") else f'syntax = "proto3"; {text}' for text in texts]
        yield Row(kind, texts, verdict, why)


ALL = [row for kind, file in FILES.items() for row in rows(kind, file)]
HISTORIES = list(rows("", "histories.txt"))


def named(row: Row) -> str:
    return f"{row.kind}: {row.why}"


def allowed(row: Row) -> set[str]:
    """The levels at which the last schema may follow the others."""
    *before, new = row.schemas()
    earlier = [Earlier(number, schema) for number, schema in enumerate(before, 1)]
    return {level for level in LEVELS if not check(level, new, earlier)}


@pytest.mark.parametrize("row", ALL, ids=named)
def test_a_pair_has_its_verdict_at_every_level(row: Row) -> None:
    backward, forward = (verdict == "yes" for verdict in row.verdict.split())
    of_direction = {"BACKWARD": backward, "FORWARD": forward, "FULL": backward and forward, "NONE": True}
    assert allowed(row) == {level for level in LEVELS if of_direction[level.removesuffix("_TRANSITIVE")]}


@pytest.mark.parametrize("row", HISTORIES, ids=named)
def test_transitive_levels_look_at_every_version(row: Row) -> None:
    assert allowed(row) == {"NONE", *row.verdict.split()}


@pytest.mark.parametrize("row", ALL, ids=named)
def test_every_schema_fits_itself_and_its_canonical_text(row: Row) -> None:
    for schema in row.schemas():
        for text in (schema.canonical, schema.normalized):
            again = parse(row.kind, text, {})
            assert check("FULL", again, [Earlier(1, schema)]) == []
            assert parse(row.kind, again.canonical, {}).canonical == again.canonical


def test_the_table_is_long_enough_and_has_no_row_twice() -> None:
    assert len(ALL) >= ROWS_MIN
    assert len({(row.kind, *row.texts) for row in ALL}) == len(ALL)
    assert {row.verdict for row in ALL} == {"yes yes", "yes no", "no yes", "no no"}


def test_the_first_schema_fits_and_another_type_does_not() -> None:
    avro, other = parse("AVRO", '"int"', {}), parse("JSON", "{}", {})
    for level in LEVELS:
        assert check(level, avro, []) == []
        found = check(level, other, [Earlier(1, avro)])
        assert ("different schema type" in "".join(found)) == (level != "NONE")


def test_unions_of_thousands_of_types_are_refused_and_end() -> None:
    names = [json.dumps([{"type": "record", "name": f"{one}{n}", "fields": []} for n in range(2000)]) for one in "ab"]
    old, new = (parse("AVRO", text, {}) for text in names)
    with pytest.raises(RegistryError) as caught:
        check("BACKWARD", new, [Earlier(1, old)])
    assert caught.value.code == 42201


def test_a_chain_of_types_that_is_too_deep_is_refused() -> None:
    chain = {f"n{number}": {"properties": {"next": {"$ref": f"#/definitions/n{number + 1}"}}} for number in range(5000)}
    text = json.dumps({"definitions": {**chain, "n5000": {"type": "string"}}, "$ref": "#/definitions/n0"})
    schema = parse("JSON", text, {}, is_new=True)

    def check_within(calls: int) -> None:
        if calls:
            check_within(calls - 1)
        else:
            check("FULL", schema, [Earlier(1, schema)])

    for calls in range(30):  # wherever the interpreter's limit is met
        with pytest.raises(RegistryError) as caught:
            check_within(calls)
        assert caught.value.code == 42201
