"""Kafka 4.3.1 and kpybroker load each other's `__consumer_offsets`: the same groups, members, epochs and offsets.

Kafka serves groups of all kinds; its partition is copied into a broker of ours that has the topic with the same id.
That one serves the same, members go on in it, and it is copied back. What both tools show of the files is compared too,
with the records of share groups and of streams groups, which only Kafka writes.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.conftest import StartBroker
from compat_tests.groups.test_group_records import GROUP, OFFSETS, TOPIC, Play, read_by_kafka, read_by_us
from compat_tests.overload.raw import Raw, framed
from compat_tests.support import quick
from compat_tests.support.command_line import CommandLine
from compat_tests.support.groups.serving import QUICK, group_broker
from compat_tests.support.kraft import KraftBroker
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually
from kpybroker.broker.lifecycle.open_tree import open_store
from kpybroker.broker.loop.clock import SystemClock
from kpybroker.storage.inspection.dump_internal import to_plain
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kpybroker.wire.messages.delete_groups import DeleteGroupsRequest
from kpybroker.wire.messages.describe_groups import DescribeGroupsRequest
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.heartbeat import HeartbeatRequest
from kpybroker.wire.messages.join_group import JoinGroupRequest
from kpybroker.wire.messages.list_groups import ListGroupsRequest
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest
from kpybroker.wire.messages.offset_fetch import OffsetFetchRequest
from kpybroker.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from kpybroker.wire.messages.sync_group import SyncGroupRequest
from tests.core.consumer_group.harness import classic_assignment, classic_subscription

OURS = ("consumer", "classic")
SHARE_TYPES, STREAMS_TYPES = {10, 11, 12, 13, 14, 15}, {17, 19, 20, 21, 22, 23}
NEW_PARTITIONS = re.compile(r"^topic_id: .*$", re.MULTILINE)
Json = Any


# --- what is asked of both


@contextmanager
def connected(bootstrap: str) -> Iterator[Raw]:
    with Raw(("127.0.0.1", int(bootstrap.rpartition(":")[2]))) as raw:
        find = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
        eventually(lambda: raw.ask(find, 4).coordinators[0].error_code == 0, "a coordinator")
        loading = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
        eventually(lambda: raw.ask(ListGroupsRequest(), 5).error_code not in loading, "a list of groups")
        asked = OffsetFetchRequest(groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id="none", topics=None)])
        eventually(lambda: raw.ask(asked, 8).groups[0].error_code not in loading, "a coordinator that has loaded")
        yield raw


def groups_of(raw: Raw) -> dict[str, Json]:
    """All that a broker says of each group that both can serve."""
    listed = raw.ask(ListGroupsRequest(), 5)
    assert listed.error_code == ErrorCode.NONE
    found: dict[str, Json] = {}
    for group in listed.groups:
        kind = group.group_type
        if kind not in OURS:
            continue
        described = _consumer_group(raw, group.group_id) if kind == "consumer" else _classic_group(raw, group.group_id)
        row = (group.protocol_type, group.group_state, kind)
        found[group.group_id] = {"row": row, "described": described, "offsets": _offsets(raw, group.group_id)}
    return found


def _consumer_group(raw: Raw, group_id: str) -> Json:
    return _said(raw.ask(ConsumerGroupDescribeRequest(group_ids=[group_id]), 1), 1)


def _classic_group(raw: Raw, group_id: str) -> Json:
    return _said(raw.ask(DescribeGroupsRequest(groups=[group_id]), 5), 5)


def _offsets(raw: Raw, group_id: str) -> Json:
    wanted = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group_id, topics=None)
    return _said(raw.ask(OffsetFetchRequest(groups=[wanted]), 8), 8)


def _said(response: Any, version: int) -> Json:
    (group,) = to_plain(response, version)["groups"]
    assert group["errorCode"] == ErrorCode.NONE, group
    return _sorted(group)


def _sorted(value: Json) -> Json:
    """Members, topics and partitions have no order."""
    if isinstance(value, dict):
        return {name: _sorted(part) for name, part in value.items()}
    if isinstance(value, list):
        return sorted((_sorted(part) for part in value), key=json.dumps)
    return value


# --- what happens in the groups


def join(raw: Raw, group_id: str, instance_id: str, member_id: str = "") -> tuple[str, int]:
    """A static member of the classic protocol: its id and generation."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=classic_subscription((TOPIC,), {}))
    response = raw.ask(
        JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type="consumer",
            protocols=[protocol],
        ),
        9,
    )
    assert response.error_code == ErrorCode.NONE, response
    return response.member_id, response.generation_id


def sync(raw: Raw, group_id: str, instance_id: str, member_id: str, generation_id: int, assigned: bytes = b"") -> bytes:
    assignments = [SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=assigned)]
    response = raw.ask(
        SyncGroupRequest(
            group_id=group_id,
            generation_id=generation_id,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments if assigned else [],
        ),
        5,
    )
    assert response.error_code == ErrorCode.NONE, response
    return bytes(response.assignment)


