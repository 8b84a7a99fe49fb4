"""The table of what Kafka's releases serve. That it is right: compat_tests/protocol/test_kafka_releases.py."""

from __future__ import annotations

import itertools

import pytest

from kpybroker.broker.requests.served.apis import CLIENT_METRICS, NEEDS_SHARE_VERSION, NEEDS_STREAMS_VERSION, SERVED
from kpybroker.broker.requests.served.kafka_releases import (
    BETWEEN_BROKERS,
    RELEASES,
    capped,
    levels_of,
    lists_own_range,
    release_named,
    versions_of,
)
from kpybroker.wire.api import ApiKey


def test_versions_only_grow_from_release_to_release() -> None:
    for older, newer in itertools.pairwise(RELEASES):
        before, after = versions_of(older), versions_of(newer)
        gone = BETWEEN_BROKERS | {ApiKey.ENVELOPE} if newer == "4.0" else set()
        assert before.keys() - after.keys() == gone
        assert all(after[key][1] >= newest for key, (_, newest) in before.items() if key not in gone)


def test_a_cap_at_the_reference_changes_only_what_we_serve_beyond_it() -> None:
    cap = capped(SERVED, versions_of("3.9"))
    beyond = {ApiKey.DESCRIBE_TOPIC_PARTITIONS, ApiKey.LIST_CONFIG_RESOURCES}
    assert SERVED.keys() - cap.keys() == beyond | CLIENT_METRICS | NEEDS_SHARE_VERSION | NEEDS_STREAMS_VERSION
    changed = {key for key in cap if SERVED[key] != cap[key]}
    of_records = {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA}
    of_transactions = {ApiKey.END_TXN, ApiKey.WRITE_TXN_MARKERS, ApiKey.TXN_OFFSET_COMMIT, ApiKey.LIST_TRANSACTIONS}
    of_groups = {ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.DESCRIBE_GROUPS}
    of_groups |= {ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH}
    of_clusters = {ApiKey.DESCRIBE_CLUSTER, ApiKey.DESCRIBE_LOG_DIRS, ApiKey.ALTER_PARTITION_REASSIGNMENTS}
    assert changed == of_records | of_groups | of_clusters | of_transactions | {ApiKey.UPDATE_FEATURES}
    assert cap[ApiKey.UPDATE_FEATURES] == (0, 1)
    assert cap[ApiKey.CONSUMER_GROUP_HEARTBEAT] == (0, 0)


def test_the_oldest_version_that_either_serves_counts() -> None:
    assert capped(SERVED, versions_of("0.11.0"))[ApiKey.CONTROLLED_SHUTDOWN] == (1, 1)
    assert capped({ApiKey.FETCH: (4, 11)}, {ApiKey.FETCH: (0, 3)}) == {}


@pytest.mark.parametrize(
    ("name", "release"),
    [("2.4", "2.4"), ("2.4.1", "2.4"), ("0.10.2", "0.10.2"), ("0.11.0.3", "0.11.0"), ("3.9.1", "3.9"), ("1.0", "1.0")],
)
def test_a_version_belongs_to_a_release(name: str, release: str) -> None:
    assert release_named(name) == release


@pytest.mark.parametrize("name", ["2.44", "0.11", "2.4.x"])
def test_a_version_of_no_release_in_the_table_has_none(name: str) -> None:
    assert release_named(name) is None


def test_since_2_4_a_client_learns_which_versions_of_api_versions_are_served() -> None:
    assert [release for release in RELEASES if not lists_own_range(release)] == list(RELEASES[:10])
    assert lists_own_range("2.4")


def test_a_release_supports_the_levels_that_it_had() -> None:
    features = ("group.version", "transaction.version", "share.version", "streams.version")
    assert levels_of("3.9") == dict.fromkeys(features, 0)
    assert levels_of("4.0") == dict(zip(features, (1, 2, 0, 0), strict=True))
    assert levels_of("4.1") == dict(zip(features, (1, 2, 1, 0), strict=True))
    assert levels_of("4.2") == levels_of("4.3") == dict(zip(features, (1, 2, 1, 1), strict=True))
