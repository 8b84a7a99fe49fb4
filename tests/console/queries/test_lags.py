"""The lag of many groups: few requests, and what each group is behind by itself."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import TopicPartition

from kpybroker.client.actions.groups import lags_of
from kpybroker.client.connect.admin import Cluster
from kpybroker.client.connect.settings import Settings
from kpybroker.client.connect.wire import GROUP, WireCluster
from kpybroker.client.direct.cluster import DirectCluster
from kpybroker.console.queries import groups
from kpybroker.console.web.live import CLIENT_ID, Notes
from kpybroker.testing import Broker
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest
from tests.console.conftest import START_S, settings_for
from tests.console.test_messages import record

GROUPS = 30
ENDS = (6, 4)


@pytest.fixture(scope="module")
def many(broker: Broker) -> list[str]:
    """Groups that have committed more and more of the first of two partitions; every third has a topic of its own."""
    for topic in ("lags", "lags-other"):
        broker.create_topic(topic, 2)
        broker.produce(topic, [record("v", "k", number) for number in (0,) * ENDS[0] + (1,) * ENDS[1]])
    part = OffsetCommitRequest.OffsetCommitRequestPartition
    topic_of = OffsetCommitRequest.OffsetCommitRequestTopic
    names = [f"lags-{number:02}" for number in range(GROUPS)]
    with WireCluster(Settings(broker.bootstrap_servers, {}, START_S, "the test")) as wire:
        for number, name in enumerate(names):
            topics = [topic_of(name="lags", partitions=[part(partition_index=0, committed_offset=number % 7)])]
            if number % 3 == 0:
                topics.append(topic_of(name="lags-other", partitions=[part(partition_index=1, committed_offset=4)]))
            request = OffsetCommitRequest(group_id=name, topics=topics)
            wire.coordinator(name, GROUP).request(ApiKey.OFFSET_COMMIT, request)
    return names


def expected(number: int) -> tuple[int, int]:
    """Lag, and partitions that were never read."""
    return ENDS[0] - number % 7, 2 if number % 3 == 0 else 1


@pytest.mark.parametrize("factory", [DirectCluster, Cluster])
def test_each_group_has_its_own_lag(broker: Broker, many: list[str], factory: Any) -> None:
    cluster, notes = factory(settings_for(broker.bootstrap_servers)), Notes()
    found = lags_of(cluster, dict.fromkeys([*many, "lags-none"]), notes)
    behind = {name: (one.lag, one.unread) for name, one in found.items() if one is not None}
    assert behind == {"lags-none": (0, 0), **{name: expected(number) for number, name in enumerate(many)}}
    assert notes.items == []
    alone = lags_of(cluster, {many[3]: None}, notes)[many[3]]
    assert alone == found[many[3]]


@pytest.mark.parametrize("factory", [DirectCluster, Cluster])
def test_what_was_deleted_is_not_unread(broker: Broker, factory: Any) -> None:
    cluster, notes = factory(settings_for(broker.bootstrap_servers)), Notes()
    topic = f"gone-{factory.__name__}"
    broker.create_topic(topic, 3)
    broker.produce(topic, [record("v", "k", number) for number in (0, 1, 2)])
    admin = broker.admin()
    (deleted,) = admin.delete_records([TopicPartition(topic, 1, 1)]).values()
    assert deleted.result(START_S).low_watermark == 1
    part, topic_of = OffsetCommitRequest.OffsetCommitRequestPartition, OffsetCommitRequest.OffsetCommitRequestTopic
    committed = [topic_of(name=topic, partitions=[part(partition_index=0, committed_offset=0)])]
    with WireCluster(Settings(broker.bootstrap_servers, {}, START_S, "the test")) as wire:
        request = OffsetCommitRequest(group_id=topic, topics=committed)
        wire.coordinator(topic, GROUP).request(ApiKey.OFFSET_COMMIT, request)
    assert lags_of(cluster, {topic: None}, notes) == {topic: (1, 1)}
    assert notes.items == []


def test_a_list_with_lags_asks_for_all_of_them_at_once(broker: Broker, many: list[str]) -> None:
    cluster = DirectCluster(settings_for(broker.bootstrap_servers)._replace(properties={"client.id": CLIENT_ID}))
    for lag in ("1", "only"):
        broker.clear_requests()
        found = groups.listed(cluster, groups.Filter(text="lags-", lag=lag), Notes())
        assert len(found.rows) == len([n for n in range(GROUPS) if lag == "1" or any(expected(n))])
        made = [one.api for one in broker.requests(client_id=CLIENT_ID)]
        assert made.count("OffsetFetch") == 1
        assert made.count("ListOffsets") == 2
        assert made.count("FindCoordinator") <= 3
    cluster.close()


def test_a_group_whose_offsets_are_refused_is_a_note(broker: Broker, many: list[str]) -> None:
    cluster, notes = DirectCluster(settings_for(broker.bootstrap_servers)), Notes()
    with broker.faults.error("OffsetFetch", "GROUP_AUTHORIZATION_FAILED", group=many[1]):
        found = lags_of(cluster, dict.fromkeys(many[:3]), notes)
    assert [name for name, one in found.items() if one is None] == [many[1]]
    assert [note["item"] for note in notes.items] == [f"group {many[1]}"]
    cluster.close()


def test_a_coordinator_that_has_moved_is_asked_again(broker: Broker, many: list[str]) -> None:
    cluster = DirectCluster(settings_for(broker.bootstrap_servers))
    with broker.faults.error("OffsetFetch", "NOT_COORDINATOR", group=many[1], times=2):
        found = lags_of(cluster, dict.fromkeys(many[:3]), Notes())
    assert all(one is not None for one in found.values())
    cluster.close()
