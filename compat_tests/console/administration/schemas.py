"""Schemas: versions compared and registered, the compatibility of a subject, and who uses it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import httpx
from confluent_kafka import Producer
from playwright.sync_api import expect

from compat_tests.console.administration.administrator import Administrator, Task, new_name
from compat_tests.console.administration.places import Place
from compat_tests.support import quick


def record(*names: str) -> str:
    fields = [{"name": name, "type": "string", "default": ""} for name in names]
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


def registered(place: Place) -> str:
    """A subject with two versions."""
    name = f"{new_name()}-value"
    for names in (("id",), ("id", "note")):
        path = f"{place.registry}/subjects/{name}/versions"
        httpx.post(path, json={"schema": record(*names)}).raise_for_status()
    return name


def the_subject(who: Administrator, name: str) -> None:
    """Two clicks."""
    who.click("Schemas")
    who.find(name)
    who.click(name, where="main")


def compare_versions(who: Administrator, name: str) -> None:
    the_subject(who, name)
    who.choose("compared with", "1")
    who.click("Show", "button", "main")
    changed = who.page.get_by_role("region", name="What has changed")
    expect(changed).to_contain_text('"note"')
    who.picture(who.page)


def register_a_third(who: Administrator, name: str) -> None:
    the_subject(who, name)
    who.click("Register a version")
    who.type("Schema", record("id", "note", "state"))
    who.enter("Subject")
    who.do("Register the schema")


def versions_of(place: Place, name: str) -> Any:
    return httpx.get(f"{place.registry}/subjects/{name}/versions").json()


def set_compatibility(who: Administrator, name: str) -> None:
    the_subject(who, name)
    who.click("Set the compatibility")
    who.page.get_by_label("Compatibility", exact=True).press("F")
    who.enter("Subject")
    who.do("Set the compatibility")


def level_of(place: Place, name: str) -> Any:
    return httpx.get(f"{place.registry}/config/{name}").json()["compatibilityLevel"]


def topics_of_a_schema(who: Administrator, name: str) -> None:
    used = name.removesuffix("-value")
    quick.create_topic(who.place.bootstrap, used)
    number = httpx.get(f"{who.place.registry}/subjects/{name}/versions/2").json()["id"]
    producer = Producer({"bootstrap.servers": who.place.bootstrap})
    producer.produce(used, b"\0" + int(number).to_bytes(4, "big") + b"\0\0")
    producer.flush()
    the_subject(who, name)
    expect(who.page.get_by_role("region", name="By the name of the subject")).to_contain_text(used)
    who.click("Look into records")
    expect(who.page.get_by_role("region", name="Met in records")).to_contain_text(used)
    who.picture(who.page)


TASKS: Final[Mapping[str, Task]] = {
    "schema-compare": Task(registered, compare_versions, None),
    "schema-register": Task(registered, register_a_third, versions_of),
    "schema-level": Task(registered, set_compatibility, level_of),
    "schema-topics": Task(registered, topics_of_a_schema, None),
}
