"""What a test may give as versions, and what becomes of it."""

from __future__ import annotations

import pytest

from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.broker.requests.served.version_cap import VersionCap
from kpybroker.control.errors import ControlError
from kpybroker.control.levers.versions import Asked, version_cap
from kpybroker.wire.api import ApiKey


def test_nothing_is_no_cap() -> None:
    assert version_cap(None, {}) is None


def test_a_release_and_changes_of_it() -> None:
    cap = version_cap("2.3", {"Fetch": [4, 17], "Produce": 5, "ElectLeaders": None, "OffsetDelete": 0})
    assert cap is not None
    assert cap.served[ApiKey.FETCH] == (4, 17)
    assert cap.served[ApiKey.PRODUCE] == (0, 5)
    assert cap.served[ApiKey.JOIN_GROUP] == (0, 5)
    assert ApiKey.ELECT_LEADERS not in cap.served
    assert cap.served[ApiKey.OFFSET_DELETE] == (0, 0)  # which 2.3 does not have
    assert not cap.lists_own_range


def test_changes_without_a_release_leave_the_rest_as_it_is() -> None:
    cap = version_cap(None, {"Fetch": [0, 99]})
    assert cap is not None
    assert cap.served == SERVED
    assert cap.lists_own_range


@pytest.mark.parametrize(
    ("release", "apis", "cause", "fix"),
    [
        ("2.44", {}, "there is no table of Kafka `2.44`", "did you mean `2.4`?"),
        ("0.11", {}, "there is no table of Kafka `0.11`", "did you mean `0.11.0`?"),
        ("2.4.x", {}, "there is no table of Kafka `2.4.x`", "did you mean `2.4`?"),
        (None, {"Fech": 3}, "there is no API `Fech`", "did you mean `Fetch`?"),
        (None, {"Fetch": [20, 30]}, "no version of Fetch from 20 to 30 is served", "give some of 0 to 18"),
        (None, {"Fetch": [1]}, "[1] is no range of Fetch", "give the oldest and the newest version"),
        (None, {"ApiVersions": None}, "without ApiVersions no client can connect", "leave it in"),
    ],
)
def test_what_makes_no_sense_is_refused(release: str | None, apis: dict[str, Asked], cause: str, fix: str) -> None:
    with pytest.raises(ControlError) as caught:
        version_cap(release, apis)
    assert cause in caught.value.cause
    assert caught.value.fix == fix


def test_a_range_of_an_api_is_advertised_as_it_is_served() -> None:
    """Of a release that advertises versions of Produce that it refuses, too."""
    assert _cap("4.3", {}).listed[ApiKey.PRODUCE] == (0, 13)
    cap = _cap("4.3", {"Produce": [4, 8], "Fetch": None})
    assert cap.listed[ApiKey.PRODUCE] == cap.served[ApiKey.PRODUCE] == (4, 8)
    assert ApiKey.FETCH not in cap.listed
    assert ApiKey.LEADER_AND_ISR in cap.served
    assert ApiKey.LEADER_AND_ISR not in cap.listed


def _cap(release: str, apis: dict[str, Asked]) -> VersionCap:
    cap = version_cap(release, apis)
    assert cap is not None
    return cap
