"""What all clients of the simulation do: connections, metadata, one request and its response."""

from __future__ import annotations

from typing import Any

import trio

from kpybroker.broker.network.transport import Stream
from kpybroker.wire.api import API_INFO
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.headers import RequestHeader, encode_request_header, parse_response_header
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.metadata import MetadataRequest
from kpybroker.wire.schema import Message
from tests.simulation.clients.habits import AWAY_S_MAX
from tests.simulation.seams.network import PORT, Address
from tests.simulation.world import World

KEYS = {info.name: key for key, info in API_INFO.items()}
TIMEOUT_S = 3.0
BACKOFF_S = 0.1
READ_BYTES = 65_536

Partition = tuple[str, int]


class Lost(Exception):
    """The connection could not be made, broke, or said nothing for too long: what became of the request is unknown."""


def now_ns() -> int:
    """Simulated time, as histories have it."""
    return int(trio.current_time() * 1e9)


class _Connection:
    """One request at a time."""

    def __init__(self, stream: Stream, client_id: str) -> None:
        self.stream = stream
        self._client_id = client_id
        self._number = 0
        self._received = bytearray()

    async def ask(self, request: Message, version: int) -> Any:
        key = KEYS[type(request).__name__.removesuffix("Request")]
        self._number += 1
        header = encode_request_header(RequestHeader(key, version, self._number, self._client_id))
        frame = header + encode(request, version)
        await self.stream.send_parts([len(frame).to_bytes(4, "big"), frame])
        size = int.from_bytes(await self._take(4), "big")
        response = await self._take(size)
        correlation_id, position = parse_response_header(response, key, version)
        assert correlation_id == self._number, "the response to another request"
        return decode(API_INFO[key].response_class(), response[position:], version)

    async def _take(self, size: int) -> bytes:
        while len(self._received) < size:
            buffer = memoryview(bytearray(READ_BYTES))
            count = await self.stream.receive_into(buffer)
            if not count:
                raise EOFError("the broker has closed the connection")
            self._received += buffer[:count]
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken


class Client:
    """A client by its name, on a host of its own. `ask` raises `Lost`."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.chance = world.chance_of(name)
        self._transport = world.client(name)
        self._addresses: dict[int, Address] = {key: (machine.host, PORT) for key, machine in world.machines.items()}
        self._connections: dict[int, _Connection] = {}
        self.leaders: dict[Partition, int] = {}
        self._epochs: dict[Partition, int] = {}
        """The newest epoch of a leader that was heard of: as Java's client, it believes none that is older."""
        self.topic_ids: dict[str, bytes] = {}
        self._coordinators: dict[tuple[str, int], int] = {}
        self.is_stopping = False
        self.has_ended = False

    def note(self, what: str) -> None:
        self.world.trace.add(self.name, what)

    def any_broker(self) -> int:
        return self.chance.choice(sorted(self._addresses))

    async def ask(self, broker_id: int, request: Message, version: int, timeout_s: float = TIMEOUT_S) -> Any:
        """The response of that broker."""
        try:
            with trio.fail_after(timeout_s):
                connection = self._connections.get(broker_id)
                if connection is None:
                    host, port = self._addresses[broker_id]
                    stream = await self._transport.connect(host, port, timeout_s)
                    connection = self._connections[broker_id] = _Connection(stream, self.name)
                return await connection.ask(request, version)
        except (OSError, EOFError, trio.TooSlowError) as error:
            self.disconnect(broker_id)
            raise Lost(f"{type(error).__name__}: {error}") from error
        except BaseException:
            self.disconnect(broker_id)
            raise

    def disconnect(self, broker_id: int) -> None:
        if (connection := self._connections.pop(broker_id, None)) is not None:
            connection.stream.close()

    def close(self) -> None:
        self.has_ended = True
        for broker_id in list(self._connections):
            self.disconnect(broker_id)

    async def vanish(self) -> None:
        """End as a process that is killed, and be away for a while; what was known is not known any more."""
        self.note("vanishes")
        for broker_id in list(self._connections):
            self.disconnect(broker_id)
        self.forget_coordinators()
        self.leaders.clear()
        await trio.sleep(self.chance.uniform(0, AWAY_S_MAX))

    async def pause(self, seconds: float = BACKOFF_S) -> None:
        await trio.sleep(seconds * (0.5 + self.chance.random()))

    async def refresh(self, topic: str) -> None:
        """Learn the leaders of a topic, from the first broker that responds."""
        named = [MetadataRequest.MetadataRequestTopic(name=topic)]
        while True:
            try:
                found = await self.ask(self.any_broker(), MetadataRequest(topics=named), 12)
            except Lost:
                await self.pause()
                continue
            for described in found.topics:
                if not described.error_code:
                    self.topic_ids[topic] = bytes(described.topic_id)
                for partition in described.partitions:
                    place = (topic, partition.partition_index)
                    if partition.leader_epoch >= self._epochs.get(place, -1):
                        self._epochs[place] = partition.leader_epoch
                        self.leaders[place] = partition.leader_id
            return

    async def leader(self, partition: Partition) -> int:
        """The leader as far as it is known; waits for one."""
        while True:
            leader = self.leaders.get(partition, -1)
            if leader in self._addresses:
                return leader
            await self.refresh(partition[0])
            if self.leaders.get(partition, -1) not in self._addresses:
                await self.pause()

    def forget(self, partition: Partition) -> None:
        """The leader is another one now, or does not respond."""
        self.leaders.pop(partition, None)

    async def coordinator(self, key: str, key_type: int) -> int:
        """Of a group (0) or of a transactional id (1), as far as it is known; waits for one."""
        known = self._coordinators.get((key, key_type))
        while known is None:
            try:
                request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
                (found,) = (await self.ask(self.any_broker(), request, 4)).coordinators
                if found.error_code == 0:
                    known = self._coordinators[key, key_type] = int(found.node_id)
                    break
            except Lost:
                pass
            await self.pause()
        return known

    def forget_coordinators(self) -> None:
        """They are others now, or do not respond."""
        self._coordinators.clear()


def only_partition(response: Any, topics: str, partitions: str) -> Any:
    """The part of a response that is about the one partition that was asked for."""
    (topic,) = getattr(response, topics)
    (partition,) = getattr(topic, partitions)
    return partition
