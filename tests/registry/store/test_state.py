"""What records add up to: the last of a key holds, ids stay unambiguous, and no bytes make it fail."""

from __future__ import annotations

import json
import random

from kpybroker.registry.schemas.model import Definition
from kpybroker.registry.store import records
from kpybroker.registry.store.records import Record, Version
from kpybroker.registry.store.state import State


def version(subject: str, number: int, identifier: int, text: str = "") -> Version:
    return Version(subject, number, identifier, Definition("AVRO", text or f'"{identifier}"'))


def state_of(*written: Record) -> State:
    state = State()
    for record in written:
        state.apply(*record)
    return state


def picture(state: State) -> object:
    """Everything that can be asked."""
    names = state.subjects(deleted=True)
    versions = [one for name in names for one in state.versions(name, deleted=True)]
    identifiers = sorted({one.id for one in versions})
    return versions, [(state.definition(one), list(state.places(one))) for one in identifiers]


def test_a_version_has_the_time_of_its_last_record() -> None:
    state = State()
    first = version("a", 1, 1)
    state.apply(*records.schema(first), 1000)
    assert state.version("a", 1) == first._replace(timestamp=1000)
    state.apply(*records.schema(first._replace(is_deleted=True)), 2000)
    assert state.version("a", 1) == first._replace(is_deleted=True, timestamp=2000)


def test_an_id_lives_as_long_as_a_version_has_it() -> None:
    one, other = records.schema(version("a", 1, 1)), records.schema(version("b", 1, 1))
    state = state_of(one, other, records.schema_removed("a", 1))
    assert state.definition(1) is not None
    state.apply(*records.schema_removed("b", 1))
    assert state.definition(1) is None
    assert state.id_of(Definition("AVRO", '"1"')) is None
    assert state.id_max() == 1, "it is not given away again"


def test_the_version_that_stands_for_an_id_follows_each_change() -> None:
    state = State()
    a, b = version("a", 1, 1), version("b", 1, 1)
    for record, timestamp, subject in (
        (records.schema(a), 2000, "a"),
        (records.schema(b), 1000, "b"),
        (records.schema(b._replace(is_deleted=True)), 3000, "a"),
        (records.subject_deleted("a", 1), 4000, "a"),
        (records.schema(b), 5000, "b"),
        (records.schema_removed("b", 1), 6000, "a"),
    ):
        assert state.apply(*record, timestamp) is None
        assert state.user(1).subject == subject
    state.apply(*records.subject_cleared("a"), 7000)
    assert state.definition(1) is None


def test_a_second_schema_with_the_same_id_is_ignored() -> None:
    state = state_of(records.schema(version("a", 1, 1)), records.schema(version("b", 1, 1, '"other"')))
    assert state.subjects() == ["a"]
    assert state.skipped == 1


def test_a_key_that_is_written_again_replaces_the_version() -> None:
    state = state_of(records.schema(version("a", 1, 1)), records.schema(version("a", 1, 2)))
    assert [one.id for one in state.versions("a")] == [2]
    assert state.definition(1) is None


def test_a_subject_is_deleted_up_to_a_version_and_cleared_whole() -> None:
    written = [records.schema(version("a", number, number)) for number in (1, 2, 3)]
    state = state_of(*written, records.subject_deleted("a", 2))
    assert [one.version for one in state.versions("a")] == [3]
    assert len(list(state.versions("a", deleted=True))) == 3
    state.apply(*records.subject_cleared("a"))
    assert state.subjects(deleted=True) == []
    state.apply(*written[0])
    state.apply(*records.subject_cleared(None))
    assert state.subjects(deleted=True) == []


def test_a_compacted_topic_adds_up_to_the_same_state() -> None:
    chance = random.Random(1)
    written: list[Record] = []
    for identifier in range(1, 300):
        subject, number = chance.choice("abc"), chance.randint(1, 4)
        made = version(subject, number, identifier)._replace(is_deleted=chance.random() < 0.3)
        written.append(records.schema_removed(subject, number) if chance.random() < 0.3 else records.schema(made))
    compacted = [record for at, record in enumerate(written) if all(record.key != one.key for one in written[at + 1 :])]
    assert len(compacted) < 20
    assert picture(state_of(*written)) == picture(state_of(*compacted))


def test_no_bytes_make_it_fail() -> None:
    good = records.schema(version("a", 1, 1))
    assert good.value is not None
    state = state_of(good)
    bad_values: list[object] = [
        [],
        {},
        {"id": "x"},
        {"schema": 1},
        {"subject": "a", "version": {}, "id": 1, "schema": ""},
        {"subject": "b", "version": 1, "id": float("inf"), "schema": ""},
        {"subject": "b", "version": float("nan"), "id": 1, "schema": ""},
    ]
    keys = [b"", b"\xff", b"[]", b"{}", b"[" * 100_000, good.key, b'{"keytype":"CONFIG","subject":1}']
    keys += [json.dumps({"keytype": kind, "subject": "a"}).encode() for kind in ("SCHEMA", "DELETE_SUBJECT", "X", 1)]
    for key in [None, *keys]:
        for value in [b"", b"\xff", b"[" * 100_000, *(json.dumps(one).encode() for one in bad_values)]:
            state.apply(key, value)
    assert state.skipped > 50
    assert state.subjects() == ["a"]


def test_a_removal_is_written_for_each_spelling_of_a_key() -> None:
    value = records.schema(version("a", 1, 1)).value
    keys = [
        b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":0}',
        b'{"version":1,"subject":"a","keytype":"SCHEMA"}',
    ]
    config = Record(
        b'{"subject": "a", "keytype": "CONFIG", "magic": 0}', b'{"subject":"a","compatibilityLevel":"FULL"}'
    )
    state = state_of(*(Record(key, value) for key in keys), config)
    removals = [records.schema_removed("a", 1), records.config("a", None), records.config("b", None)]
    written = state.spelled([*removals, records.schema(version("a", 1, 2))])
    removed = [one.key for one in written if one.value is None]
    assert removed == [removals[0].key, *keys, removals[1].key, config.key, removals[2].key]
    assert state_of(*(Record(key, value) for key in keys), config, *written[:-1]).subjects(deleted=True) == []
    for key in keys:
        state.apply(key, None)
    assert state.spelled(removals[:1]) == removals[:1], "they are removed already"
