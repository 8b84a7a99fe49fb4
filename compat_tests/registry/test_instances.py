"""Several instances: one writes, the others forward, and another takes over when it dies or is frozen."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from compat_tests.registry.conftest import Instance, MakeRegistry
from compat_tests.support.waiting import eventually
from tests.support.programs.signals import freeze, thaw


def post(instance: Instance, subject: str, schema: str) -> dict[str, Any]:
    response: dict[str, Any] = httpx.post(
        f"{instance.url}/subjects/{subject}/versions", json={"schema": schema}, timeout=120
    ).json()
    return response


def registered(instance: Instance, subject: str, schema: str) -> int:
    """The id, once someone leads."""
    found: list[int] = []

    def is_done() -> bool:
        found[:] = [number for key, number in post(instance, subject, schema).items() if key == "id"]
        return bool(found)

    eventually(is_done, f"{subject} is registered")
    return found[0]


def subjects(instance: Instance) -> list[str]:
    response: list[str] = httpx.get(f"{instance.url}/subjects", timeout=60).json()
    return response


def test_a_follower_forwards_and_takes_over_when_the_leader_is_killed(start: MakeRegistry) -> None:
    leader, follower = start(), start()
    assert registered(leader, "a", '"int"') == 1
    assert registered(follower, "b", '"long"') == 2, "forwarded"
    eventually(lambda: subjects(leader) == subjects(follower) == ["a", "b"], "both have read both subjects")
    refused = httpx.put(f"{follower.url}/config/a", json={"compatibility": "SOME"}, timeout=60)
    assert refused.json()["error_code"] == 42203, "an error of the leader is passed on"
    leader.kill()
    assert registered(follower, "c", '"string"') == 3
    assert "is_this_instance=True" in follower.log.read_text()


@pytest.mark.wide
def test_an_instance_that_never_leads_waits_for_one_that_does(start: MakeRegistry) -> None:
    follower = start("--never-leads")
    assert post(follower, "a", '"int"')["error_code"] == 50004
    leader = start()
    assert registered(follower, "a", '"int"') == 1
    assert leader.stop() == 0
    eventually(lambda: post(follower, "b", '"long"').get("error_code") in (50003, 50004), "no one leads")
    assert subjects(follower) == ["a"], "it reads on"


@pytest.mark.wide
def test_a_leader_that_was_frozen_does_not_write_as_one(start: MakeRegistry) -> None:
    frozen, other = start(), start()
    assert registered(frozen, "a", '"int"') == 1
    freeze(frozen.process.pid)
    assert registered(other, "b", '"long"') == 2
    thaw(frozen.process.pid)
    assert registered(frozen, "c", '"string"') == 3, "forwarded, or refused until it knows the leader"
    everything = {name: httpx.get(f"{other.url}/subjects/{name}/versions/1", timeout=60).json()["id"] for name in "abc"}
    assert everything == {"a": 1, "b": 2, "c": 3}
