"""`inter.broker.protocol.version` picks the request versions that ControllerChannelManager picks."""

from __future__ import annotations

import pytest

from kpybroker.core import metadata_version as mv


@pytest.mark.parametrize(
    ("version", "leader_and_isr", "update_metadata", "stop_replica"),
    [
        ("3.9-IV0", 7, 8, 4),
        ("3.9", 7, 8, 4),
        ("3.3-IV0", 6, 7, 3),
        ("3.1", 5, 7, 3),
        ("2.8-IV0", 4, 6, 3),
        ("2.4-IV0", 3, 5, 1),
        ("2.4", 4, 6, 2),
        ("2.2", 2, 5, 1),
        ("1.0", 1, 4, 0),
        ("0.10.2", 0, 3, 0),
        ("0.10.0", 0, 2, 0),
        ("0.9.0", 0, 1, 0),
        ("0.8.2", 0, 0, 0),
    ],
)
def test_request_versions(version: str, leader_and_isr: int, update_metadata: int, stop_replica: int) -> None:
    number = mv.parse(version)
    assert mv.leader_and_isr_version(number) == leader_and_isr
    assert mv.update_metadata_version(number) == update_metadata
    assert mv.stop_replica_version(number) == stop_replica


def test_features_by_version() -> None:
    assert not mv.uses_topic_id(mv.parse("2.7"))
    assert mv.uses_topic_id(mv.parse("2.8"))
    assert not mv.is_feature_versioning_supported(mv.parse("2.6"))
    assert mv.is_leader_recovery_supported(mv.parse("3.2"))
    assert [mv.broker_znode_version(mv.parse(v)) for v in ("3.9", "2.6", "0.9.0")] == [5, 4, 2]
    assert [mv.feature_znode_version(mv.parse(v)) for v in ("3.9", "3.2")] == [2, 1]


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(ValueError, match="not a valid version"):
        mv.parse("9.9")
