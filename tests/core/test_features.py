"""Ranges and levels of features: what a new cluster begins with, what a broker cannot serve, what a release had."""

from __future__ import annotations

import pytest

from kpybroker.core import features
from kpybroker.core.features import GROUP_VERSION, Finalized, UpgradeType, VersionRange


def test_a_feature_that_is_not_finalized_is_at_level_0() -> None:
    assert Finalized().level(GROUP_VERSION) == 0
    assert Finalized({GROUP_VERSION: 1}, 4).level(GROUP_VERSION) == 1
    assert Finalized({GROUP_VERSION: 1}, 4).level("share.version") == 0


@pytest.mark.parametrize(("levels", "text"), [((0, 1), "0-1"), ((1, 1), "1"), ((0, 0), "0")])
def test_a_range_is_printed_as_kafka_does(levels: tuple[int, int], text: str) -> None:
    assert str(VersionRange(*levels)) == text


def test_a_range_has_both_of_its_ends() -> None:
    assert [VersionRange(1, 2).contains(level) for level in range(4)] == [False, True, True, False]


def test_a_new_cluster_begins_with_the_highest_levels() -> None:
    supported = {"a": VersionRange(0, 2), "b": VersionRange(1, 1), "c": VersionRange(0, 0)}
    assert features.newest(supported) == {"a": 2, "b": 1}
    assert features.newest({}) == {}


@pytest.mark.parametrize(
    ("supported", "missing"),
    [
        ({"a": VersionRange(0, 2)}, {}),
        ({"a": VersionRange(2, 3)}, {}),
        ({"a": VersionRange(0, 1)}, {"a": 2}),
        ({"a": VersionRange(3, 3)}, {"a": 2}),
        ({"a": VersionRange(0, 0)}, {"a": 2}),
        ({"b": VersionRange(0, 2)}, {"a": 2}),
        ({}, {"a": 2}),
    ],
)
def test_what_is_finalized_and_not_supported_is_named(
    supported: dict[str, VersionRange], missing: dict[str, int]
) -> None:
    assert features.unsupported({"a": 2}, supported) == missing


def test_a_release_has_the_part_of_the_ranges_that_it_knew() -> None:
    supported = {"a": VersionRange(0, 2), "b": VersionRange(1, 2), "c": VersionRange(2, 2)}
    assert features.of_release(supported, {"a": 1, "b": 3, "c": 1}) == {
        "a": VersionRange(0, 1),
        "b": VersionRange(1, 2),
    }
    assert features.of_release(supported, {"a": 0}) == {}
    assert features.of_release({}, {"a": 1}) == {}


def test_a_release_knows_levels_up_to_its_own() -> None:
    assert features.levels_of_release({"a": 2, "b": 1, "c": 1}, {"a": 1, "b": 3}) == {"a": 1, "b": 1}
    assert features.levels_of_release({"a": 2}, {"a": 0}) == {}


def test_an_upgrade_type_that_is_not_known_is_unknown() -> None:
    assert [UpgradeType.of(code) for code in range(-1, 5)] == [
        *(UpgradeType.UNKNOWN, UpgradeType.UNKNOWN),
        *(UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE),
        UpgradeType.UNKNOWN,
    ]


def test_what_this_build_supports_is_in_the_table_of_features() -> None:
    for name, levels in features.SUPPORTED.items():
        feature = features.feature_named(name)
        assert feature is not None
        assert 0 <= levels.min <= levels.max < len(feature.levels)
    assert features.feature_named("metadata.version") is None
