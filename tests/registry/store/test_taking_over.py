"""Ours goes on where Confluent's registry stopped: the records that it wrote, and what it said of them, are a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any
from urllib.parse import quote

import pytest

from kpybroker.registry.store.state import State
from tests.registry.conftest import Registry
from tests.registry.store import taking_over
from tests.registry.store.taking_over import PICTURE, Topic, again, asked, pictured, steps

Form = Callable[[str], str]


@cache
def theirs() -> Topic:
    return taking_over.recorded()


def applied(records: Iterable[tuple[str, str | None, int]]) -> Registry:
    registry = Registry()
    for key, value, at in records:
        assert registry.service.apply(key.encode(), None if value is None else value.encode(), at) is None
    return registry


def ask(registry: Registry, method: str, path: str, body: Any) -> tuple[int, Any]:
    response = registry.http.request(method, path, json=body)
    return response.status_code, response.json()


def compacted() -> list[tuple[str, str | None, int]]:
    """What is left of the log when only the last record of each key is, and no removal."""
    last = {key: (key, value, at) for key, value, at in theirs().records}
    return [one for one in theirs().records if one == last[one[0]] and one[1] is not None]


def check_picture(registry: Registry) -> None:
    own = pictured(lambda *one: ask(registry, *one))
    for path, mine, their in zip(PICTURE, own, theirs().picture, strict=True):
        assert mine == their, path


def in_order(key: str) -> str:
    """Karapace's newer keys."""
    return key


def karapace(key: str) -> str:
    """As Karapace wrote keys before it had Confluent's order."""
    read = json.loads(key)
    return json.dumps({**{name: read[name] for name in read if name != "keytype"}, "keytype": read["keytype"]})


def legacy(key: str) -> str:
    """As the first releases of Confluent's registry did."""
    return key.replace('"magic":1', '"magic":0')


def null_subject(key: str) -> str:
    """As releases did that wrote members without a value."""
    return key.replace('{"keytype":"CONFIG",', '{"keytype":"CONFIG","subject":null,') if "subject" not in key else key


FORMS = (in_order, karapace, legacy, null_subject)


def of_karapace(value: str | None) -> str | None:
    """The members of a value in Karapace's order, with spaces, without the type of Avro, and with no references."""
    if value is None or '"schema":' not in value:
        return value
    read = json.loads(value)
    first = {name: read.pop(name) for name in ("subject", "version", "id", "schema", "deleted")}
    if read.get("schemaType") == "AVRO":
        del read["schemaType"]
    return json.dumps({**first, "references": [], **read})


@pytest.mark.parametrize("form", FORMS)
def test_other_forms_of_keys_and_values_mean_the_same(form: Form) -> None:
    registry = applied((form(key), of_karapace(value), at) for key, value, at in theirs().records)
    check_picture(registry)


@pytest.mark.parametrize("is_compacted", [False, True])
def test_all_is_there_as_it_was(is_compacted: bool) -> None:
    registry = applied(compacted() if is_compacted else theirs().records)
    check_picture(registry)
    versions = [one for one in theirs().picture[2] if one["subject"].split("-")[0] in ("avro", "json", "protobuf")]
    assert len(versions) == 3 * taking_over.OF_EACH_TYPE


@pytest.mark.wide
def test_nothing_is_written_where_it_is_registered_again() -> None:
    registry = applied(theirs().records)
    registry.leader.leads = False
    count = 0
    for step, body in again(theirs()):
        for method in (step, step._replace(path=step.path.replace("/versions", ""))):
            status, response = ask(registry, *method)
            assert (status, response.get("id"), response.get("version")) == (200, body["id"], body["version"]), step
            assert response["schema"] == body["schema"]
        count += 1
    assert count == 3 * taking_over.OF_EACH_TYPE
    assert registry.log.records == []


def test_the_text_that_is_given_is_found() -> None:
    """As producers with `auto.register.schemas=false` and `use.latest.version` ask."""
    registry = applied(theirs().records)
    for one in theirs().picture[2]:
        body = {name: one[name] for name in ("schema", "schemaType", "references", "metadata") if name in one}
        status, response = ask(registry, "POST", f"/subjects/{quote(one['subject'], safe='')}", body)
        assert (status, response.get("id"), response.get("version")) == (200, one["id"], one["version"]), one


def test_new_schemas_get_the_ids_that_follow() -> None:
    registry = applied(theirs().records)
    highest = max(one["id"] for one in theirs().picture[3] if not one["subject"].startswith(":"))
    assert registry.register("fresh", '{"type":"fixed","name":"Fresh","size":1}') == highest + 1
    assert ask(registry, "POST", "/subjects/:.staging:a/versions", {"schema": '"float"'})[1]["error_code"] == 42205


def test_what_is_written_for_the_same_requests_means_the_same() -> None:
    """Both topics have the same keys in the same order, and values that mean the same."""
    registry = Registry()
    for step, (status, body), (own_status, own) in zip(
        steps(), theirs().responses, asked(lambda *one: ask(registry, *one)), strict=True
    ):
        assert own_status == status, step
        if step.registers:
            assert (own["id"], own["version"], own["guid"]) == (body["id"], body["version"], body["guid"]), step
    written = [(json.loads(record.key), _meant(record.value)) for record in registry.log.records]
    theirs_written = [
        (json.loads(key), _meant(None if value is None else value.encode())) for key, value, _ in theirs().records
    ]
    assert [one for one in written if one[0]["keytype"] != "NOOP"] == [
        one for one in theirs_written if one[0]["keytype"] != "NOOP"
    ]
    assert [record.key.decode() for record in registry.log.records] == [
        key for key, _, _ in theirs().records if "NOOP" not in key
    ], "byte by byte: compaction compares them"


def _meant(value: bytes | None) -> Any:
    if value is None:
        return None
    read = json.loads(value)
    return {"schemaType": "AVRO", **read} if "schema" in read else read


@pytest.mark.parametrize("form", FORMS)
def test_removals_are_those_of_the_keys_that_are_there(form: Form) -> None:
    """What ours deletes for good is gone also after compaction."""
    written = [(form(key), value, at) for key, value, at in theirs().records]
    registry = applied(written)
    registry.call("DELETE", "/subjects/avro-1")
    registry.call("DELETE", "/subjects/avro-1?permanent=true")
    registry.call("DELETE", "/config/plain")
    registry.call("DELETE", "/config")
    last = {key: value for key, value, _ in written}
    last |= {
        record.key.decode(): None if record.value is None else record.value.decode() for record in registry.log.records
    }
    state = State()
    for key, value in last.items():
        state.apply(key.encode(), None if value is None else value.encode())
    assert "avro-1" not in state.subjects(deleted=True)
    assert (state.config("plain"), state.config(None)) == (None, None)
