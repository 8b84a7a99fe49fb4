"""The type of a response, as Confluent's registry chooses it."""

from __future__ import annotations

import pytest

from kpybroker.registry.api.accept import CONTENT_TYPE, chosen
from tests.registry.conftest import Registry

PLAIN, GENERAL = "application/json", "application/vnd.schemaregistry+json"


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", CONTENT_TYPE),
        ("*/*", CONTENT_TYPE),
        ("application/*", CONTENT_TYPE),
        (PLAIN, PLAIN),
        (GENERAL, GENERAL),
        (f"{PLAIN}, {CONTENT_TYPE};q=0.1", PLAIN),
        (f"{PLAIN};q=0.4, {GENERAL};q=0.8", GENERAL),
        (f"{PLAIN}, {GENERAL}", GENERAL),
        (f"text/html, {PLAIN};q=0.2", PLAIN),
        ("text/html, *; q=.2, */*; q=.2", CONTENT_TYPE),
        (f"{PLAIN};q=x", PLAIN),
        ("APPLICATION/JSON; charset=utf-8", PLAIN),
        ("text/*", None),
        ("text/plain", None),
        ("application/vnd.schemaregistry.v9+json", None),
    ],
)
def test_the_best_type_is_chosen(accept: str, kind: str | None) -> None:
    assert chosen(accept) == kind


def test_a_request_that_accepts_none_is_refused_and_writes_nothing(registry: Registry) -> None:
    response = registry.http.put("/config/a", json={"compatibility": "NONE"}, headers={"accept": "text/plain"})
    assert (response.status_code, response.json()["message"]) == (406, "HTTP 406 Not Acceptable")
    assert registry.log.records == []
    response = registry.http.get("/subjects", headers={"accept": GENERAL})
    assert response.headers["content-type"] == GENERAL