def commit(raw: Raw, group_id: str, offset: int) -> None:
    """By a client that assigns partitions itself."""
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=1, committed_offset=offset, committed_leader_epoch=0, committed_metadata="mine"
    )
    topics = [OffsetCommitRequest.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])]
    request = OffsetCommitRequest(group_id=group_id, generation_id_or_member_epoch=-1, topics=topics)
    assert raw.ask(request, 9).topics[0].partitions[0].error_code == ErrorCode.NONE


def commit_in_transactions(bootstrap: str) -> None:
    """One is committed, one aborted."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "x", **quick.QUIET})
    producer.init_transactions()
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "transactional", **quick.QUIET})
    for offset, end in ((5, producer.commit_transaction), (6, producer.abort_transaction)):
        producer.begin_transaction()
        where = [TopicPartition(TOPIC, 2, offset)]
        producer.send_offsets_to_transaction(where, consumer.consumer_group_metadata())
        end()
    consumer.close()


def begin(bootstrap: str) -> Play:
    """Groups of both protocols, mixed, empty, deleted; returns the one of the new protocol, settled."""
    with connected(bootstrap) as raw:
        one = Play(raw)
        one.beat("a", 0, subscribed_topic_names=[TOPIC], rack_id="r")
        one.beat("b", 0, subscribed_topic_names=[TOPIC], instance_id="i", server_assignor="range")
        one.settle("a", "b")
        (mine,) = one.owned["a"].values()
        one.commit("a", mine[0])
        one.beat("b", -2, instance_id="i")
        one.beat("c", 0, subscribed_topic_names=[TOPIC], instance_id="i")
        one.beat("gone", 0, subscribed_topic_names=[TOPIC])
        one.beat("gone", -1)
        one.beat("p", 0, subscribed_topic_regex="ord.*")

        def matched() -> bool:
            for member in ("a", "c", "p"):
                one.beat(member)
            return bool(one.owned["p"])

        eventually(matched, "what the pattern matches")
        one.settle("a", "c", "p")
        member_id, generation_id = join(raw, "old", "s")
        sync(raw, "old", "s", member_id, generation_id, classic_assignment(f"{TOPIC}:0,1,2,3"))
        commit(raw, "simple", 3)
        commit(raw, "deleted", 4)
        deleted = raw.ask(DeleteGroupsRequest(groups_names=["deleted"]), 2).results[0].error_code
        assert deleted == ErrorCode.NONE
        _begin_mixed(raw)
    commit_in_transactions(bootstrap)
    return one


def _begin_mixed(raw: Raw) -> None:
    """A classic group with a member, which the first member of the new protocol makes a consumer group."""
    member_id, generation_id = join(raw, "mixed", "k")
    sync(raw, "mixed", "k", member_id, generation_id, classic_assignment(f"{TOPIC}:0,1,2,3"))
    new = Play(raw, "mixed")
    new.beat("n", 0, subscribed_topic_names=[TOPIC])
    member_id, generation_id = join(raw, "mixed", "k", member_id)
    sync(raw, "mixed", "k", member_id, generation_id)


def go_on(bootstrap: str, one: Play) -> None:
    """Members of before go on with the epochs and ids that they have, at a broker that has loaded their group."""
    with connected(bootstrap) as raw:
        one.raw = raw
        before = {member: one.epochs[member] for member in ("a", "c", "p")}
        one.settle(*before)
        assert all(one.epochs[member] >= epoch for member, epoch in before.items())
        (mine,) = one.owned["a"].values()
        one.commit("a", mine[0])
        (old,) = raw.ask(DescribeGroupsRequest(groups=["old"]), 5).groups
        (member,) = old.members
        alive = HeartbeatRequest(group_id="old", generation_id=1, member_id=member.member_id, group_instance_id="s")
        assert raw.ask(alive, 4).error_code == ErrorCode.NONE
        assert sync(raw, "old", "s", member.member_id, 1) == bytes(member.member_assignment)
        commit(raw, "simple", 8)


def share_and_streams_groups(bootstrap: str) -> None:
    """What only Kafka serves for now, until it has written a record of each type."""
    with connected(bootstrap) as raw:
        member_id, epoch = "0123456789012345678901", 0

        def shares() -> bool:
            nonlocal epoch
            names = [TOPIC] if epoch == 0 else None
            request = ShareGroupHeartbeatRequest(
                group_id="share", member_id=member_id, member_epoch=epoch, subscribed_topic_names=names
            )
            response = raw.ask(request, 1)
            assert response.error_code == ErrorCode.NONE, response
            epoch = response.member_epoch
            return response.assignment is not None and bool(response.assignment.topic_partitions)

        eventually(shares, "a share of the topic")
        raw.send(streams_join())
        response = raw.receive_exactly(int.from_bytes(raw.receive_exactly(4), "big"))
        (error,) = struct.unpack_from(">h", response, 9)
        assert error == ErrorCode.NONE, response


def streams_join() -> bytes:
    """StreamsGroupHeartbeat 0: the first of a member whose topology is one subtopology that reads the topic."""

    def text(value: str) -> bytes:
        return bytes([len(value) + 1]) + value.encode()

    nothing, no_elements = b"\0", b"\1"
    subtopology = text("0") + b"\2" + text(TOPIC) + no_elements * 5 + nothing
    body = (
        *(text("streams"), text("member"), struct.pack(">ii", 0, 0), nothing, nothing, struct.pack(">i", 60_000)),
        *(b"\1", struct.pack(">i", 1), b"\2", subtopology, nothing),
        *(no_elements * 3, text("process"), b"\xff", no_elements, nothing, nothing, nothing, nothing),
    )
    header = struct.pack(">hhih", 88, 0, 7, 3) + b"raw" + nothing
    return framed(header + b"".join(body))


# --- files


def topic_ids(data_dir: Path) -> str:
    """The line of `partition.metadata` that says the id."""
    (found,) = NEW_PARTITIONS.findall((data_dir / f"{TOPIC}-0" / "partition.metadata").read_text())
    return str(found)


def take_topic_id(broker: Broker, line: str) -> None:
    """The broker, which is down, has the topic with that id from now on."""
    for path in broker.data_dir.glob(f"{TOPIC}-*/partition.metadata"):
        path.write_text(NEW_PARTITIONS.sub(line, path.read_text()))
    trio.run(_change_topic, broker.data_dir / "coordination.sqlite", line.partition(": ")[2])


async def _change_topic(tree_file: Path, topic_id: str) -> None:
    store = open_store(tree_file, SystemClock())
    tree = store.session()
    tree.listen(lambda event: None)
    await tree.start(10)
    path = f"/brokers/topics/{TOPIC}"
    node = json.loads((await tree.get(path)).data or b"{}")
    await tree.set(path, json.dumps(node | {"topic_id": topic_id}).encode())
    await store.close()


def copy_offsets(source: Path, target: Path) -> None:
    """The partition's segments and leader epochs; the rest is made again, as after a crash."""
    for path in (target / OFFSETS).iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in (source / OFFSETS).iterdir():
        if path.suffix == ".log" or path.name == "leader-epoch-checkpoint":
            shutil.copy(path, target / OFFSETS)
    for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (target / name).unlink(missing_ok=True)


