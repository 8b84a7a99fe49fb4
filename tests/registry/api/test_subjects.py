"""Versions, ids and deletes through the REST interface, with Confluent's error codes."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from tests.registry.conftest import Registry


def record(*fields: str, name: str = "User") -> str:
    """A record of strings; a field with a question mark has a default."""
    made = [
        {"name": field.rstrip("?"), "type": "string", **({"default": ""} if "?" in field else {})} for field in fields
    ]
    return json.dumps({"type": "record", "name": name, "fields": made})


def test_the_same_schema_has_one_id_under_every_subject(registry: Registry) -> None:
    first = registry.register("a", record("x"))
    assert registry.register("b", record("x")) == first
    assert registry.register("a", " " + record("x")) == first, "white space means nothing"
    assert registry.register("a", record("x", "y?")) == first + 1
    assert registry.call("GET", f"/schemas/ids/{first}/subjects") == ["a", "b"]
    assert registry.call("GET", f"/schemas/ids/{first}/versions") == [
        {"subject": "a", "version": 1},
        {"subject": "b", "version": 1},
    ]
    assert registry.call("GET", "/subjects/a/versions") == [1, 2]
    assert len(registry.log.records) == 3, "a known schema writes nothing"


def test_a_version_is_found_by_number_and_as_the_latest(registry: Registry) -> None:
    registry.register("a", record("x"))
    registry.register("a", record("x", "y?"))
    latest = registry.call("GET", "/subjects/a/versions/latest")
    assert latest == registry.call("GET", "/subjects/a/versions/2") == registry.call("GET", "/subjects/a/versions/-1")
    assert (latest["subject"], latest["version"], latest["id"]) == ("a", 2, 2)
    assert registry.call("GET", "/subjects/a/versions/1/schema")["name"] == "User"
    assert registry.refused("GET", "/subjects/a/versions/3") == 40402
    assert registry.refused("GET", "/subjects/b/versions/1") == 40401
    assert registry.refused("GET", "/subjects/b/versions") == 40401
    for bad in ("0", "x", "-2", "2147483648", "%D9%A1"):
        assert registry.refused("GET", f"/subjects/a/versions/{bad}") == 42202


def test_a_schema_is_looked_up_under_its_subject(registry: Registry) -> None:
    registry.register("a", record("x"))
    found = registry.call("POST", "/subjects/a", {"schema": record("x")})
    assert (found["subject"], found["version"], found["id"]) == ("a", 1, 1)
    assert registry.refused("POST", "/subjects/a", {"schema": record("y")}) == 40403
    assert registry.refused("POST", "/subjects/b", {"schema": record("x")}) == 40401
    assert registry.refused("POST", "/subjects/a", {"schema": "{"}) == 42201


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"schema": ""},
        {"schema": " "},
        {"schema": None},
        {"schema": 1},
        {"schema": "{}"},
        {"schema": '"strnig"'},
        {"schema": '"string"', "schemaType": "XML"},
        {"schema": '"string"', "references": [{"name": "x"}]},
        {"schema": '"string"', "references": [{"name": "x", "subject": "y", "version": 1}]},
        {"schema": "[" * 5000},
        {"schema": '"string"', "version": 7},
    ],
    ids=str,
)
def test_what_is_no_schema_is_refused_and_writes_nothing(registry: Registry, body: dict[str, Any]) -> None:
    assert registry.refused("POST", "/subjects/a/versions", body) == 42201
    assert registry.log.records == []


@pytest.mark.parametrize(
    "body",
    [
        {"schema": {}},
        {"schema": '"string"', "references": {}},
        {"schema": '"string"', "references": ["x"]},
        {"schema": '"string"', "metadata": ""},
        {"schema": '"string"', "metadata": {"properties": {"a": None}}},
        {"schema": '"string"', "ruleSet": []},
        {"schema": '"string"', "ruleSet": {"domainRules": [{"kind": "OTHER"}]}},
        {"schema": '"string"', "version": "x"},
        {"schema": '"string"', "id": 2**31},
    ],
    ids=str,
)
def test_a_member_of_another_type_is_refused_with_its_name(registry: Registry, body: dict[str, Any]) -> None:
    for path in ("/subjects/a/versions", "/subjects/a", "/compatibility/subjects/a/versions/latest"):
        response = registry.http.post(path, json=body)
        assert (response.status_code, response.json()["error_code"]) == (400, 400)
        assert list(body)[-1] in response.json()["message"]
    assert registry.log.records == []


def test_a_request_without_a_schema_means_the_latest_one(registry: Registry) -> None:
    identifier = registry.register("a", '"string"', metadata={"properties": {"owner": "ann"}})
    post = "/subjects/a/versions"
    assert registry.call("POST", post, {}) == registry.call("POST", post, {"schema": '"string"'})
    other = registry.call("POST", post, {"metadata": {"properties": {"owner": "bob"}}})
    assert (other["version"], other["schema"]) == (2, '"string"')
    assert other["id"] != identifier
    later = registry.call("POST", post, {"schema": '["string"]'})
    assert later["metadata"] == {"properties": {"owner": "bob"}}, "inherited"
    assert registry.refused("POST", "/subjects/a", {"schema": ""}) == 40403
    assert registry.refused("POST", "/subjects/b", {}) == 40401


def test_defaults_and_overrides_of_metadata_are_merged_into_what_is_registered(registry: Registry) -> None:
    registry.call("PUT", "/config/a", {"defaultMetadata": {"properties": {"owner": "ann", "team": "one"}}})
    registry.call("PUT", "/config/a", {"overrideMetadata": {"properties": {"team": "two"}, "sensitive": ["owner"]}})
    sent = {"schema": '"string"', "metadata": {"properties": {"owner": "bob"}, "tags": {"x": ["PII"]}}}
    made = registry.call("POST", "/subjects/a/versions", sent)["metadata"]
    assert made["properties"] == {"owner": "bob", "team": "two"}
    assert (made["tags"], made["sensitive"]) == ({"x": ["PII"]}, ["owner"])
    assert registry.call("POST", "/subjects/a", sent)["version"] == 1


def test_what_others_attached_to_a_schema_does_not_stop_the_next_version(registry: Registry) -> None:
    rule: dict[str, Any] = {"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL"}
    body = {"defaultMetadata": {"properties": {"a": "b"}}, "defaultRuleSet": {"domainRules": [rule]}}
    for number, odd in enumerate(({"properties": 1, "sensitive": 2}, ["x"], {"domainRules": [1]}, {"domainRules": 1})):
        value = {"subject": f"s{number}", "version": 1, "id": 50 + 10 * number, "schema": '"int"'}
        key = {"keytype": "SCHEMA", "subject": f"s{number}", "version": 1, "magic": 1}
        value |= {"metadata": odd, "ruleSet": odd}
        assert registry.service.apply(json.dumps(key).encode(), json.dumps(value).encode()) is None
        if isinstance(odd, dict):
            assert registry.call("POST", f"/subjects/s{number}", {"schema": '"int"'})["version"] == 1, "with its own"
        registry.call("PUT", f"/config/s{number}", body)
        made = registry.call("POST", f"/subjects/s{number}/versions", {"schema": '["int"]'})
        assert (made["version"], made["metadata"]["properties"]) == (2, {"a": "b"})


def test_a_version_that_is_asked_for_stands_in_the_metadata(registry: Registry) -> None:
    registry.register("a", '"string"')
    made = registry.call("POST", "/subjects/a/versions", {"schema": '["string"]', "version": 2})
    assert made["metadata"] == {"properties": {"confluent:version": "2"}}
    assert registry.call("POST", "/subjects/a", {"schema": '["string"]'})["version"] == 2
    assert registry.refused("POST", "/subjects/a/versions", {"schema": '["string","int"]', "version": 2}) == 42201


def test_the_latest_version_is_never_a_deleted_one(registry: Registry) -> None:
    for name in ("x?", "y?"):
        registry.register("a", record(name))
    registry.call("DELETE", "/subjects/a/versions/latest")
    assert registry.call("GET", "/subjects/a/versions/latest?deleted=true")["version"] == 1
    assert registry.refused("DELETE", "/subjects/a/versions/latest?permanent=true") == 40407
    registry.call("DELETE", "/subjects/a/versions/LATEST")
    assert registry.refused("GET", "/subjects/a/versions/latest?deleted=true") == 40402


def test_versions_are_listed_with_what_was_deleted_softly(registry: Registry) -> None:
    for name in ("x?", "y?", "z?"):
        registry.register("a", record(name))
    registry.call("DELETE", "/subjects/a/versions/2")
    queries = ("", "?deleted=true", "?deletedOnly=true", "?deletedAsNegative=true", "?deletedAsNegative=true&limit=2")
    lists = [registry.call("GET", f"/subjects/a/versions{query}") for query in queries]
    assert lists == [[1, 3], [1, 2, 3], [2], [1, -2, 3], [1, -2]]
    registry.call("DELETE", "/subjects/a")
    assert registry.refused("GET", "/subjects/a/versions?deletedAsNegative=true") == 40401
    assert registry.call("GET", "/subjects/a/versions?deleted=true&deletedAsNegative=true") == [-1, -2, -3]


def test_an_incompatible_schema_is_refused_with_the_reason(registry: Registry) -> None:
    registry.register("a", record("x"))
    response = registry.http.post("/subjects/a/versions", json={"schema": record("x", "y")})
    assert (response.status_code, response.json()["error_code"]) == (409, 409)
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in response.json()["message"]
    registry.call("PUT", "/config/a", {"compatibility": "none"})
    assert registry.register("a", record("x", "y")) == 2


def test_compatibility_is_asked_without_registering(registry: Registry) -> None:
    registry.register("a", record("x"))
    path = "/compatibility/subjects/a/versions"
    assert registry.call("POST", f"{path}/latest", {"schema": record("x", "y?")}) == {"is_compatible": True}
    refused = registry.call("POST", f"{path}/1?verbose=true", {"schema": record("x", "y")})
    assert refused["is_compatible"] is False
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in refused["messages"][0]
    assert registry.call("POST", path, {"schema": record()}) == {"is_compatible": True}
    assert registry.refused("POST", f"{path}/2", {"schema": record("x")}) == 40402
    assert registry.refused("POST", f"{path}/1", {"schema": "{"}) == 42201
    assert registry.call("POST", f"{path}/1?verbose=true", {"schema": "{"})["is_compatible"] is False
    other = "/compatibility/subjects/none/versions/latest"
    assert registry.call("POST", other, {"schema": record("x")}) == {"is_compatible": True}
    assert len(registry.log.records) == 1


def test_a_version_is_deleted_softly_and_then_for_good(registry: Registry) -> None:
    registry.register("a", record("x"))
    registry.register("a", record("x", "y?"))
    assert registry.refused("DELETE", "/subjects/a/versions/1?permanent=true") == 40407
    assert registry.call("DELETE", "/subjects/a/versions/1") == 1
    assert registry.refused("DELETE", "/subjects/a/versions/1") == 40406
    assert registry.call("GET", "/subjects/a/versions") == [2]
    assert registry.call("GET", "/subjects/a/versions?deleted=true") == [1, 2]
    assert registry.call("GET", "/subjects/a/versions?deletedOnly=true") == [1]
    assert registry.refused("GET", "/subjects/a/versions/1") == 40402
    assert registry.call("GET", "/subjects/a/versions/1?deleted=true")["deleted"] is True
    assert registry.call("GET", "/schemas/ids/1")["schema"], "data that was written still needs it"
    assert registry.call("DELETE", "/subjects/a/versions/1?permanent=true") == 1
    assert registry.refused("GET", "/schemas/ids/1") == 40403
    assert registry.refused("DELETE", "/subjects/a/versions/1?permanent=true") == 40402


def test_a_subject_is_deleted_softly_and_then_for_good(registry: Registry) -> None:
    registry.register("a", record("x"))
    registry.register("a", record("x", "y?"))
    registry.call("PUT", "/config/a", {"compatibility": "FULL"})
    assert registry.refused("DELETE", "/subjects/a?permanent=true") == 40405
    assert registry.call("DELETE", "/subjects/a") == [1, 2]
    assert registry.refused("DELETE", "/subjects/a") == 40404
    assert registry.call("GET", "/subjects") == []
    assert registry.call("GET", "/subjects?deleted=true") == registry.call("GET", "/subjects?deletedOnly=true") == ["a"]
    assert registry.call("DELETE", "/subjects/a?permanent=true") == [1, 2]
    assert registry.refused("DELETE", "/subjects/a?permanent=true") == 40401
    assert registry.refused("GET", "/config/a") == 40408
    assert registry.register("a", record("x")) == 3, "ids are not used twice"
    assert registry.call("GET", "/subjects/a/versions") == [1]


def test_a_schema_that_was_deleted_softly_comes_back_with_its_id(registry: Registry) -> None:
    registry.register("a", record("x"))
    registry.call("DELETE", "/subjects/a/versions/1")
    assert registry.register("a", record("x")) == 1
    assert registry.call("GET", "/subjects/a/versions?deleted=true") == [2], "its older version is removed"


def test_references_are_resolved_and_protect_what_they_name(registry: Registry) -> None:
    registry.register("address", record("street", name="shop.Address"))
    reference = {"name": "shop.Address", "subject": "address", "version": 1}
    schema = json.dumps(
        {"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "to", "type": "Address"}]}
    )
    assert registry.refused("POST", "/subjects/order/versions", {"schema": schema}) == 42201
    order = registry.register("order", schema, references=[reference])
    assert registry.call("GET", f"/schemas/ids/{order}")["references"] == [reference]
    assert registry.call("GET", "/subjects/address/versions/1/referencedby") == [order]
    resolved = registry.call("GET", f"/schemas/ids/{order}?format=resolved")["schema"]
    assert json.loads(resolved)["fields"][0]["type"]["fields"][0]["name"] == "street"
    assert registry.refused("DELETE", "/subjects/address/versions/1") == 42206
    assert registry.refused("DELETE", "/subjects/address") == 42206
    registry.call("DELETE", "/subjects/order")
    registry.call("DELETE", "/subjects/address")
    assert registry.refused("DELETE", "/subjects/address?permanent=true") == 42206
    registry.call("DELETE", "/subjects/order?permanent=true")
    registry.call("DELETE", "/subjects/address?permanent=true")


@pytest.mark.parametrize("subject", [":*:a", ":.__GLOBAL:a", ":.:", "%00", "a%0Ab", "__GLOBAL", "x" * 2000])
def test_what_is_no_name_of_a_subject_is_refused(registry: Registry, subject: str) -> None:
    assert registry.refused("POST", f"/subjects/{subject}/versions", {"schema": '"string"'}) == 42208


def test_a_context_has_a_subject_without_a_name(registry: Registry) -> None:
    registry.register(":.staging:", '"string"')
    assert registry.call("GET", "/subjects") == [":.staging:"]
    assert registry.call("GET", "/subjects/:.staging:/versions") == [1]


def test_names_may_have_any_other_character(registry: Registry) -> None:
    for name, path in (("a/b", "a%2Fb"), ("ä ö", "%C3%A4%20%C3%B6"), ("a?b", "a%3Fb"), ("100%", "100%25")):
        registry.register(path, '"string"')
        assert registry.call("GET", f"/subjects/{path}/versions/1")["subject"] == name
    assert registry.call("GET", "/subjects") == sorted(["a/b", "ä ö", "a?b", "100%"])


def test_lists_are_cut_and_chosen_by_prefix(registry: Registry) -> None:
    for name in ("a-1", "a-2", "b-1"):
        registry.register(name, '"string"')
    assert registry.call("GET", "/subjects?subjectPrefix=a-") == ["a-1", "a-2"]
    assert registry.call("GET", "/subjects?subjectPrefix=:*:") == ["a-1", "a-2", "b-1"]
    assert registry.call("GET", "/subjects?offset=1&limit=1") == ["a-2"]
    assert [one["subject"] for one in registry.call("GET", "/schemas?subjectPrefix=a-")] == ["a-1", "a-2"]
    registry.register("a-1", '["null","string"]')
    latest = registry.call("GET", "/schemas?latestOnly=true&subjectPrefix=a-1")
    assert [one["version"] for one in latest] == [2]


def test_metadata_is_part_of_a_schema_and_is_searched(registry: Registry) -> None:
    registry.register("a", record("x"), metadata={"properties": {"owner": "shop"}})
    registry.register("a", record("x", "y?"), metadata={"properties": {"owner": "depot"}})
    registry.register("a", record("x", "z?"))
    assert registry.call("GET", "/subjects/a/metadata?key=owner&value=shop")["version"] == 1
    newest = registry.call("GET", "/subjects/a/versions/3")
    assert newest["metadata"] == {"properties": {"owner": "depot"}}, "what is not given is that of the version before"
    assert registry.refused("GET", "/subjects/a/metadata?key=owner&value=none") == 40403


def test_only_versions_of_one_compatibility_group_are_compared(registry: Registry) -> None:
    registry.call("PUT", "/config/a", {"compatibilityGroup": "major"})
    registry.register("a", record("x"), metadata={"properties": {"major": "1"}})
    registry.register("a", record("other"), metadata={"properties": {"major": "2"}})
    body = {"schema": record("other", "y"), "metadata": {"properties": {"major": "2"}}}
    assert registry.refused("POST", "/subjects/a/versions", body) == 409


def test_all_schemas_are_listed_with_aliases_and_by_the_type_of_their_rules(registry: Registry) -> None:
    rules = {"domainRules": [{"name": "a", "kind": "CONDITION", "mode": "WRITE", "type": "CEL"}]}
    registry.register("a", '"string"', ruleSet=rules)
    registry.register("b", '"int"')
    registry.call("PUT", "/config/c", {"alias": "b"})
    registry.call("PUT", "/config/d", {"compatibility": "NONE"})
    listed = registry.call("GET", "/schemas?aliases=true")
    assert [(one["subject"], one.get("aliases")) for one in listed] == [("a", None), ("b", ["c"])]
    assert [one["subject"] for one in registry.call("GET", "/schemas?ruleType=CEL")] == ["a"]
    assert registry.call("GET", "/schemas?ruleType=ENCRYPT") == []


def test_a_descriptor_in_base64_gets_no_text_in_the_response(registry: Registry) -> None:
    file = FileDescriptorProto(name="a.proto", syntax="proto3")
    file.message_type.add(name="M").field.add(name="a", number=1, type=9, label=1)
    sent = {"schema": base64.b64encode(file.SerializeToString()).decode(), "schemaType": "PROTOBUF"}
    for _ in range(2):
        made = registry.call("POST", "/subjects/a/versions", sent)
        assert ("schema" in made, made["schemaType"]) == (False, "PROTOBUF"), "a client would take it for a descriptor"
    text = registry.call("GET", "/subjects/a/versions/1")["schema"]
    assert registry.call("POST", "/subjects/a/versions", {**sent, "schema": text})["schema"] == text
