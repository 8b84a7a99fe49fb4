"""Which Kafka a broker looks like."""

from __future__ import annotations

import pytest
from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.broker.requests.served.kafka_releases import RELEASES
from kpybroker.broker.requests.served.release import cap_of_release
from kpybroker.client.connect.versions import MARKERS, is_controller_only, looks_like

RECORDED = {version: ranges for version, ranges in BROKER_API_VERSIONS.items() if version >= (0, 10, 0)}
"""kafka-python's records of the responses of brokers of each release."""


@pytest.mark.parametrize("version", RECORDED, ids=str)
def test_every_release_is_recognized_by_what_it_served(version: tuple[int, ...]) -> None:
    release = ".".join(map(str, version))
    assert looks_like(RECORDED[version]) == release


def test_every_marker_is_a_release_that_is_recorded() -> None:
    assert {release for release, _, _ in MARKERS} <= {".".join(map(str, version)) for version in RECORDED}


def test_this_broker_looks_like_what_it_is() -> None:
    assert looks_like({int(key): versions for key, versions in SERVED.items()}) == "4.3"


@pytest.mark.parametrize("release", RELEASES)
def test_in_the_place_of_a_release_it_looks_like_that(release: str) -> None:
    shown = "0.11" if release == "0.11.0" else release
    assert looks_like({int(key): versions for key, versions in cap_of_release(release).listed.items()}) == shown


def test_a_controllers_listener_has_votes_and_no_produce() -> None:
    assert is_controller_only({18: (0, 4), 52: (0, 1)})
    assert not is_controller_only(RECORDED[3, 9])
