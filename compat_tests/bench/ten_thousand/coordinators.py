"""Ten thousand groups of either protocol, transactional ids and ACLs: what one of them costs, and how soon they are
there again after a restart."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from compat_tests.bench.measuring.brokers import KAFKA_4, Restarted
from compat_tests.bench.ten_thousand import asked
from compat_tests.bench.ten_thousand.scene import OURS, Bound, Figures, Place, Scene, resident_kb
from compat_tests.overload.raw import Raw
from compat_tests.support.waiting import eventually
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kpybroker.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kpybroker.wire.messages.create_acls import CreateAclsRequest
from kpybroker.wire.messages.describe_groups import DescribeGroupsRequest
from kpybroker.wire.messages.describe_transactions import DescribeTransactionsRequest
from kpybroker.wire.messages.init_producer_id import InitProducerIdRequest
from kpybroker.wire.messages.join_group import JoinGroupRequest
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest
from kpybroker.wire.messages.sync_group import SyncGroupRequest

TOPIC = "read"
LONG_MS = 1_800_000
DESCRIBED = 100
ACLS_A_REQUEST = 100
TOPIC_RESOURCE, READ, ALLOW = 2, 3, 3

OF_ONE = Bound("memory of one", "KB")
MADE = Bound("made, a second", "1/s")
LOADED = Bound("loaded after a start", "s", most=2.0)

NEW_GROUPS = {
    "group.consumer.session.timeout.ms": str(LONG_MS),
    "group.consumer.max.session.timeout.ms": str(LONG_MS),
}
WITH_ACLS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
}

Make = Callable[[Raw, Sequence[str]], None]
Codes = Callable[[Raw, Sequence[str]], list[int]]


def scenes(quick: bool) -> list[Scene]:
    sizes = (20, 100) if quick else (100, 1000, 10_000)
    bounds = (MADE, OF_ONE, LOADED)
    return [
        Scene("classic groups", sizes, bounds, classic_groups),
        Scene("new groups", sizes, bounds, new_groups, kinds=(KAFKA_4, OURS)),
        Scene("transactional ids", sizes, bounds, transactional_ids),
        Scene("ACLs", sizes, (MADE, OF_ONE, Bound("start with them", "s")), acls),
    ]


def classic_groups(place: Place) -> Figures:
    """A member each that has joined, and one committed offset."""
    with place.broker() as broker:
        return _kept(place, broker, asked.GROUP, _join, _classic_codes)


def new_groups(place: Place) -> Figures:
    """The same in the protocol of KIP-848, next to Kafka 4.3.1."""
    with place.restarted(NEW_GROUPS) as broker:
        return _kept(place, broker, asked.GROUP, _join_new, _new_codes)


def transactional_ids(place: Place) -> Figures:
    with place.broker() as broker:
        return _kept(place, broker, asked.TRANSACTION, _init, _transaction_codes)


def _kept(place: Place, broker: Restarted, kind: int, make: Make, codes: Codes) -> Figures:
    names = [f"name-{number}" for number in range(place.size)]
    with asked.connection(broker) as raw:
        asked.create(raw, [(TOPIC, 1)])
        asked.wait_until_led(broker, 1)
        asked.wait_for_coordinator(raw, names[0], kind)
        eventually(lambda: codes(raw, ["first"])[0] not in asked.NOT_YET, "the coordinator responds", asked.DEADLINE_S)
        make(raw, ["first"])  # what the first of them imports is not of one
        before_kb = resident_kb(broker)
        made_s = asked.seconds_of(make, raw, names)
        held_kb = resident_kb(broker) - before_kb
    broker.stop()
    broker.launch()
    begin = time.perf_counter()
    with asked.connection(broker) as raw:
        for some in _chunks(names):
            eventually(partial(_is_loaded, raw, some, codes), "the coordinator has loaded", asked.DEADLINE_S)
    loaded_s = time.perf_counter() - begin
    return {MADE.name: place.size / made_s, OF_ONE.name: held_kb / place.size, LOADED.name: loaded_s}


def _is_loaded(raw: Raw, names: Sequence[str], codes_of: Codes) -> bool:
    """Whether none is still being loaded; any other error ends the run."""
    codes = codes_of(raw, names)
    for code in codes:
        if code not in asked.NOT_YET:
            asked.expect(code, "described")
    return not any(codes)


def _chunks(names: Sequence[str]) -> Iterator[list[str]]:
    pending = iter(names)
    while chunk := list(islice(pending, DESCRIBED)):
        yield chunk


# --- groups


def _join(raw: Raw, names: Sequence[str]) -> None:
    protocols = [JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=bytes(50))]

    def join(name: str) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=name,
            session_timeout_ms=LONG_MS,
            rebalance_timeout_ms=LONG_MS,
            protocol_type="consumer",
            protocols=protocols,
        )

    for some in _chunks(names):
        members = []
        for name, response in zip(some, asked.ask_all(raw, map(join, some), 3), strict=True):
            asked.expect(response.error_code, f"{name} joined")
            members.append((name, response.member_id, response.generation_id))
        for response in asked.ask_all(raw, (_sync(*member) for member in members), 2):
            asked.expect(response.error_code, "synced")
        for response in asked.ask_all(raw, (_commit(*member) for member in members), 7):
            asked.expect(response.topics[0].partitions[0].error_code, "committed")


def _sync(name: str, member: str, generation: int) -> SyncGroupRequest:
    given = SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=bytes(50))
    return SyncGroupRequest(group_id=name, generation_id=generation, member_id=member, assignments=[given])


def _commit(name: str, member: str, generation: int) -> OffsetCommitRequest:
    part = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=TOPIC, partitions=[part])
    return OffsetCommitRequest(
        group_id=name, generation_id_or_member_epoch=generation, member_id=member, topics=[topic]
    )


def _join_new(raw: Raw, names: Sequence[str]) -> None:
    requests = (
        ConsumerGroupHeartbeatRequest(
            group_id=name,
            member_id=f"{name}-member",
            rebalance_timeout_ms=LONG_MS,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        )
        for name in names
    )
    members = []
    for name, response in zip(names, asked.ask_all(raw, requests, 1), strict=True):
        asked.expect(response.error_code, f"{name} joined")
        members.append((name, response.member_id, response.member_epoch))
    for response in asked.ask_all(raw, (_commit(*member) for member in members), 9):
        asked.expect(response.topics[0].partitions[0].error_code, "committed")


def _classic_codes(raw: Raw, names: Sequence[str]) -> list[int]:
    return [one.error_code for one in raw.ask(DescribeGroupsRequest(groups=list(names)), 5).groups]


def _new_codes(raw: Raw, names: Sequence[str]) -> list[int]:
    return [one.error_code for one in raw.ask(ConsumerGroupDescribeRequest(group_ids=list(names)), 0).groups]


# --- transactional ids


def _init(raw: Raw, names: Sequence[str]) -> None:
    """A new id's first request may be refused while the producer ids run out: it is sent again, as clients do."""
    left = list(names)
    while left:
        requests = (InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000) for name in left)
        codes = [ErrorCode(response.error_code) for response in asked.ask_all(raw, requests, 4)]
        for name, code in zip(left, codes, strict=True):
            assert code in (*asked.NOT_YET, ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS), f"{name}: {code.name}"
        left = [name for name, code in zip(left, codes, strict=True) if code is not ErrorCode.NONE]


