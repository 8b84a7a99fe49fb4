"""All clients of one storm: who they are, in which order they end, and what is judged of each kind of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from compat_tests.faults.history import History
from compat_tests.faults.share_groups.check import check as check_share_group
from compat_tests.faults.share_groups.history import Span
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from tests.simulation.checks.excuses import of_share_group
from tests.simulation.clients.administrator import GROUP, Administrator, Operator
from tests.simulation.clients.client import Client, Lost, Partition
from tests.simulation.clients.consumer import Consumer, ConsumerGroup
from tests.simulation.clients.fetcher import Fetcher
from tests.simulation.clients.habits import Habits
from tests.simulation.clients.keyed import CONFIGS, Keyed
from tests.simulation.clients.keyed import TOPIC as COMPACTED
from tests.simulation.clients.member import Group, Member
from tests.simulation.clients.producer import Producer
from tests.simulation.clients.sharer import ShareGroup, Sharer
from tests.simulation.clients.streamer import Streamer
from tests.simulation.clients.tools import Tools
from tests.simulation.clients.transactional import Transactional
from tests.simulation.seams.agenda import until
from tests.simulation.storm import Storm
from tests.simulation.world import World

CALM_S = 8.0
"""After a fault: until then leaders may change, and with them who has a lock."""
DRAIN_LOOK_S = 0.5

AnyClient = Producer | Fetcher | Sharer | Operator | Tools


class Crowd:
    """`clients` run until they are to stop, those that write before those that read."""

    def __init__(self, world: World, storm: Storm, history: History, topic: str) -> None:
        self._world, self._storm, self._history, self._topic = world, storm, history, topic
        self.partitions: list[Partition] = [(topic, index) for index in range(storm.partitions)]
        self._group = Group("g", self.partitions)
        self._consumer_group = ConsumerGroup("c", self.partitions)
        self._streams_group = ConsumerGroup("streams", self.partitions)
        self._share_group = ShareGroup("s", topic)
        habits = storm.habits
        self._make: dict[str, Callable[[str, int], AnyClient]] = {
            "producer": self._producer,
            "transactional": self._transactional,
            "member": lambda name, number: Member(world, self._group, name, habits),
            "consumer": lambda name, number: Consumer(world, self._consumer_group, name, habits),
            "streamer": lambda name, number: Streamer(world, self._streams_group, name, Habits(habits.vanishes)),
            "sharer": lambda name, number: Sharer(world, self._share_group, name, habits),
            "reader": self._reader,
            "keyed": lambda name, number: Keyed(world, name),
            "operator": self._operator,
            "tools": lambda name, number: Tools(world, name),
        }
        self.clients = [self._made(name) for name in storm.clients]
        groups = (self._group, self._consumer_group, self._streams_group)
        history.readers += [group.reader for group in groups if group.members]

    def _made(self, name: str) -> AnyClient:
        kind = name.rstrip("0123456789")
        return self._make[kind](name, int(name.removeprefix(kind)))

    def _producer(self, name: str, number: int) -> Producer:
        return Producer(self._world, self._history, name, self.partitions, may_lose=self._storm.is_unclean)

    def _transactional(self, name: str, number: int) -> Transactional:
        return Transactional(self._world, self._history, name, self.partitions, version=1 + number % 2)

    def _reader(self, name: str, number: int) -> Fetcher:
        is_unclean = self._storm.is_unclean
        fetcher = Fetcher(self._world, name, self.partitions, committed=number % 2 == 0, rereads=is_unclean)
        fetcher.reader.is_shared = is_unclean
        self._history.readers.append(fetcher.reader)
        return fetcher

    def _operator(self, name: str, number: int) -> Operator:
        return Operator(self._world, self._history, name, self.partitions, trims=self._storm.trims)

    def _of(self, kind: type) -> Iterator[AnyClient]:
        return (client for client in self.clients if isinstance(client, kind))

    def _are_there(self, kind: type) -> bool:
        return any(self._of(kind))

    @property
    def operators(self) -> list[Operator]:
        return [client for client in self.clients if isinstance(client, Operator)]

    @property
    def deleted(self) -> dict[Partition, int]:
        """Up to where records of each partition may have been deleted."""
        deleted: dict[Partition, int] = {}
        for operator in self.operators:
            for partition, trimmed in operator.trimmed.items():
                deleted[partition] = max(deleted.get(partition, 0), trimmed)
        return deleted

    async def begin(self) -> None:
        """What has to be there before they run."""
        storm = self._storm
        administrator = Administrator(self._world, "administrator")
        configs = {"unclean_leader_election_enable": "true"} if storm.is_unclean else {}
        await administrator.create_topic(self._topic, storm.partitions, min(3, storm.brokers), **configs)
        if self._are_there(Keyed):
            await administrator.create_topic(COMPACTED, 1, min(3, storm.brokers), **CONFIGS)
        if self._are_there(Sharer):
            await administrator.set_config(GROUP, self._share_group.name, "share.auto.offset.reset", "earliest")
        administrator.close()

    async def end_writers(self) -> None:
        """They finish what they have begun."""
        await self._end(Producer, Operator, Tools)

    async def end_readers(self) -> None:
        """They come to the end of what there is."""
        await self._end(Fetcher)

    async def _end(self, *kinds: type) -> None:
        ending = [client for kind in kinds for client in self._of(kind)]
        for client in ending:
            client.is_stopping = True
        await until(lambda: all(client.has_ended for client in ending))

    async def drain(self) -> None:
        """The share group accepts all that is left."""
        group = self._share_group
        if not self._are_there(Sharer):
            return
        group.drains = True
        client = Client(self._world, "drain")
        while not await self._is_drained(client):
            await client.pause(DRAIN_LOOK_S)
        client.close()
        group.history.is_drained = True
        await self._end(Sharer)

    async def _is_drained(self, client: Client) -> bool:
        """Whether every partition's start offset is its end."""
        topic = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic(
            topic_name=self._topic, partitions=[index for _, index in self.partitions]
        )
        name = self._share_group.name
        group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=[topic])
        try:
            coordinator = await client.coordinator(name, 0)
            response = await client.ask(coordinator, DescribeShareGroupOffsetsRequest(groups=[group]), 1)
        except Lost:
            client.forget_coordinators()
            return False
        (described,) = response.groups
        parts = [one for each in described.topics for one in each.partitions]
        if described.error_code != ErrorCode.NONE:
            client.forget_coordinators()
        return len(parts) == len(self.partitions) and all(one.error_code == 0 and one.lag == 0 for one in parts)

    async def judge_compacted(self) -> None:
        """Those who write records with keys know what has to be there."""
        for client in self.clients:
            if isinstance(client, Keyed):
                await client.judge()

    def judge_share_group(self, elected_ns: Mapping[str, Sequence[int]]) -> None:
        """After the last reading. A leader that begins knows of no locks, whatever made it one: it was elected then."""
        if not self._are_there(Sharer):
            return
        history = self._share_group.history
        for fault in self._storm.faults:
            history.disturbances.append(Span(int(fault.at_s * 1e9), int((fault.at_s + fault.for_s + CALM_S) * 1e9)))
        for at_ns in elected_ns.get(self._topic, ()):
            history.disturbances.append(Span(at_ns, at_ns + int(CALM_S * 1e9)))
        for problem in check_share_group(of_share_group(history, self._history, self._topic, self.deleted)):
            self._world.problem(f"share group: {problem}")
