"""What an administrator does in quiet times: deletes records, elects leaders, deletes a topic and makes it again."""

from __future__ import annotations

import time
from random import Random

from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.faults.cluster import FaultyCluster, quietly
from compat_tests.faults.history import History, Trim
from compat_tests.overload.raw import Raw
from compat_tests.support.quick import admin_client, fill
from compat_tests.support.waiting import eventually
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.storage.disk.checkpoints import decode_offsets
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.elect_leaders import ElectLeadersRequest
from kpybroker.wire.messages.fetch import FetchRequest

TRIMMED, AGAIN = "trimmed", "again"
ADMIN_S = 60.0
TRIM_RECORDS = 20
FETCH_BY_ID = 13
ELECT_LEADERS_VERSION = 2
PREFERRED = 0
REFUSALS = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID)


class Housekeeping:
    def __init__(self, cluster: FaultyCluster, history: History, random: Random) -> None:
        self._cluster = cluster
        self._history = history
        self._random = random
        self._trimmed = 0

    def create(self, assignments: dict[str, list[list[int]]]) -> None:
        admin = self._admin()
        topics = [NewTopic(name, len(to), replica_assignment=to) for name, to in assignments.items()]
        for made in admin.create_topics(topics, operation_timeout=ADMIN_S).values():
            made.result(timeout=ADMIN_S)

    def trim(self) -> None:
        """Write some, delete some, and remember what must stay deleted."""
        fill(self._cluster.bootstrap, TRIMMED, [f"{n}" for n in range(TRIM_RECORDS)])
        self._trimmed += self._random.randint(1, TRIM_RECORDS)
        admin = self._admin()
        place = Place(TRIMMED, 0, self._trimmed)
        (done,) = admin.delete_records([place], request_timeout=ADMIN_S).values()
        done.result(timeout=ADMIN_S)
        # Until its next checkpoint a broker that is killed forgets what was deleted, and Kafka promises no more.
        eventually(self._all_have_noted, f"every replica has noted the log start {self._trimmed}", ADMIN_S)
        self._history.trims[TRIMMED, 0].append(Trim(time.monotonic_ns(), self._trimmed))

    def _all_have_noted(self) -> bool:
        for broker in self._cluster.brokers.values():
            file = broker.data_dir / "log-start-offset-checkpoint"
            noted = decode_offsets(file.read_bytes(), str(file)) if file.exists() else {}
            assert noted.get(TopicPartition(TRIMMED, 0), 0) >= self._trimmed, f"broker {broker.node_id}: {noted}"
        return True

    def elect(self) -> None:
        """Leaders go back to where they belong, so that it is not one broker that leads everything."""
        elect_preferred(self._cluster)

    def make_again(self) -> None:
        """Delete a topic and make another one of its name. Who read the first by its id must not get the second."""
        self.create({AGAIN: [[1, 2, 3]]})
        fill(self._cluster.bootstrap, AGAIN, ["first"])
        topic_id = self._cluster.topic_id(AGAIN)
        leader = self._cluster.cluster.state(AGAIN).leader
        with Raw(("127.0.0.1", self._cluster.brokers[leader].port)) as reader:
            response = reader.ask(_fetch(topic_id), FETCH_BY_ID)
            assert response.responses[0].partitions[0].records, "the first topic's record"
            self._delete_and_create()
            if self._cluster.cluster.state(AGAIN).leader != leader:
                return
            for request in (_fetch_again(response.session_id), _fetch(topic_id)):
                for topic in reader.ask(request, FETCH_BY_ID).responses:
                    for data in topic.partitions:
                        if data.records or data.error_code not in REFUSALS:
                            text = f"responded {data.error_code} with {bytes(data.records or b'')!r}"
                            self._history.failures.append(f"a deleted topic was read by its id: {text}")

    def _delete_and_create(self) -> None:
        admin = self._admin()
        (gone,) = admin.delete_topics([AGAIN], operation_timeout=ADMIN_S).values()
        gone.result(timeout=ADMIN_S)
        tree = self._cluster.cluster.tree
        eventually(lambda: quietly(lambda: tree.exists(f"/brokers/topics/{AGAIN}")) is None, "the topic is gone")
        self.create({AGAIN: [[1, 2, 3]]})
        fill(self._cluster.bootstrap, AGAIN, ["second"])

    def _admin(self) -> AdminClient:
        self._kept = admin_client(self._cluster.bootstrap)  # its futures live as long as it does
        return self._kept


def _fetch(topic_id: bytes) -> FetchRequest:
    """A full one that begins a session."""
    partition = FetchRequest.FetchPartition(partition=0, partition_max_bytes=1 << 20)
    topic = FetchRequest.FetchTopic(topic_id=topic_id, partitions=[partition])
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, session_epoch=0, topics=[topic])


def _fetch_again(session_id: int) -> FetchRequest:
    """What is new in a session."""
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, session_id=session_id, session_epoch=1)


def elect_preferred(cluster: FaultyCluster) -> None:
    controller = quietly(cluster.cluster.controller)
    if controller is not None:
        ask_for_election(cluster, controller)


def ask_for_election(cluster: FaultyCluster, broker_id: int) -> set[ErrorCode]:
    """Of the preferred leaders of all partitions; what the broker, controller or not, says to those that need one."""
    request = ElectLeadersRequest(election_type=PREFERRED, topic_partitions=None, timeout_ms=int(ADMIN_S * 1000))
    with Raw(("127.0.0.1", cluster.brokers[broker_id].port), ADMIN_S) as connection:
        response = connection.ask(request, ELECT_LEADERS_VERSION)
    return {
        ErrorCode(found.error_code) for topic in response.replica_election_results for found in topic.partition_result
    }
