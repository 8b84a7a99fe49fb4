"""What a cluster that others use too is asked for: topics come and go in between."""

from __future__ import annotations

import pytest

from kpybroker.pytest_plugin.external_channel import ExternalChannel
from kpybroker.testing import Broker
from kpybroker.wire.errors import ErrorCode


@pytest.mark.parametrize("is_known", [False, True], ids=["before it is described", "after its partitions are known"])
def test_a_topic_that_is_deleted_while_all_are_listed_is_left_out(is_known: bool) -> None:
    class Deleting(ExternalChannel):
        def _indexes(self, topic: str) -> list[int]:
            indexes = super()._indexes(topic) if is_known else []
            if topic == "gone":
                other.call("delete_topic", name="gone")
            return indexes or super()._indexes(topic)

    with Broker(in_thread=True) as broker:
        broker.create_topic("gone")
        broker.create_topic("stays")
        other, channel = (cls({"bootstrap.servers": broker.bootstrap_servers}) for cls in (ExternalChannel, Deleting))
        assert [topic["name"] for topic in channel.call("topics")] == ["stays"]


@pytest.mark.parametrize("error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE])
def test_a_leader_that_does_not_know_yet_is_asked_again(error: ErrorCode) -> None:
    with Broker(in_thread=True) as broker:
        broker.create_topic("new")
        fault = broker.faults.error("ListOffsets", error, times=2)
        channel = ExternalChannel({"bootstrap.servers": broker.bootstrap_servers})
        assert channel.call("topic", name="new")["partitions"][0]["high_watermark"] == 0
        assert fault.hits == 2
