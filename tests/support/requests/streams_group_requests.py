"""Members of streams groups (KIP-1071) as Kafka Streams knows them, for tests that send requests to a whole broker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from kpybroker.broker.app import Broker
from kpybroker.core.authorizer import Authorizer
from kpybroker.core.features import STREAMS_VERSION, Finalized
from kpybroker.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from kpybroker.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from tests.support.brokers.running_broker import running_broker
from tests.support.requests.consumer_group_requests import loaded
from tests.support.requests.share_group_requests import ask_as

DEADLINE_S = 60

Request = StreamsGroupHeartbeatRequest
Tasks = Mapping[str, list[int]]


@asynccontextmanager
async def streams_broker(directory: Path, *, group_id: str = "g", **options: Any) -> AsyncIterator[Broker]:
    """A broker that has loaded the group; nothing delays an assignment."""
    options = {"group_streams_assignment_interval_ms": "0", "group_streams_initial_rebalance_delay_ms": "0"} | options
    async with running_broker(directory, **options) as broker:
        await loaded(broker, group_id)
        yield broker


def finalize_streams_version(broker: Broker, level: int) -> None:
    features = broker.metadata.snapshot.features
    broker.metadata.finalize(Finalized({**features.levels, STREAMS_VERSION: level}, features.epoch + 1))


def topology(*sources: str, epoch: int = 0, **fields: Any) -> Request.Topology:
    """One subtopology that reads these topics."""
    return Request.Topology(
        epoch=epoch, subtopologies=[Request.Subtopology(subtopology_id="0", source_topics=list(sources), **fields)]
    )


def counting(source: str = "in", **changelog: Any) -> Request.Topology:
    """An application that counts by a new key: it has a repartition topic and a changelog."""
    repartition = Request.TopicInfo(name="by-key")
    counts = Request.TopicInfo(name="counts", **changelog)
    return Request.Topology(
        epoch=0,
        subtopologies=[
            Request.Subtopology(subtopology_id="0", source_topics=[source], repartition_sink_topics=["by-key"]),
            Request.Subtopology(
                subtopology_id="1",
                repartition_source_topics=[repartition],
                state_changelog_topics=[counts],
                copartition_groups=[Request.CopartitionGroup(repartition_source_topics=[0])],
            ),
        ],
    )


class StreamsMember:
    """A member: its epoch, as it last received it, and what it runs. It gives up and takes over tasks at once."""

    def __init__(
        self, broker: Broker, member_id: str, group_id: str = "g", rights: Authorizer | None = None, **always: Any
    ) -> None:
        self.broker = broker
        self.member_id = member_id
        self.group_id = group_id
        self.rights = rights
        self.always = always
        self.epoch = 0
        self.active: Tasks = {}
        self.standby: Tasks = {}
        self.statuses: dict[int, str] = {}

    async def send(self, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """One heartbeat; the response changes nothing here."""
        known: dict[str, Any] = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
        }
        request = Request(**known | self.always | fields)
        response = await ask_as(self.broker, request, 0, self.rights, self.member_id)
        assert isinstance(response, StreamsGroupHeartbeatResponse)
        return response

    async def join(self, of: Request.Topology, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """The first heartbeat."""
        self.epoch, self.active, self.standby = 0, {}, {}
        known: dict[str, Any] = {
            "rebalance_timeout_ms": 60_000,
            "topology": of,
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
            "process_id": f"process-{self.member_id}",
        }
        return self._take(await self.send(**known | fields))

    async def beat(self, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """A heartbeat with what it runs."""
        return self._take(
            await self.send(
                active_tasks=_task_ids(self.active), standby_tasks=_task_ids(self.standby), warmup_tasks=[], **fields
            )
        )

    def _take(self, response: StreamsGroupHeartbeatResponse) -> StreamsGroupHeartbeatResponse:
        assert response.error_code == 0, response
        self.epoch = response.member_epoch
        self.statuses = {status.status_code: status.status_detail for status in response.status or ()}
        if response.active_tasks is not None:
            self.active = {one.subtopology_id: one.partitions for one in response.active_tasks}
            self.standby = {one.subtopology_id: one.partitions for one in response.standby_tasks or ()}
        return response

    async def until(self, *, active: Tasks) -> None:
        """Heartbeats until it runs these active tasks."""
        with trio.fail_after(DEADLINE_S):
            while self.active != active:
                await trio.lowlevel.checkpoint()
                await self.beat()


def _task_ids(tasks: Tasks) -> list[Request.TaskIds]:
    return [Request.TaskIds(subtopology_id=name, partitions=indexes) for name, indexes in tasks.items()]


async def described_streams(
    broker: Broker, group_id: str = "g", rights: Authorizer | None = None, **fields: Any
) -> Any:
    """The group in StreamsGroupDescribe."""
    request = StreamsGroupDescribeRequest(group_ids=[group_id], **fields)
    (group,) = (await ask_as(broker, request, 0, rights)).groups
    return group
