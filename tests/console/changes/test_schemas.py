"""Schemas: subjects, versions and what has changed between two; checked, registered, deleted softly and for good."""

from __future__ import annotations

import html
import json
import subprocess
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from kpybroker.console.pages.outside.schemas import changed
from kpybroker.testing import Broker, SchemaRegistry
from tests.console.changes.conftest import command_of, done, fields_of, previewed
from tests.console.conftest import START_S, MakeClient, facts_of, rows_of, text_of


@pytest.fixture(scope="module")
def registry(broker: Broker) -> Iterator[str]:
    with SchemaRegistry(broker, start_timeout=START_S) as started:
        yield started.url


@pytest.fixture
def browser(client: MakeClient, registry: str) -> TestClient:
    return client(allow_changes=True, registry=registry)


@pytest.fixture
def subject() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}-value"


def order(*fields: Any) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": list(fields)})


ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": "string", "default": ""}


def test_a_third_version_is_registered_after_two_were_compared(browser: TestClient, subject: str) -> None:
    first = done(browser, "schema-register", subject=subject, type="AVRO", schema=order(ID))
    assert rows_of(first.text, "Result")[0][2] == "1"
    done(browser, "schema-register", subject=subject, type="AVRO", schema=order(ID, NOTE))
    assert "is registered already" in previewed(browser, "schema-register", subject=subject, schema=order(ID)).text
    page = browser.get("/schema", params={"subject": subject, "version": "2", "with": "1"}).text
    assert facts_of(page)["Compatibility"] == "BACKWARD"
    assert "+       &#34;name&#34;: &#34;note&#34;," in page.replace("&quot;", "&#34;")
    form = browser.get("/change/schema-register", params={"subject": subject, "type": "AVRO"}).text
    assert '"name": "note"' in html.unescape(form)
    third = {"name": "state", "type": ["null", "string"], "default": None}
    preview = previewed(browser, "schema-register", subject=subject, schema=order(ID, NOTE, third)).text
    assert "would be registered" in preview
    assert facts_of(browser.get("/schema", params={"subject": subject}).text)["Version"] == "2"
    result = done(browser, "schema-register", subject=subject, schema=order(ID, NOTE, third))
    assert rows_of(result.text, "Result")[0][2] == "3"
    assert subject in browser.get("/schemas", params={"q": subject[:12]}).text
    assert f"/schema?subject={subject}" in browser.get("/search", params={"q": subject}).text


def test_what_is_not_compatible_marks_the_schema_with_the_reason(browser: TestClient, subject: str) -> None:
    done(browser, "schema-register", subject=subject, schema=order(ID))
    typed = order(ID, {"name": "total", "type": "double"})
    page = previewed(browser, "schema-register", subject=subject, schema=typed)
    assert page.status_code == 400
    assert "it is not compatible" in page.text
    assert "total" in page.text.split("it is not compatible", 1)[1].split("</span>", 1)[0]
    assert typed in html.unescape(page.text)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("schema", {"schema": "{"}),
        ("schema", {"schema": ""}),
        ("subject", {"subject": ""}),
        ("type", {"type": "XML"}),
        ("references", {"references": "one two"}),
    ],
)
def test_bad_input_marks_its_field(browser: TestClient, subject: str, field: str, values: dict[str, str]) -> None:
    page = previewed(browser, "schema-register", **{"subject": subject, "schema": order(ID), **values})
    assert page.status_code == 400, page.text
    assert f'name="{field}"' in page.text.split('aria-invalid="true"')[0].rsplit("<", 1)[1]


def test_the_command_of_a_form_does_the_same(browser: TestClient, subject: str) -> None:
    page = previewed(browser, "schema-register", subject=subject, schema=order(ID)).text
    ran = subprocess.run(["sh", "-c", command_of(page)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert facts_of(browser.get("/schema", params={"subject": subject}).text)["Version"] == "1"


def test_versions_are_deleted_softly_then_for_good(browser: TestClient, subject: str) -> None:
    for fields in ((ID,), (ID, NOTE)):
        done(browser, "schema-register", subject=subject, schema=order(*fields))
    early = previewed(browser, "schema-delete", subject=subject, version="1", how="for good")
    assert early.status_code == 400
    assert "delete it softly first" in early.text
    page = previewed(browser, "schema-delete", subject=subject, version="1").text
    assert browser.post("/change/schema-delete", data=fields_of(page)).status_code == 400
    done(browser, "schema-delete", subject, subject=subject, version="1")
    assert "would be deleted for good" in previewed(browser, "schema-delete", subject=subject, how="for good").text
    result = done(browser, "schema-delete", subject, subject=subject, how="for good")
    assert [row[1:] for row in rows_of(result.text, "Result")] == [["1", "deleted for good"]]
    missing = previewed(browser, "schema-delete", subject="not-there")
    assert missing.status_code == 400
    assert "not-there" in missing.text


def test_the_compatibility_of_a_subject_is_set_and_returned(browser: TestClient, subject: str) -> None:
    def level() -> str:
        return facts_of(browser.get("/schema", params={"subject": subject}).text)["Compatibility"]

    done(browser, "schema-register", subject=subject, schema=order(ID))
    values = {"subject": subject, "level": "FORWARD"}
    preview = previewed(browser, "schema-level", **values).text
    assert rows_of(preview, "Preview")[0][1:] == ["BACKWARD, as all subjects", "FORWARD", "would be set"]
    assert level() == "BACKWARD"
    assert rows_of(done(browser, "schema-level", **values).text, "Result")[0][-1] == "set"
    assert level() == "FORWARD"
    assert "is so already" in previewed(browser, "schema-level", **values).text
    form = browser.get("/change/schema-level", params={"subject": subject}).text
    assert '<option value="FORWARD" selected>' in form
    back = {"subject": subject, "level": "as all subjects"}
    command = command_of(previewed(browser, "schema-level", **back).text)
    assert "-X DELETE" in command
    subprocess.run(["sh", "-c", command], check=True, capture_output=True)
    assert level() == "BACKWARD"
    subprocess.run(["sh", "-c", command_of(preview)], check=True, capture_output=True)
    assert level() == "FORWARD"
    assert rows_of(done(browser, "schema-level", **back).text, "Result")[0][-1] == "set"
    assert level() == "BACKWARD"


def test_without_a_registry_the_pages_say_how_to_name_one(client: MakeClient) -> None:
    browser = client(allow_changes=True)
    assert "--schema-registry URL" in browser.get("/schemas").text
    assert "--schema-registry URL" in previewed(browser, "schema-register", subject="a", schema="{}").text
    away = client(registry="http://127.0.0.1:1").get("/schemas")
    assert away.status_code == 503
    assert "does not respond" in text_of(away.text)


def test_a_difference_is_of_lines_with_what_is_around_them() -> None:
    before, after = json.dumps({"a": list(range(30))}), json.dumps({"a": [*range(29), 99]})
    kinds = "".join(kind for kind, _ in changed(before, after))
    assert kinds == "@    -+  "
    assert changed(before, before) == []
