"""Configuration and mode: of the registry, of a subject, and which one holds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.registry.conftest import Registry


def test_a_subject_has_its_own_level_or_the_general_one(registry: Registry) -> None:
    assert registry.call("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    assert registry.refused("GET", "/config/a") == 40408
    assert registry.call("GET", "/config/a?defaultToGlobal=true") == {"compatibilityLevel": "BACKWARD"}
    assert registry.call("PUT", "/config", {"compatibility": "forward"}) == {"compatibility": "FORWARD"}
    assert registry.call("PUT", "/config/a", {"compatibility": "FULL_TRANSITIVE"}) == {
        "compatibility": "FULL_TRANSITIVE"
    }
    assert registry.call("GET", "/config") == {"compatibilityLevel": "FORWARD"}
    assert registry.call("GET", "/config/a") == {"compatibilityLevel": "FULL_TRANSITIVE"}
    assert registry.call("DELETE", "/config/a") == {"compatibilityLevel": "FULL_TRANSITIVE"}
    assert registry.refused("DELETE", "/config/a") == 40401
    assert registry.call("DELETE", "/config") == {"compatibilityLevel": "FORWARD"}
    assert registry.call("GET", "/config") == {"compatibilityLevel": "BACKWARD"}


def test_what_a_change_leaves_out_stays(registry: Registry) -> None:
    registry.call("PUT", "/config/a", {"compatibility": "FULL", "normalize": True})
    registry.call("PUT", "/config/a", {"compatibility": "NONE"})
    assert registry.call("GET", "/config/a") == {"compatibilityLevel": "NONE", "normalize": True}
    registry.call("PUT", "/config/a", {"normalize": None})
    assert registry.call("GET", "/config/a") == {"compatibilityLevel": "NONE"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"compatibility": "SOME"}, 42203),
        ({"normalize": "yes"}, 400),
        ({"alias": ["b"]}, 400),
        ({"defaultMetadata": {"properties": 1}}, 400),
        ({"defaultRuleSet": []}, 400),
    ],
)
def test_a_value_that_a_setting_cannot_have_is_refused(registry: Registry, body: dict[str, Any], code: int) -> None:
    assert registry.refused("PUT", "/config/a", body) == code


def test_an_unknown_setting_is_passed_over(registry: Registry) -> None:
    assert registry.call("PUT", "/config/a", {"compatibilityLevel": "NONE", "more": 1}) == {}
    assert registry.call("GET", "/config/a") == {"compatibilityLevel": "BACKWARD"}


def test_a_subject_with_a_configuration_takes_no_level_from_the_general_one(registry: Registry) -> None:
    registry.call("PUT", "/config", {"compatibility": "FULL"})
    registry.call("PUT", "/config/a", {"normalize": True})
    own = {"compatibilityLevel": "BACKWARD", "normalize": True}
    assert registry.call("GET", "/config/a") == own
    assert registry.call("GET", "/config/a?defaultToGlobal=true") == own


def test_an_alias_stands_for_its_subject_in_all_requests_but_of_settings(registry: Registry) -> None:
    identifier = registry.register("real", '"string"')
    registry.call("PUT", "/config/other", {"alias": "real"})
    assert registry.call("GET", "/subjects/other/versions") == [1]
    assert registry.call("GET", "/subjects/other/versions/latest")["subject"] == "real"
    assert registry.call("GET", f"/schemas/ids/{identifier}?subject=other")["subject"] == "real"
    assert registry.register("other", '["string"]') == registry.call("GET", "/subjects/real/versions/2")["id"]
    assert registry.call("GET", "/subjects") == ["real"]
    assert registry.refused("GET", "/mode/other") == 40409
    registry.call("DELETE", "/config/other")
    assert registry.refused("GET", "/subjects/other/versions") == 40401


def test_nothing_is_written_in_a_read_only_mode(registry: Registry) -> None:
    registry.register("a", '"string"')
    registry.call("PUT", "/mode/a", {"mode": "READONLY"})
    assert registry.call("GET", "/mode/a") == {"mode": "READONLY"}
    assert registry.call("GET", "/mode") == {"mode": "READWRITE"}
    assert registry.refused("POST", "/subjects/a/versions", {"schema": '"int"'}) == 42205
    assert registry.refused("DELETE", "/subjects/a") == 42205
    assert registry.refused("PUT", "/config/a", {"compatibility": "NONE"}) == 42205
    assert registry.register("a", '"string"') == 1, "what is there is found"
    assert registry.register("b", '"int"') == 2
    assert registry.call("DELETE", "/mode/a") == {"mode": "READONLY"}
    assert registry.refused("DELETE", "/mode/a") == 40401
    assert registry.refused("GET", "/mode/a") == 40409
    assert registry.call("PUT", "/mode", {"mode": "readonly_override"}) == {"mode": "readonly_override"}
    registry.call("PUT", "/mode/a", {"mode": "READWRITE"})
    assert registry.refused("POST", "/subjects/a/versions", {"schema": '["string"]'}) == 42205
    assert registry.refused("PUT", "/mode", {"mode": "NO"}) == 42204
    assert registry.refused("PUT", "/mode", {"mode": "FORWARD"}) == 42204


def test_an_import_keeps_ids_and_versions(registry: Registry) -> None:
    body = {"schema": '"string"', "id": 77, "version": 5}
    assert registry.refused("POST", "/subjects/a/versions", body) == 42205
    registry.register("a", '"int"')
    assert registry.refused("PUT", "/mode/a", {"mode": "IMPORT"}) == 42205
    registry.call("DELETE", "/subjects/a")
    registry.call("PUT", "/mode/a", {"mode": "IMPORT"})
    assert registry.call("GET", "/subjects?deleted=true") == [], "what was deleted softly makes room"
    assert registry.call("POST", "/subjects/a/versions", body)["id"] == 77
    assert registry.call("GET", "/subjects/a/versions") == [5]
    assert registry.refused("POST", "/subjects/a/versions", {"schema": '"long"', "id": 77, "version": 6}) == 42205
    assert registry.refused("POST", "/subjects/a/versions", {"schema": '"long"'}) == 42205
    registry.call("PUT", "/mode/a", {"mode": "READWRITE"})
    assert registry.register("b", '"boolean"') == 78


def test_properties_are_sorted_where_schemas_are_normalized(registry: Registry) -> None:
    one, two = '{"type":"int","b":1,"a":2}', '{"type":"int","a":2,"b":1}'
    assert registry.register("plain", one) != registry.register("other", two)
    assert registry.register("plain", two) == registry.register("plain", one), "the same schema, as Java compares them"
    registry.call("PUT", "/config/sorted", {"normalize": True})
    assert registry.register("sorted", one) == registry.register("sorted", two)
    asked = registry.call("POST", "/subjects/asked/versions?normalize=true", {"schema": one})
    assert registry.call("POST", "/subjects/asked/versions?normalize=true", {"schema": two})["id"] == asked["id"]
    assert registry.call("POST", "/subjects/asked?normalize=true", {"schema": two})["id"] == asked["id"]


def test_modes_of_a_context_are_removed_with_its_own(registry: Registry) -> None:
    for subject in ("a", ":.one:a", ":.one:b", ":.two:a"):
        registry.call("PUT", f"/mode/{subject}", {"mode": "READONLY"})
    assert registry.refused("DELETE", "/mode/:.one:") == 40401
    assert registry.call("DELETE", "/mode/:.one:?recursive=true") == {}
    assert registry.refused("GET", "/mode/:.one:b") == 40409
    assert registry.call("GET", "/mode/:.two:a") == registry.call("GET", "/mode/a") == {"mode": "READONLY"}
    registry.call("PUT", "/mode/:.two:b", {"mode": "IMPORT"})
    assert registry.call("DELETE", "/mode/:.two:a?recursive=true") == {"mode": "READONLY"}
    assert registry.call("GET", "/mode/:.two:b") == {"mode": "IMPORT"}, "a subject has none below it"


@pytest.mark.parametrize("path", ["/mode", "/mode/:.:"])
def test_the_mode_of_the_registry_is_removed(registry: Registry, path: str) -> None:
    assert registry.call("DELETE", path) == {"mode": "READWRITE"}
    registry.call("PUT", "/mode", {"mode": "READONLY"})
    registry.call("PUT", "/mode/a", {"mode": "IMPORT"})
    registry.call("PUT", "/mode/:.one:a", {"mode": "IMPORT"})
    assert registry.call("DELETE", path) == {"mode": "READONLY"}
    assert registry.call("GET", "/mode") == {"mode": "READWRITE"}
    assert registry.call("GET", "/mode/a") == {"mode": "IMPORT"}
    assert registry.call("DELETE", f"{path}?recursive=true") == {"mode": "READWRITE"}
    assert registry.refused("GET", "/mode/a") == 40409
    assert registry.call("GET", "/mode/:.one:a") == {"mode": "IMPORT"}
