"""Records of consumer groups in `__consumer_offsets`, read by DumpLogSegments of Kafka 4.3.1.

One scenario of raw requests leaves every type of record that a broker writes. What the tool reads in our files is what
`kpybroker log dump` shows; and next to a real 4.3.1 it is the same sequence of the same records, but for ids and times.
"""

from __future__ import annotations

import json
import re
import struct
import zipfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from compat_tests.conftest import StartBroker
from compat_tests.deps import jars_dir
from compat_tests.overload.raw import Raw
from compat_tests.support.command_line import CommandLine
from compat_tests.support.groups.serving import group_broker
from compat_tests.support.kraft import KraftBroker
from compat_tests.support.quick import create_topic
from compat_tests.support.services import started
from compat_tests.support.tools import JARS, Tools
from compat_tests.support.waiting import eventually
from kpybroker.config.development import QUICK_GROUPS
from kpybroker.core.streams_group.records import STREAMS_RECORD_TYPES
from kpybroker.core.topic_names import GROUP_METADATA_TOPIC_NAME
from kpybroker.storage.inspection.dump_internal import decode_internal
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kpybroker.wire.messages.delete_groups import DeleteGroupsRequest
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest

GROUP, TOPIC = "g", "orders"
CONSUMER_TYPES = {3, 5, 6, 7, 8, 16}
NOT_COMPARED = re.compile(r"[Tt]imestamp|metadataHash|topicId|clientHost|^partition$")
OFFSETS = "__consumer_offsets-0"
Json = Any


class Play:
    """One connection, and members by name with what the coordinator gave them."""

    def __init__(self, raw: Raw, group_id: str = GROUP) -> None:
        self.raw = raw
        self.group_id = group_id
        self.epochs: dict[str, int] = {}
        self.owned: dict[str, dict[bytes, list[int]]] = {}

    def ready(self) -> None:
        find = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
        eventually(lambda: self.raw.ask(find, 4).coordinators[0].error_code == 0, "a coordinator")
        eventually(lambda: self.delete() == ErrorCode.GROUP_ID_NOT_FOUND, "a coordinator that has loaded")

    def delete(self) -> int:
        response = self.raw.ask(DeleteGroupsRequest(groups_names=[GROUP]), 2)
        return int(response.results[0].error_code)

    def beat(self, member: str, epoch: int | None = None, **fields: Any) -> None:
        at = self.epochs.get(member, 0) if epoch is None else epoch
        if at == 0:
            fields = {"rebalance_timeout_ms": 60_000, "topic_partitions": [], **fields}
            self.owned[member] = {}
        elif at > 0:
            fields["topic_partitions"] = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in self.owned[member].items()
            ]
        request = ConsumerGroupHeartbeatRequest(group_id=self.group_id, member_id=member, member_epoch=at, **fields)
        response = self.raw.ask(request, 1)
        assert response.error_code == ErrorCode.NONE, response
        self.epochs[member] = response.member_epoch
        if response.assignment is not None:
            given = response.assignment.topic_partitions
            self.owned[member] = {topic.topic_id: list(topic.partitions) for topic in given}

    def commit(self, member: str, partition: int) -> None:
        request = OffsetCommitRequest(
            group_id=self.group_id,
            member_id=member,
            generation_id_or_member_epoch=self.epochs[member],
            topics=[
                OffsetCommitRequest.OffsetCommitRequestTopic(
                    name=TOPIC,
                    partitions=[
                        OffsetCommitRequest.OffsetCommitRequestPartition(
                            partition_index=partition, committed_offset=7, committed_metadata="m"
                        )
                    ],
                )
            ],
        )
        response = self.raw.ask(request, 9)
        assert response.topics[0].partitions[0].error_code == ErrorCode.NONE, response

    def settle(self, *members: str) -> None:
        """Heartbeats until all have their share and one epoch."""
        for _ in range(6):
            for member in members:
                self.beat(member)
        assert len({self.epochs[member] for member in members}) == 1
        assert sum(len(partitions) for member in members for partitions in self.owned[member].values()) == 4


def play(bootstrap: str) -> None:
    """Join, share, commit, restart a static member, follow a pattern, leave, and delete the group."""
    create_topic(bootstrap, TOPIC, 4)
    with Raw(("127.0.0.1", int(bootstrap.rpartition(":")[2]))) as raw:
        one = Play(raw)
        one.ready()
        one.beat("a", 0, subscribed_topic_names=[TOPIC], rack_id="r")
        one.beat("b", 0, subscribed_topic_names=[TOPIC], instance_id="i", server_assignor="range")
        one.settle("a", "b")
        (mine,) = one.owned["a"].values()
        one.commit("a", mine[0])
        one.beat("b", -2, instance_id="i")
        one.beat("c", 0, subscribed_topic_names=[TOPIC], instance_id="i")
        one.settle("a", "c")
        one.beat("a", -1)
        one.settle("c")
        one.beat("c", -1, instance_id="i")
        one.beat("d", 0, subscribed_topic_regex="ord.*")

        def matched() -> bool:
            one.beat("d")
            return bool(one.owned["d"])

        eventually(matched, "what the pattern matches")
        one.beat("d", -1)
        assert one.delete() == ErrorCode.NONE


