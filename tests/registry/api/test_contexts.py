"""Contexts: ids, subjects, configurations and modes of their own, by qualified names and by paths."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kpybroker.registry.api.context_paths import rewritten
from kpybroker.registry.service import Service
from kpybroker.registry.store import contexts
from tests.registry.conftest import Direct, Registry

ITEM = '{"type":"record","name":"Item","fields":[]}'
CART = '{"type":"record","name":"Cart","fields":[{"name":"item","type":"Item"}]}'


def reference(subject: str, version: int = 1) -> list[dict[str, Any]]:
    return [{"name": "Item", "subject": subject, "version": version}]


def test_each_context_counts_its_own_ids(registry: Registry) -> None:
    assert registry.register(":.one:a", '"int"') == 1
    assert registry.register(":.two:a", '"long"') == 1
    assert registry.register(":.two:b", '"string"') == 2
    assert registry.register("a", '"bytes"') == 1
    assert registry.register(":.:b", '"bytes"') == 1, "the default context by its name"
    texts = {
        subject: registry.call("GET", f"/schemas/ids/1?subject={subject}")["schema"]
        for subject in (":.one:", ":.one:a", ":.two:", "a", "", "unknown")
    }
    assert texts == {
        ":.one:": '"int"',
        ":.one:a": '"int"',
        ":.two:": '"long"',
        "a": '"bytes"',
        "": '"bytes"',
        "unknown": '"bytes"',
    }
    assert registry.refused("GET", "/schemas/ids/1?subject=:.one:b") == 40403, "it has a, and not b"
    assert registry.refused("GET", "/schemas/ids/2") == 40403
    assert registry.call("GET", "/schemas/ids/2?subject=:.two:&fetchMaxId=true")["maxId"] == 2
    assert registry.call("GET", "/schemas/ids/1/subjects") == ["a", "b"]
    assert registry.call("GET", "/schemas/ids/1/versions?subject=:.one:") == [{"subject": ":.one:a", "version": 1}]


def test_a_name_without_a_context_is_looked_for_in_all(registry: Registry) -> None:
    registry.register(":.two:a", '"long"')
    registry.register(":.one:a", '"int"')
    registry.register("other", '"bytes"')
    assert registry.call("GET", "/subjects/a/versions/1")["subject"] == ":.one:a", "the first by name"
    assert registry.call("POST", "/subjects/a", {"schema": '"long"'})["subject"] == ":.two:a"
    assert registry.refused("GET", "/subjects/a/versions") == 40401, "lists are of one context"
    assert registry.refused("POST", "/subjects/:.one:a", {"schema": '"long"'}) == 40403
    assert registry.call("GET", "/schemas/ids/1?subject=a")["schema"] == '"int"'
    registry.register("a", '"boolean"')
    assert registry.call("GET", "/subjects/a/versions/1")["subject"] == "a"


def test_lists_are_of_all_contexts_or_of_one(registry: Registry) -> None:
    for subject in (":.one:cart", ":.one:item", ":.two:cart", "cart", "zoo"):
        registry.register(subject, '"int"')
    lists = {
        query: registry.call("GET", f"/subjects{query}")
        for query in ("", "?subjectPrefix=", "?subjectPrefix=:*:", "?subjectPrefix=:*:ca", "?subjectPrefix=:.one:i")
    }
    everything = [":.one:cart", ":.one:item", ":.two:cart", "cart", "zoo"]
    assert lists == {
        "": everything,
        "?subjectPrefix=": ["cart", "zoo"],
        "?subjectPrefix=:*:": everything,
        "?subjectPrefix=:*:ca": [":.one:cart", ":.two:cart", "cart"],
        "?subjectPrefix=:.one:i": [":.one:item"],
    }
    assert [one["subject"] for one in registry.call("GET", "/schemas")] == ["cart", "zoo"]
    assert len(registry.call("GET", "/schemas?subjectPrefix=:*:")) == 5
    assert registry.call("GET", "/contexts") == [".", ".one", ".two"]
    assert registry.call("GET", "/contexts?contextPrefix=.t") == [".two"]
    assert registry.call("GET", "/contexts?offset=1&limit=1") == [".one"]


def test_a_reference_is_to_the_context_of_what_refers(registry: Registry) -> None:
    registry.register(":.one:item", ITEM)
    registry.register("shared", ITEM)
    registry.register(":.one:cart", CART, references=reference("item"))
    assert registry.refused("POST", "/subjects/cart/versions", {"schema": CART, "references": reference("item")}) == (
        42201
    )
    latest = registry.register(":.two:cart", CART, references=reference(":.one:item", -1))
    assert latest == 1, "a reference may name another context"
    assert registry.call("GET", "/subjects/:.one:item/versions/1/referencedby") == [1, 2]
    assert registry.refused("DELETE", "/subjects/:.one:item") == 42206
    got = registry.call("GET", "/schemas/ids/2?subject=:.one:&format=resolved")
    assert json.loads(got["schema"])["fields"][0]["type"]["name"] == "Item"
    assert got["references"] == reference("item"), "as they were registered"


def test_settings_of_a_context_hold_for_its_subjects(registry: Registry) -> None:
    registry.register(":.one:a", '"int"')
    assert registry.call("PUT", "/config/:.one:", {"compatibility": "NONE"}) == {"compatibility": "NONE"}
    assert registry.register(":.one:a", '"string"') == 2
    assert registry.call("GET", "/config/:.one:b?defaultToGlobal=true") == {"compatibilityLevel": "NONE"}
    assert registry.call("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    assert registry.refused("GET", "/config/:.one:b") == 40408
    registry.call("PUT", "/config/:.__GLOBAL:", {"compatibility": "FULL"})
    assert registry.call("GET", "/config/:.two:a?defaultToGlobal=true") == {"compatibilityLevel": "FULL"}
    assert registry.call("GET", "/config?defaultToGlobal=true") == {"compatibilityLevel": "FULL"}
    assert registry.call("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    registry.call("PUT", "/mode/:.one:", {"mode": "READONLY"})
    assert registry.refused("POST", "/subjects/:.one:c/versions", {"schema": '"int"'}) == 42205
    assert registry.register(":.two:c", '"int"') == 1
    assert registry.call("DELETE", "/mode/:.one:") == {"mode": "READONLY"}
    assert registry.register(":.one:c", '"int"') == 1


def test_an_import_into_a_context_needs_it_empty_and_clears_it(registry: Registry) -> None:
    registry.register(":.one:a", '"int"')
    registry.register("a", '"int"')
    assert registry.refused("PUT", "/mode/:.one:", {"mode": "IMPORT"}) == 42205
    registry.call("DELETE", "/subjects/:.one:a")
    registry.call("PUT", "/mode/:.one:", {"mode": "IMPORT"})
    assert registry.call("GET", "/subjects?deleted=true") == ["a"], "the other context is as it was"
    assert registry.register(":.one:b", '"long"', id=7, version=3) == 7
    assert registry.call("GET", "/schemas/ids/7?subject=:.one:")["schema"] == '"long"'


def test_a_context_is_removed_when_it_is_empty(registry: Registry) -> None:
    registry.register(":.one:a", '"int"')
    assert registry.refused("DELETE", "/contexts/.one") == 42211
    registry.call("DELETE", "/subjects/:.one:a")
    assert registry.refused("DELETE", "/contexts/.one") == 42211, "what is deleted softly counts"
    registry.call("DELETE", "/subjects/:.one:a?permanent=true")
    response = registry.http.request("DELETE", "/contexts/.one")
    assert (response.status_code, response.content) == (204, b"")
    assert registry.call("GET", "/contexts") == ["."]
    assert registry.http.request("DELETE", "/contexts/.never").status_code == 204


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/contexts", ("/contexts", "")),
        ("/contexts/.x", ("/contexts/:.x:", "")),
        ("/contexts/.x/subjects/a/versions", ("/subjects/:.x:a/versions", "")),
        ("/contexts/x/subjects/a/versions", ("/subjects/:.x:a/versions", "")),
        ("/contexts/:.x:/subjects/a/versions", ("/subjects/:.x:a/versions", "")),
        ("/contexts/%3A.x%3A/subjects/a/versions", ("/subjects/:.x:a/versions", "")),
        ("/contexts/:.:/subjects/a/versions", ("/subjects/a/versions", "")),
        ("/contexts/.x/subjects/:.y:a", ("/subjects/:.y:a", "")),
        ("/contexts/.x/subjects/%3A.y%3Aa", ("/subjects/%3A.y%3Aa", "")),
        ("/contexts/.x/subjects/a%2Fb", ("/subjects/:.x:a%2Fb", "")),
        ("/contexts/.x/subjects/subjects/versions", ("/subjects/:.x:subjects/versions", "")),
        ("/contexts/.x/compatibility/subjects/a/versions", ("/compatibility/subjects/:.x:a/versions", "")),
        ("/contexts/.x/config", ("/config/:.x:", "")),
        ("/contexts/.x/mode/a", ("/mode/:.x:a", "")),
        ("/contexts/:.:/mode", ("/mode", "")),
        ("/contexts/.x/subjects", ("/subjects", "subjectPrefix=%3A.x%3A")),
        ("/contexts/:.:/subjects", ("/subjects", "subjectPrefix=")),
        ("/contexts/.x/schemas?subjectPrefix=a", ("/schemas", "subjectPrefix=%3A.x%3Aa")),
        ("/contexts/.x/subjects?subjectPrefix=:*:a", ("/subjects", "subjectPrefix=%3A%2A%3Aa")),
        ("/contexts/.x/schemas/ids/1", ("/schemas/ids/1", "subject=%3A.x%3A")),
        ("/contexts/.x/schemas/ids/1?subject=a&format=y", ("/schemas/ids/1", "format=y&subject=%3A.x%3Aa")),
        ("/contexts/.x/schemas/types", ("/schemas/types", "")),
        ("/subjects/contexts/versions", ("/subjects/contexts/versions", "")),
    ],
)
def test_a_path_below_a_context_is_one_with_qualified_names(path: str, wanted: tuple[str, str]) -> None:
    target, _, query = path.partition("?")
    assert rewritten(target, query) == wanted


def test_paths_reach_the_context(registry: Registry) -> None:
    base = "/contexts/.one"
    assert registry.call("POST", f"{base}/subjects/a/versions", {"schema": '"int"'})["id"] == 1
    assert registry.call("GET", f"{base}/subjects") == [":.one:a"]
    assert registry.call("GET", f"{base}/schemas/ids/1")["schema"] == '"int"'
    assert registry.refused("GET", "/contexts/:.:/schemas/ids/1") == 40403
    assert registry.call("PUT", f"{base}/config", {"compatibility": "NONE"}) == {"compatibility": "NONE"}
    assert registry.call("GET", "/config/:.one:") == {"compatibilityLevel": "NONE"}
    assert registry.call("POST", f"{base}/compatibility/subjects/a/versions/latest", {"schema": '"string"'}) == {
        "is_compatible": True
    }
    assert registry.refused("GET", "/contexts/a:b/subjects") == 400
    assert registry.refused("GET", "/contexts/.one") == 405


def test_what_was_written_says_the_same_to_another_instance(registry: Registry) -> None:
    registry.register(":.one:item", ITEM)
    registry.register(":.one:cart", CART, references=reference("item"))
    keys = [json.loads(key) for key, _ in registry.log.records]
    assert [key["keytype"] for key in keys] == ["CONTEXT", "SCHEMA", "SCHEMA"]
    assert registry.log.records[0] == (
        b'{"keytype":"CONTEXT","tenant":"default","context":".one","magic":0}',
        b'{"tenant":"default","context":".one"}',
    )
    other = Service(lambda: "cluster-1", Direct())
    for key, value in registry.log.records:
        other.apply(key, value)
    found = other.read(lambda state, _: (state.context_names(), state.subjects(), state.id_max(".one")))
    assert found == ([".", ".one"], [":.one:cart", ":.one:item"], 2)
    assert [one.subject for one in other.read(lambda state, _: state.referrers(":.one:item", 1))] == [":.one:cart"]


@pytest.mark.parametrize("text", ["a", ":.x:a", ":.x:", ":.x", ":.x:a:b", ":a", ":*:a", "", ":", ":.:a:.b:c"])
def test_a_name_is_written_in_one_way(text: str) -> None:
    once = contexts.normal(text)
    assert contexts.normal(once) == once
    assert contexts.split(once) == contexts.split(text)


def test_references_are_named_as_they_are_outside_of_their_context(registry: Registry) -> None:
    target = '{"type":"record","name":"Address","fields":[]}'
    user = '{"type":"record","name":"Home","fields":[{"name":"at","type":"Address"}]}'
    registry.register(":.one:address", target)
    one = [{"name": "Address", "subject": "address", "version": 1}]
    identifier = registry.register(":.one:home", user, references=one)
    outside = [{"name": "Address", "subject": ":.one:address", "version": 1}]
    for path in ("/subjects/:.one:home/versions/1?", f"/schemas/ids/{identifier}?subject=:.one:&"):
        assert registry.call("GET", path)["references"] == one
        assert registry.call("GET", f"{path}referenceFormat=qualified")["references"] == outside
    registry.register("address", target)
    registry.register("home", user, references=one)
    assert registry.call("GET", "/subjects/home/versions/1?referenceFormat=qualified")["references"] == one
