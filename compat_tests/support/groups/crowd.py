"""A crowd of members of one consumer group, each a bare connection that speaks the classic group protocol.

Who assigns is the member that the broker calls the leader: to everybody one piece of work of their own, the member's
place in the leader's list. So a settled crowd can be recognised from outside: all hold pieces of one generation, and
every piece of it is held once. Everything a member was ever given is kept.

Rebalances are heard of by heartbeats, as in real clients: a member sends one every `heartbeat_s`, or when asked to by
`heartbeat_all` if that is None. Members run as tasks of one trio nursery; nothing here sleeps to be sure.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import trio

from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.headers import RequestHeader, encode_request_header, parse_response_header
from kpybroker.wire.messages.describe_groups import DescribeGroupsRequest
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.heartbeat import HeartbeatRequest
from kpybroker.wire.messages.join_group import JoinGroupRequest
from kpybroker.wire.messages.leave_group import LeaveGroupRequest
from kpybroker.wire.messages.sync_group import SyncGroupRequest

VERSIONS = {
    ApiKey.FIND_COORDINATOR: 3,
    ApiKey.JOIN_GROUP: 9,
    ApiKey.SYNC_GROUP: 5,
    ApiKey.HEARTBEAT: 4,
    ApiKey.LEAVE_GROUP: 5,
    ApiKey.DESCRIBE_GROUPS: 5,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 1,
    ApiKey.CONSUMER_GROUP_DESCRIBE: 1,
}
REJOIN = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION})
COORDINATOR_RETRY_S = 0.05


class LiveMember(Protocol):
    """A member of either protocol."""

    async def live(self) -> None:
        """Join, and stay until `leave`."""

    async def leave(self) -> None:
        """Returns when it has its response."""


M = TypeVar("M", bound=LiveMember)


class Piece(NamedTuple):
    """What a member was given: the generation, and its place in the leader's list."""

    generation: int
    place: int


