"""What a fetcher does with an answer for a partition that no longer stands where it stood when it asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.broker.fetcher import Fetcher
from kpybroker.broker.replication_quota import FOLLOWER, ReplicationQuota
from kpybroker.core.follower import FetchState
from kpybroker.core.follower_session import Position
from kpybroker.storage.names import TopicPartition
from kpybroker.wire.messages.fetch import FetchResponse
from tests.support.running_broker import create_topic, running_broker

KEY = TopicPartition("t", 0)


@pytest.mark.parametrize("is_replaced", [False, True])
async def test_an_answer_not_taken_makes_the_leader_tell_all_again(tmp_path: Path, is_replaced: bool) -> None:
    """The leader thinks that its high watermark is known now, and would not name it in this session again."""
    async with running_broker(tmp_path) as broker:
        topic_id = await create_topic(broker, "t")
        fetcher = Fetcher(broker, 1, 0, ReplicationQuota(broker, FOLLOWER))
        session = fetcher._endpoint.session
        asked = FetchState("t", 0, topic_id, leader_epoch=0, fetch_offset=0)
        fetcher.partitions[KEY] = asked
        positions: dict[tuple[str, int], Position] = {("t", 0): Position(topic_id, 0, 0, 1000, 0, -1)}
        assert session.request(positions, 17) is not None
        data = FetchResponse.PartitionData(partition_index=0, high_watermark=0, log_start_offset=0, records=b"")
        topics = [FetchResponse.FetchableTopicResponse(topic_id=topic_id, partitions=[data])]
        assert session.answered(0, session_id=5)
        if is_replaced:
            fetcher.partitions[KEY] = FetchState("t", 0, topic_id, leader_epoch=1, fetch_offset=0)
        await fetcher._take(FetchResponse(session_id=5, responses=topics), {KEY: asked}, positions)
        following = session.request(positions, 17)
        assert following is not None
        assert (following[0].session_id, following[0].session_epoch) == (5, 0 if is_replaced else 1)
        assert bool(following[0].topics) == is_replaced
