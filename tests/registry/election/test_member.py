"""A member without a broker: when it leads and when not any more, by a clock of the test's own."""

from __future__ import annotations

from typing import Any

import pytest

from kpybroker.client.connect.settings import Settings
from kpybroker.registry.election import protocol
from kpybroker.registry.election.member import HEARTBEAT_S, SESSION_MS, Member
from kpybroker.registry.election.protocol import Identity
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.heartbeat import HeartbeatResponse
from kpybroker.wire.messages.join_group import JoinGroupResponse
from kpybroker.wire.messages.leave_group import LeaveGroupResponse
from kpybroker.wire.messages.sync_group import SyncGroupResponse

OWN = Identity("http", "127.0.0.1", 8081)
SETTINGS = Settings("127.0.0.1:1", {}, 1.0, "the test")
Script = list[tuple[ApiKey, Any]]


class Coordinator:
    """Responds from a list, in order. `before` is called with each request."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[Any] = []

    def version_of(self, key: ApiKey) -> int:
        return 5

    def request(self, key: ApiKey, message: Any) -> Any:
        self.requests.append(message)
        expected, response = self.script.pop(0)
        assert key == expected
        return response() if callable(response) else response


def joined(member_id: str = "m", error: int = 0, leader: str = "m") -> JoinGroupResponse:
    metadata = protocol.encode_identity(OWN)
    member = JoinGroupResponse.JoinGroupResponseMember(member_id=member_id, metadata=metadata)
    return JoinGroupResponse(
        error_code=error, generation_id=3, leader=leader, member_id=member_id, members=[member] if leader == "m" else []
    )


def synced(member_id: str = "m") -> SyncGroupResponse:
    return SyncGroupResponse(assignment=protocol.encode_assignment(protocol.choose({member_id: OWN})))


class Clock:
    """A monotonic clock, and the event whose waits pass without waiting."""

    def __init__(self) -> None:
        self.now = 1000.0


def member_of(clock: Clock) -> Member:
    member = Member(SETTINGS, "registry", OWN, lambda: clock.now)

    def wait(_: float | None = None) -> bool:
        clock.now += HEARTBEAT_S
        return member._is_closing.is_set()

    member._is_closing.wait = wait  # type: ignore[method-assign, assignment]
    return member


def test_it_leads_while_its_heartbeats_get_responses_and_leaves_when_it_closes() -> None:
    clock = Clock()
    member = member_of(clock)
    seen: list[bool] = []

    def beat() -> HeartbeatResponse:
        seen.append(member.is_leader())
        if len(seen) == 20:
            member._is_closing.set()
        return HeartbeatResponse()

    coordinator = Coordinator(
        [
            (ApiKey.JOIN_GROUP, joined(error=ErrorCode.MEMBER_ID_REQUIRED, leader="")),
            (ApiKey.JOIN_GROUP, joined()),
            (ApiKey.SYNC_GROUP, synced()),
            *[(ApiKey.HEARTBEAT, beat)] * 20,
            (ApiKey.LEAVE_GROUP, LeaveGroupResponse()),
        ]
    )
    member._belong(coordinator)  # type: ignore[arg-type]
    assert seen == [True] * 20
    assert coordinator.script == []
    assert coordinator.requests[1].member_id == "m"
    assert [one.member_id for one in coordinator.requests[2].assignments] == ["m"]
    assert coordinator.requests[-1].members[0].member_id == "m"


def test_a_leader_whose_heartbeats_get_no_response_leads_no_more() -> None:
    clock = Clock()
    member = member_of(clock)
    coordinator = Coordinator([(ApiKey.JOIN_GROUP, joined()), (ApiKey.SYNC_GROUP, synced())])
    assert member._join(coordinator) == 3  # type: ignore[arg-type]
    assert member.is_leader()
    assert member.leader_url() == OWN.url
    clock.now += SESSION_MS / 1000 - 0.001
    assert member.is_leader()
    clock.now += 0.001
    assert not member.is_leader()


@pytest.mark.parametrize("code", [ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION])
def test_it_joins_again_as_the_leader_that_it_is(code: ErrorCode) -> None:
    clock = Clock()
    member = member_of(clock)

    def close() -> HeartbeatResponse:
        member._is_closing.set()
        return HeartbeatResponse()

    coordinator = Coordinator(
        [
            (ApiKey.JOIN_GROUP, joined()),
            (ApiKey.SYNC_GROUP, synced()),
            (ApiKey.HEARTBEAT, HeartbeatResponse(error_code=code)),
            (ApiKey.JOIN_GROUP, joined()),
            (ApiKey.SYNC_GROUP, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)),
            (ApiKey.JOIN_GROUP, joined()),
            (ApiKey.SYNC_GROUP, synced()),
            (ApiKey.HEARTBEAT, close),
            (ApiKey.LEAVE_GROUP, LeaveGroupResponse()),
        ]
    )
    member._belong(coordinator)  # type: ignore[arg-type]
    again = protocol.decode_identity(coordinator.requests[3].protocols[0].metadata)
    assert again == OWN._replace(is_leader=True)


def test_a_member_that_was_put_out_leads_no_more_and_joins_again_from_the_start() -> None:
    clock = Clock()
    member = member_of(clock)
    led: list[bool] = []

    def rejoined() -> JoinGroupResponse:
        led.append(member.is_leader())
        member._is_closing.set()
        return joined(error=ErrorCode.GROUP_AUTHORIZATION_FAILED)

    coordinator = Coordinator(
        [
            (ApiKey.JOIN_GROUP, joined()),
            (ApiKey.SYNC_GROUP, synced()),
            (ApiKey.HEARTBEAT, HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)),
            (ApiKey.JOIN_GROUP, rejoined),
        ]
    )
    member._belong(coordinator)  # type: ignore[arg-type]
    assert led == [False]
    assert coordinator.requests[3].member_id == ""


def test_a_follower_knows_where_the_leader_is() -> None:
    clock = Clock()
    member = member_of(clock)
    other = OWN._replace(port=8082)
    assignment = protocol.encode_assignment(protocol.choose({"other": other}))
    coordinator = Coordinator(
        [
            (ApiKey.JOIN_GROUP, joined(leader="other")),
            (ApiKey.SYNC_GROUP, SyncGroupResponse(assignment=assignment)),
        ]
    )
    member._join(coordinator)  # type: ignore[arg-type]
    assert not member.is_leader()
    assert member.leader_url() == "http://127.0.0.1:8082"
    assert member.wait_for_leader(0)


def test_two_instances_with_one_url_have_no_leader(caplog: pytest.LogCaptureFixture) -> None:
    member = member_of(Clock())
    assignment = protocol.encode_assignment(protocol.choose({"m": OWN, "n": OWN}))
    member._assigned(assignment, 0.0)
    assert member.leader_url() is None
    assert "--advertised-url" in caplog.text