def read_by_kafka(directory: Path) -> list[Json]:
    """Key and value of each record of the offsets topic that DumpLogSegments 4.3.1 reads."""
    words = ("--offsets-decoder", "--deep-iteration", "--files", str(directory / OFFSETS / f"{0:020d}.log"))
    out = Tools("4.x", "-").run_main("org.apache.kafka.tools.DumpLogSegments", *words).out
    rows = []
    for line in out.splitlines():
        if " payload: " in line or line.rstrip().endswith("payload:"):
            key, _, value = line.partition(" key: ")[2].partition(" payload: ")
            rows.append((json.loads(key), json.loads(value) if value.strip() not in ("", "<DELETE>", "null") else None))
    assert rows, out
    return rows


def read_by_us(directory: Path) -> list[Json]:
    """The same of `kpybroker log dump`, in the words of DumpLogSegments."""
    out = CommandLine("-").run("log", "dump", "--records", "--output", "json", str(directory / OFFSETS)).lines
    rows = [row for row in map(json.loads, out) if row["type"] == "record"]
    return [
        (
            {"type": str(row["key"]["version"]), "data": row["key"]["data"]},
            row["value"]
            and {"version": str(row["value"]["version"]), "data": _without_versions(row["value"].get("data"))},
        )
        for row in rows
        if "control" not in row
    ]


def _without_versions(data: Json) -> Json:
    """Of a classic group: ours says the versions of its members' subscriptions and assignments, too."""
    for member in data.get("members", ()) if data is not None else ():
        for embedded in ("subscription", "assignment"):
            if isinstance(member[embedded], dict):
                del member[embedded]["version"]
    return data


def comparable(rows: Sequence[Json]) -> list[Json]:
    """Without what differs between two runs: ids, times, versions of metadata, and which of two equal shares a member
    has. In Kafka the order of a group's members, where it writes something for each, is that of Java's hash map.
    """

    def strip(value: Json) -> Json:
        if isinstance(value, dict):
            return {
                name: len(part) if name == "partitions" else strip(part)
                for name, part in value.items()
                if not NOT_COMPARED.search(name) and not (name == "version" and "topics" in value)
            }
        return [strip(part) for part in value] if isinstance(value, list) else value

    stripped = [strip(list(row)) for row in rows]
    runs = (list(run) for _, run in groupby(stripped, lambda row: (row[0]["type"], row[1] is None)))
    return [row for run in runs for row in sorted(run, key=json.dumps)]


def test_kafkas_tool_and_ours_read_the_same_records(own_broker: StartBroker) -> None:
    broker = group_broker(own_broker, offsets_topic_num_partitions="1", compression_type="producer")
    play(broker.bootstrap)
    broker.stop()
    theirs, ours = read_by_kafka(broker.data_dir), read_by_us(broker.data_dir)
    assert theirs == ours
    types = [int(key["type"]) for key, _ in ours]
    assert set(types) >= CONSUMER_TYPES | {1}
    (offset,) = [value for key, value in ours if key["type"] == "1" and value is not None]
    assert offset["version"] == "4"
    CommandLine("-").run("log", "verify", str(broker.data_dir))


def test_keys_of_streams_groups_have_kafkas_types_names_and_fields() -> None:
    found = {}
    with zipfile.ZipFile(next(jars_dir(JARS["4.x"]).glob("kafka-group-coordinator-4*.jar"))) as jar:
        for entry in jar.namelist():
            if re.fullmatch(r"common/message/Streams\w+Key\.json", entry):
                definition = json.loads(re.sub(r"^\s*//.*$", "", jar.read(entry).decode(), flags=re.MULTILINE))
                fields = [(field["name"], field["type"]) for field in definition["fields"]]
                found[definition["apiKey"]] = (definition["name"], fields)
    assert found.keys() == STREAMS_RECORD_TYPES
    for number, (name, fields) in found.items():
        assert {kind for _, kind in fields} == {"string"}
        key = struct.pack(">h", number) + struct.pack(">hs", 1, b"x") * len(fields)
        shown, _ = decode_internal(GROUP_METADATA_TOPIC_NAME, key, None)
        data = {field[0].lower() + field[1:]: "x" for field, _ in fields}
        assert shown == {"type": name, "version": number, "data": data}


@pytest.mark.wide
def test_the_records_are_those_of_kafka_4_3(own_broker: StartBroker, tmp_path: Path) -> None:
    broker = group_broker(own_broker, offsets_topic_num_partitions="1")
    play(broker.bootstrap)
    broker.stop()
    kafka = KraftBroker(tmp_path / "kafka")
    with (tmp_path / "kafka" / "server.properties").open("a") as properties:
        keys = {**QUICK_GROUPS, "offsets.topic.num.partitions": "1"}
        properties.writelines(f"{name}={value}\n" for name, value in keys.items())
    with started(kafka):
        play(kafka.bootstrap)
        theirs = comparable(read_by_kafka(tmp_path / "kafka" / "data"))
    assert comparable(read_by_kafka(broker.data_dir)) == theirs
