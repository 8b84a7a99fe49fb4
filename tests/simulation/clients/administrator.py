"""What an administrator does to topics: what a world begins with, and in `Operator` at random.

Each request is sent to any broker, as tools do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import trio

from compat_tests.faults.history import History
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kpybroker.wire.messages.create_partitions import CreatePartitionsRequest
from kpybroker.wire.messages.create_topics import CreateTopicsRequest
from kpybroker.wire.messages.delete_records import DeleteRecordsRequest
from kpybroker.wire.messages.delete_topics import DeleteTopicsRequest
from kpybroker.wire.messages.elect_leaders import ElectLeadersRequest
from kpybroker.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kpybroker.wire.schema import Message
from tests.simulation.clients.client import Client, Lost, Partition, only_partition
from tests.simulation.world import World

TOPIC, GROUP = 2, 32
"""Types of resources."""
TRIES_MAX = 6
TIMEOUT_S = 10.0
OWN = ("o0", "o1", "o2")
PARTITIONS_MAX = 4
PAUSE_S = 2.0
DOUBT_S = 30.0
"""How long after its last try a request may still be with a broker that was stopped or cut off."""
SEGMENT_BYTES = ("16384", "65536", "1048576")
ELSEWHERE = (ErrorCode.NOT_CONTROLLER, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER)


class Administrator(Client):
    """One thing at a time, and each until it is done."""

    async def create_topic(self, name: str, partitions: int, replicas: int, **configs: str) -> None:
        await self._create_topic(creatable(name, partitions, replicas, configs))

    async def create_at(self, name: str, brokers: Sequence[int], **configs: str) -> None:
        """With one partition, at these brokers in this order."""
        wanted = creatable(name, -1, -1, configs)
        wanted.assignments = [
            CreateTopicsRequest.CreatableReplicaAssignment(partition_index=0, broker_ids=list(brokers))
        ]
        await self._create_topic(wanted)

    async def _create_topic(self, wanted: CreateTopicsRequest.CreatableTopic) -> None:
        while True:
            try:
                response = await self.ask(
                    self.any_broker(), CreateTopicsRequest(topics=[wanted], timeout_ms=5000), 5, timeout_s=10
                )
                if response.topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                    return
                self.note(f"{wanted.name} is not created: {ErrorCode(response.topics[0].error_code).name}")
            except Lost:
                pass
            await self.pause()

    async def delete_topic(self, name: str) -> None:
        while True:
            try:
                request = DeleteTopicsRequest(topic_names=[name], timeout_ms=5000)
                if (await self.ask(self.any_broker(), request, 5, TIMEOUT_S)).responses[0].error_code == ErrorCode.NONE:
                    return
            except Lost:
                pass
            await self.pause()

    async def elect_preferred(self) -> None:
        """Of all partitions."""
        while True:
            try:
                request = ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=5000)
                if (await self.ask(self.any_broker(), request, 2, TIMEOUT_S)).error_code == ErrorCode.NONE:
                    return
            except Lost:
                pass
            await self.pause()

    async def set_config(self, resource_type: int, name: str, key: str, value: str) -> None:
        while True:
            try:
                response = await self.ask(self.any_broker(), _config_request(resource_type, name, key, value), 1)
                if response.responses[0].error_code == ErrorCode.NONE:
                    return
                self.note(f"{key} is not set: {ErrorCode(response.responses[0].error_code).name}")
            except Lost:
                pass
            await self.pause()


def creatable(name: str, partitions: int, replicas: int, configs: dict[str, str]) -> CreateTopicsRequest.CreatableTopic:
    return CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def _config_request(resource_type: int, name: str, key: str, value: str) -> IncrementalAlterConfigsRequest:
    config = IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=0, value=value)
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=resource_type, resource_name=name, configs=[config]
    )
    return IncrementalAlterConfigsRequest(resources=[resource])


@dataclass(slots=True)
class TopicState:
    """What a topic is at the end, after all that was done to it. `is_known`: every request that may have an effect had
    a response.
    """

    is_there: bool = False
    count: int = 0
    segment_bytes: str | None = None
    replicas: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """By partition, of those that were moved."""
    is_known: bool = True
    doubtful_until: float = 0.0
    """A request that was lost may have its effect until then."""


class Operator(Administrator):
    """Does things at random to topics of its own, and to that of the others what loses none of their records.

    With `trims` it also deletes records of that: `trimmed` are the offsets up to which it may have done so.
    """

    def __init__(
        self, world: World, history: History, name: str, partitions: Sequence[Partition], *, trims: bool
    ) -> None:
        super().__init__(world, name)
        self._history = history
        self._partitions = partitions
        self._trims = trims
        self.trimmed: dict[Partition, int] = dict.fromkeys(partitions, 0)
        self.wanted = {topic: TopicState() for topic in OWN}
        self.wanted[partitions[0][0]] = TopicState(True, len(partitions))

    async def run(self) -> None:
        steps = [self._create, self._create, self._delete, self._grow, self._move, self._move, self._elect, self._set]
        if self._trims:
            steps += [self._trim, self._trim]
        while not self.is_stopping:
            await self.chance.choice(steps)()
            await self.pause(PAUSE_S)
        self.close()

    async def _do(
        self,
        request: Message,
        version: int,
        error_of: Any,
        wanted: TopicState | None = None,
        broker_id: int | None = None,
    ) -> ErrorCode | None:
        """The error of its one part; None where no one knows what became of it, after which `wanted` is not known."""
        for _ in range(TRIES_MAX):
            try:
                asked = self.any_broker() if broker_id is None else broker_id
                response = await self.ask(asked, request, version, TIMEOUT_S)
                error = ErrorCode(error_of(response))
                self.note(f"{type(request).__name__}: {error.name}")
                if error is ErrorCode.UNKNOWN_SERVER_ERROR:
                    self.world.problem(f"UNKNOWN_SERVER_ERROR: {type(request).__name__} of {self.name}")
                if error is ErrorCode.REQUEST_TIMED_OUT:
                    break
                if error not in ELSEWHERE:
                    return error
            except Lost:
                self._doubt(wanted)
            await self.pause()
        self._doubt(wanted)
        return None

    @staticmethod
    def _doubt(wanted: TopicState | None) -> None:
        if wanted is not None:
            wanted.is_known = False
            wanted.doubtful_until = trio.current_time() + DOUBT_S

    def _settle(self, name: str, now: TopicState) -> None:
        """This is what it is from now on, unless a request before may still have an effect."""
        before = self.wanted[name]
        now.doubtful_until = before.doubtful_until
        now.is_known = trio.current_time() >= before.doubtful_until
        self.wanted[name] = now

    def _own(self) -> tuple[str, TopicState]:
        name = self.chance.choice(OWN)
        return name, self.wanted[name]

    async def _create(self) -> None:
        name, wanted = self._own()
        partitions, replicas = self.chance.randint(1, 2), self.chance.randint(1, min(3, len(self.world.machines)))
        segment_bytes = self.chance.choice(SEGMENT_BYTES)
        topic = creatable(name, partitions, replicas, {"segment.bytes": segment_bytes})
        request = CreateTopicsRequest(topics=[topic], timeout_ms=5000)
        error = await self._do(request, 5, lambda response: response.topics[0].error_code, wanted)
        if error is ErrorCode.NONE:
            self._settle(name, TopicState(True, partitions, segment_bytes))

    async def _delete(self) -> None:
        name, wanted = self._own()
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=5000)
        error = await self._do(request, 5, lambda response: response.responses[0].error_code, wanted)
        if error is ErrorCode.NONE:
            self._settle(name, TopicState())

    async def _grow(self) -> None:
        name, wanted = self._own()
        count = self.chance.randint(2, PARTITIONS_MAX)
        topic = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=count)
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=5000)
        error = await self._do(request, 3, lambda response: response.results[0].error_code, wanted)
        if error is ErrorCode.NONE:
            wanted.count = count

    async def _move(self) -> None:
        """A partition, to other brokers or only in another order."""
        name = self.chance.choice((*OWN, self._partitions[0][0]))
        is_own = name in OWN
        index = self.chance.randrange(2) if is_own else self.chance.choice(self._partitions)[1]
        brokers = sorted(self.world.machines)
        lowest = 1 if is_own else min(2, len(brokers))
        replicas = self.chance.sample(brokers, self.chance.randint(lowest, min(3, len(brokers))))
        moved = AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index=index, replicas=replicas)
        topic = AlterPartitionReassignmentsRequest.ReassignableTopic(name=name, partitions=[moved])
        request = AlterPartitionReassignmentsRequest(topics=[topic], timeout_ms=5000)
        wanted = self.wanted[name]

        def error_of(found: Any) -> int:
            return int(found.error_code or only_partition(found, "responses", "partitions").error_code)

        if await self._do(request, 0, error_of, wanted) is ErrorCode.NONE:
            wanted.replicas[index] = tuple(replicas)

    async def _elect(self) -> None:
        """The preferred leaders of everything."""
        request = ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=5000)
        await self._do(request, 2, lambda response: response.error_code)

    async def _set(self) -> None:
        name, wanted = self._own()
        value = self.chance.choice(SEGMENT_BYTES)
        request = _config_request(TOPIC, name, "segment.bytes", value)
        error = await self._do(request, 1, lambda response: response.responses[0].error_code, wanted)
        if error is ErrorCode.NONE:
            wanted.segment_bytes = value

    async def _trim(self) -> None:
        """Up to a record that was acknowledged."""
        partition = self.chance.choice(self._partitions)
        offsets = [ack.offset for ack in self._history.acknowledged[partition] if ack.offset > 0]
        if not offsets:
            return
        offset = self.chance.choice(offsets)
        self.trimmed[partition] = max(self.trimmed[partition], offset)
        wanted = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=partition[1], offset=offset)
        topic = DeleteRecordsRequest.DeleteRecordsTopic(name=partition[0], partitions=[wanted])
        request = DeleteRecordsRequest(topics=[topic], timeout_ms=3000)
        self.forget(partition)
        leader = await self.leader(partition)

        def error_of(found: Any) -> int:
            return int(only_partition(found, "topics", "partitions").error_code)

        await self._do(request, 2, error_of, broker_id=leader)
