"""Ours and Confluent's registry on one topic: each goes on where the other one stopped, and one of both leads.

Skipped without `KPYBROKER_TEST_REGISTRY_REFERENCE`; `tests/registry/store/test_taking_over.py` has what it wrote.
"""

from __future__ import annotations

import json
from typing import Any

from compat_tests.registry.conftest import MakeReference, MakeRegistry
from compat_tests.registry.topics import http, records_of
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually
from tests.registry.store.taking_over import PICTURE, Ask, Topic, again, asked, pictured


def check(ask: Ask, topic: Topic) -> None:
    """What was asked of the one before is there, and is the same when it is registered again."""
    for path, own, their in zip(PICTURE, pictured(ask), topic.picture, strict=True):
        assert own == their, path
    count = 0
    for step, body in again(topic):
        for one in (step, step._replace(path=step.path.replace("/versions", ""))):
            status, response = ask(*one)
            assert (status, response.get("id"), response.get("version")) == (200, body["id"], body["version"]), one
        count += 1
    assert count == 600


def changes(bootstrap: str, topic: str) -> list[tuple[str, Any]]:
    """The records of a topic, but for those that only find its end."""
    return [(key, value) for key, value, _ in records_of(bootstrap, topic) if json.loads(key)["keytype"] != "NOOP"]


def test_ours_goes_on_where_theirs_stopped(
    reference: MakeReference, start: MakeRegistry, kafka: Broker, name: str
) -> None:
    theirs = reference()
    ask = http(theirs.url)
    topic = Topic([], asked(ask), pictured(ask))
    theirs.kill()
    written = changes(kafka.bootstrap, f"_schemas-{name}")
    check(http(start().url), topic)
    assert changes(kafka.bootstrap, f"_schemas-{name}") == written


def test_theirs_goes_on_where_ours_stopped(
    reference: MakeReference, start: MakeRegistry, kafka: Broker, name: str
) -> None:
    ours = start()
    ask = http(ours.url)
    topic = Topic([], asked(ask), pictured(ask))
    assert ours.stop() == 0
    written = changes(kafka.bootstrap, f"_schemas-{name}")
    check(http(reference().url), topic)
    assert changes(kafka.bootstrap, f"_schemas-{name}") == written


def registered(ask: Ask, subject: str) -> int:
    """The id of a schema that only this subject has, once some instance leads."""
    found: list[int] = []

    def is_done() -> bool:
        body = {"schema": json.dumps({"type": "fixed", "name": subject, "size": 1})}
        status, response = ask("POST", f"/subjects/{subject}/versions", body)
        found[:] = [response["id"]] if status == 200 else []
        return bool(found)

    eventually(is_done, f"{subject} is registered")
    return found[0]


def subjects(url: str) -> Any:
    """Their names."""
    return http(url)("GET", "/subjects", None)[1]


def test_one_of_both_kinds_leads(reference: MakeReference, start: MakeRegistry) -> None:
    """The one that leads writes, whichever is asked: ids follow one another. Their addresses decide which one leads."""
    theirs = reference()
    assert registered(http(theirs.url), "a") == 1
    ours = start()
    assert registered(http(ours.url), "b") == 2
    assert registered(http(theirs.url), "c") == 3
    eventually(lambda: subjects(ours.url) == subjects(theirs.url) == ["a", "b", "c"], "both have read all")
    theirs.kill()
    assert registered(http(ours.url), "d") == 4
    assert "is_this_instance=True" in ours.log.read_text(), "the other one is gone"
    other = reference()
    assert registered(http(other.url), "e") == 5
    assert registered(http(ours.url), "f") == 6
    assert ours.stop() == 0
    assert registered(http(other.url), "g") == 7