def _transaction_codes(raw: Raw, names: Sequence[str]) -> list[int]:
    request = DescribeTransactionsRequest(transactional_ids=list(names))
    return [one.error_code for one in raw.ask(request, 0).transaction_states]


# --- ACLs


def acls(place: Place) -> Figures:
    """Each of another topic and another user."""
    with place.broker(WITH_ACLS) as broker:
        before_kb = resident_kb(broker)
        with asked.connection(broker) as raw:
            made_s = asked.seconds_of(_add_acls, raw, place.size)
        held_kb = resident_kb(broker) - before_kb
        broker.stop()
        return {
            MADE.name: place.size / made_s,
            OF_ONE.name: held_kb / place.size,
            "start with them": asked.seconds_of(broker.launch),
        }


def _add_acls(raw: Raw, count: int) -> None:
    def request(first: int) -> CreateAclsRequest:
        numbers: Any = range(first, min(first + ACLS_A_REQUEST, count))
        return CreateAclsRequest(
            creations=[
                CreateAclsRequest.AclCreation(
                    resource_type=TOPIC_RESOURCE,
                    resource_name=f"topic-{number}",
                    principal=f"User:user-{number}",
                    host="*",
                    operation=READ,
                    permission_type=ALLOW,
                )
                for number in numbers
            ]
        )

    for response in asked.ask_all(raw, map(request, range(0, count, ACLS_A_REQUEST)), 2):
        for one in response.results:
            asked.expect(one.error_code, "an ACL was added")