class Connection:
    """One request at a time."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream

    @classmethod
    async def open(cls, port: int) -> Connection:
        return cls(await trio.open_tcp_stream("127.0.0.1", port))

    async def ask(self, key: ApiKey, request: Any) -> Any:
        version = VERSIONS[key]
        body = encode_request_header(RequestHeader(key, version, 7, "crowd")) + encode(request, version)
        await self._stream.send_all(struct.pack(">i", len(body)) + body)
        frame = await self._exactly(struct.unpack(">i", await self._exactly(4))[0])
        _, position = parse_response_header(frame, key, version)
        return decode(API_INFO[key].response_class(), frame[position:], version)

    async def until(self, key: ApiKey, request: Any, wanted: ErrorCode) -> None:
        """Ask again until the response is `wanted`."""
        while True:
            if (await self.ask(key, request)).error_code == wanted:
                return
            await trio.sleep(COORDINATOR_RETRY_S)

    async def _exactly(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            piece = await self._stream.receive_some(count - len(received))
            if not piece:
                raise EOFError("the broker closed the connection")
            received += piece
        return bytes(received)

    async def aclose(self) -> None:
        await self._stream.aclose()


class CrowdMember:
    """`pieces` is everything it was given, oldest first; `instance` makes it a static member."""

    def __init__(self, crowd: Crowd, connection: Connection, instance: str | None) -> None:
        self.member_id = ""
        self.instance = instance
        self.pieces: list[Piece] = []
        self.is_gone = False
        self._crowd = crowd
        self._connection = connection
        self._generation = -1
        self._beat = trio.Event()

    @property
    def piece(self) -> Piece | None:
        return self.pieces[-1] if self.pieces else None

    async def live(self) -> None:
        """Join, hold the piece, and join again when asked, until `leave`."""
        while not self.is_gone:
            if await self._join_and_sync():
                await self._hold()

    def heartbeat_now(self) -> None:
        self._beat.set()

    async def leave(self) -> None:
        self.is_gone = True
        self._beat.set()
        one = LeaveGroupRequest.MemberIdentity(member_id=self.member_id, group_instance_id=self.instance)
        connection = await Connection.open(self._crowd.port)
        try:
            request = LeaveGroupRequest(group_id=self._crowd.group, members=[one])
            response = await connection.ask(ApiKey.LEAVE_GROUP, request)
        finally:
            await connection.aclose()
        codes = [response.error_code, *(member.error_code for member in response.members)]
        assert codes == [ErrorCode.NONE] * 2, f"the leave was refused: {codes}"

    async def _join_and_sync(self) -> bool:
        """True: it holds a piece of a new generation."""
        joined = await self._connection.ask(ApiKey.JOIN_GROUP, self._crowd.join_request(self.member_id, self.instance))
        error = ErrorCode(joined.error_code)
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            return False
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
            return False
        if error in REJOIN:
            return False
        assert error is ErrorCode.NONE, f"the join was refused: {error.name}"
        self.member_id, self._generation = joined.member_id, joined.generation_id
        synced = await self._connection.ask(ApiKey.SYNC_GROUP, self._sync_request(joined))
        error = ErrorCode(synced.error_code)
        if error in REJOIN or error is ErrorCode.UNKNOWN_MEMBER_ID:
            return False
        assert error is ErrorCode.NONE, f"the sync was refused: {error.name}"
        self.pieces.append(Piece(self._generation, struct.unpack(">i", synced.assignment)[0]))
        self._crowd.look()
        return True

    def _sync_request(self, joined: Any) -> SyncGroupRequest:
        everybody = joined.members if joined.leader == self.member_id else []
        return SyncGroupRequest(
            group_id=self._crowd.group,
            generation_id=self._generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type=joined.protocol_type,
            protocol_name=joined.protocol_name,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(
                    member_id=other.member_id, assignment=struct.pack(">i", place)
                )
                for place, other in enumerate(everybody)
            ],
        )

    async def _hold(self) -> None:
        """Heartbeats, until one says that there is a new generation to join."""
        while True:
            with trio.move_on_after(math.inf if self._crowd.heartbeat_s is None else self._crowd.heartbeat_s):
                await self._beat.wait()
            self._beat = trio.Event()
            if self.is_gone:
                return
            request = HeartbeatRequest(
                group_id=self._crowd.group,
                generation_id=self._generation,
                member_id=self.member_id,
                group_instance_id=self.instance,
            )
            error = ErrorCode((await self._connection.ask(ApiKey.HEARTBEAT, request)).error_code)
            if error is not ErrorCode.NONE:
                assert error in REJOIN or error is ErrorCode.UNKNOWN_MEMBER_ID, error.name
                return


class CrowdOf(Generic[M]):
    """Members of `group`, of either protocol, on the broker at `port`; they live in `nursery`."""

    def __init__(self, nursery: trio.Nursery, port: int, group: str) -> None:
        self.port = port
        self.group = group
        self.members: list[M] = []
        self._nursery = nursery
        self._settled = trio.Event()

    def start(self, members: Iterable[M]) -> None:
        """They join, all at once."""
        self._settled = trio.Event()
        for member in members:
            self._nursery.start_soon(member.live)

    async def leave(self, members: Iterable[M]) -> None:
        """They leave, all at once; returns when all have their responses."""
        gone = list(members)
        self.members = [member for member in self.members if member not in gone]
        self._settled = trio.Event()
        async with trio.open_nursery() as nursery:
            for member in gone:
                nursery.start_soon(member.leave)


class Crowd(CrowdOf[CrowdMember]):
    """The members of `group` on the broker at `port`; they live in `nursery`."""

    def __init__(self, nursery: trio.Nursery, port: int, group: str, heartbeat_s: float | None = None) -> None:
        super().__init__(nursery, port, group)
        self.heartbeat_s = heartbeat_s

    async def connect(self, count: int, instances: Iterable[str] | None = None) -> list[CrowdMember]:
        """New members with a connection each, that have not joined yet."""
        names = [None] * count if instances is None else list(instances)
        await find_coordinator(self.port, self.group)
        made = [CrowdMember(self, await Connection.open(self.port), instance) for instance in names]
        self.members += made
        return made

    def heartbeat_all(self) -> None:
        for member in self.members:
            member.heartbeat_now()

    def look(self) -> None:
        """Somebody was given a piece. Members that have left since may hold others of this generation."""
        pieces = [member.piece for member in self.members]
        if None in pieces or len({piece.generation for piece in pieces if piece}) > 1:
            return
        places = sorted(piece.place for piece in pieces if piece)
        assert len(set(places)) == len(places), f"pieces held twice: {places}"
        if places[-1] == len(places) - 1:
            self._settled.set()

    async def settled(self) -> int:
        """Wait until all hold pieces of one generation, and return that."""
        await self._settled.wait()
        piece = self.members[0].piece
        assert piece is not None
        return piece.generation

    async def described(self) -> tuple[str, int]:
        """The group's state and number of members, as DescribeGroups has them."""
        connection = await Connection.open(self.port)
        try:
            request = DescribeGroupsRequest(groups=[self.group])
            (group,) = (await connection.ask(ApiKey.DESCRIBE_GROUPS, request)).groups
            return group.group_state, len(group.members)
        finally:
            await connection.aclose()

    def join_request(self, member_id: str, instance: str | None) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=bytes(6) + b"\xff\xff\xff\xff")
            ],
        )


async def find_coordinator(port: int, group: str) -> None:
    """The first question makes the topic; then it must have been loaded."""
    connection = await Connection.open(port)
    beat = HeartbeatRequest(group_id=group, generation_id=1, member_id="no-one")
    try:
        await connection.until(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key=group), ErrorCode.NONE)
        await connection.until(ApiKey.HEARTBEAT, beat, ErrorCode.UNKNOWN_MEMBER_ID)
    finally:
        await connection.aclose()