def check_dumps(data_dir: Path) -> set[int]:
    """Both tools show the same; the types of keys. Values that only Kafka reads are named by ours."""
    theirs, ours = read_by_kafka(data_dir), read_by_us(data_dir)
    foreign = {str(number) for number in STREAMS_TYPES}
    assert len(theirs) == len(ours)
    for their, our in zip(theirs, ours, strict=True):
        if their[0]["type"] in foreign:
            assert their[0] == our[0]
            assert (their[1] is None) == (our[1] is None)
            assert our[1] is None or our[1]["version"] == their[1]["version"]
        else:
            assert their == our
    return {int(key["type"]) for key, _ in theirs}


@pytest.mark.wide
def test_each_loads_what_the_other_wrote(own_broker: StartBroker, tmp_path: Path) -> None:
    keys = {name.replace("_", "."): value for name, value in QUICK.items()} | {"offsets.topic.num.partitions": "1"}
    ours = group_broker(own_broker, offsets_topic_num_partitions="1", compression_type="producer")
    quick.create_topic(ours.bootstrap, TOPIC, 4)
    with connected(ours.bootstrap):
        ours.stop()
    kafka = KraftBroker(tmp_path / "kafka", keys)
    try:
        kafka.start()
        quick.create_topic(kafka.bootstrap, TOPIC, 4)
        one = begin(kafka.bootstrap)
        share_and_streams_groups(kafka.bootstrap)
        with connected(kafka.bootstrap) as raw:
            theirs = groups_of(raw)
        kafka.service.stop()
        members = {group_id: len(group["described"]["members"]) for group_id, group in theirs.items()}
        assert members == {GROUP: 3, "old": 1, "simple": 0, "mixed": 2, "transactional": 0}
        with_offsets = {group_id for group_id, group in theirs.items() if group["offsets"]["topics"]}
        assert with_offsets == {GROUP, "simple", "transactional"}
        assert check_dumps(kafka.data_dir) >= {1, 2, 3, 5, 6, 7, 8, 16} | SHARE_TYPES | {17, 19, 23}

        take_topic_id(ours, topic_ids(kafka.data_dir))
        copy_offsets(kafka.data_dir, ours.data_dir)
        ours.start()
        with connected(ours.bootstrap) as raw:
            assert groups_of(raw) == theirs
        go_on(ours.bootstrap, one)
        with connected(ours.bootstrap) as raw:
            left = groups_of(raw)
        ours.stop()
        check_dumps(ours.data_dir)
        CommandLine("-").run("log", "verify", str(ours.data_dir))

        copy_offsets(ours.data_dir, kafka.data_dir)
        kafka.start()
        with connected(kafka.bootstrap) as raw:
            assert groups_of(raw) == left
            listed = {group.group_id: group.group_type for group in raw.ask(ListGroupsRequest(), 5).groups}
            assert listed.items() >= {("share", "share"), ("streams", "streams")}, "ours has kept their records"
        go_on(kafka.bootstrap, one)
    finally:
        kafka.close()
