"""A broker in the place of a release: its features, and what it serves and advertises."""

from __future__ import annotations

import pytest

from kpybroker.broker.requests.context import PlainConnectionInfo
from kpybroker.broker.requests.served.apis import SERVED, SHARE_STATES
from kpybroker.broker.requests.served.kafka_releases import BETWEEN_BROKERS, RELEASES, capped, versions_of
from kpybroker.broker.requests.served.release import cap_of_release, release_served
from kpybroker.broker.requests.served.version_cap import VersionCap, uncapped
from kpybroker.config.broker import BrokerConfig
from kpybroker.core.features import VersionRange
from kpybroker.wire.api import ApiKey

WIDE = {"group.version": VersionRange(0, 7)}


def test_without_a_release_everything_is_served() -> None:
    assert release_served(BrokerConfig(), WIDE) == (WIDE, uncapped)


@pytest.mark.parametrize(("release", "ranges"), [("3.9", {}), ("4.0", {"group.version": VersionRange(0, 1)})])
def test_a_release_has_its_features_and_its_cap(release: str, ranges: dict[str, VersionRange]) -> None:
    supported, cap_of = release_served(BrokerConfig({"kpybroker.kafka.version": release}), WIDE)
    assert supported == ranges
    assert cap_of(PlainConnectionInfo()) == cap_of_release(release)


@pytest.mark.parametrize("release", RELEASES)
def test_what_a_release_advertised_is_advertised(release: str) -> None:
    assert cap_of_release(release).listed == capped(SERVED, versions_of(release))


@pytest.mark.parametrize(
    ("release", "newest"),
    [("3.9", (11, 4, 4, 1)), ("4.0", (12, 5, 5, 1)), ("4.1", (13, 5, 5, 1)), ("4.3", (13, 5, 5, 2))],
)
def test_transactions_of_version_2_are_of_kafka_4(release: str, newest: tuple[int, ...]) -> None:
    """The versions that add, end and bump come together, and with the level of the feature."""
    keys = (ApiKey.PRODUCE, ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.WRITE_TXN_MARKERS)
    cap = cap_of_release(release)
    assert tuple(cap.listed[key][1] for key in keys) == newest
    assert cap.finalized({"transaction.version": 2}) == ({} if release == "3.9" else {"transaction.version": 2})


def test_since_4_0_brokers_go_on_among_themselves_and_old_versions_of_produce_are_refused() -> None:
    cap = cap_of_release("4.0")
    assert {key: cap.served[key] for key in BETWEEN_BROKERS} == {key: SERVED[key] for key in BETWEEN_BROKERS}
    assert (cap.served[ApiKey.PRODUCE], cap.listed[ApiKey.PRODUCE]) == ((3, 12), (0, 12))
    assert cap_of_release("3.9").served == cap_of_release("3.9").listed


def test_brokers_ask_each_other_for_states_of_share_groups_in_the_newest_versions() -> None:
    cap = cap_of_release("4.1")
    assert (cap.listed[ApiKey.WRITE_SHARE_GROUP_STATE], cap.served[ApiKey.WRITE_SHARE_GROUP_STATE]) == ((0, 0), (0, 1))
    assert cap.served.keys() >= SHARE_STATES
    assert SHARE_STATES.isdisjoint(cap_of_release("4.0").served)


def test_a_release_shows_the_features_that_it_had() -> None:
    finalized = {"group.version": 7}
    assert cap_of_release("3.9").supported(WIDE) == {}
    assert cap_of_release("3.9").finalized(finalized) == {}
    assert cap_of_release("4.0").supported(WIDE) == {"group.version": VersionRange(0, 1)}
    assert cap_of_release("4.0").finalized(finalized) == {"group.version": 1}
    assert (VersionCap(SERVED).supported(WIDE), VersionCap(SERVED).finalized(finalized)) == (WIDE, finalized)


def test_a_cap_advertises_what_it_serves_but_for_what_it_names() -> None:
    served = {ApiKey.FETCH: (4, 11), ApiKey.PRODUCE: (3, 9)}
    assert VersionCap(served).listed == served
    assert VersionCap(served, True, {ApiKey.FETCH: None, ApiKey.PRODUCE: (0, 9)}).listed == {ApiKey.PRODUCE: (0, 9)}
