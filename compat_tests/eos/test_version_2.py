"""Transactions of version 2 (KIP-890, part 2) next to Kafka 4.3.1: the same bare requests to both, and the same codes.

What depends on how fast a marker is written is not compared: each step begins when the transaction before is complete.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.overload.raw import Raw
from compat_tests.support import quick
from compat_tests.support.kraft import KraftBroker
from compat_tests.support.waiting import eventually
from kpybroker.testing import Broker
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kpybroker.wire.messages.delete_topics import DeleteTopicsRequest
from kpybroker.wire.messages.describe_transactions import DescribeTransactionsRequest
from kpybroker.wire.messages.end_txn import EndTxnRequest
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.init_producer_id import InitProducerIdRequest
from kpybroker.wire.messages.metadata import MetadataRequest
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from kpybroker.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from kpybroker.wire.records.builder import BatchFields, build_batch

NOT_YET = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
KEYS = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}


class Play:
    """One transactional id `x` at one broker, and what was said of each step."""

    def __init__(self, bootstrap: str) -> None:
        self.address = "127.0.0.1", int(bootstrap.rpartition(":")[2])
        self.bootstrap = bootstrap
        self.said: list[tuple[str, object]] = []
        self.producer_id = self.epoch = -1
        self.first_epoch = 0
        self.ids_of: dict[str, bytes] = {}
        for topic in ("t", "u"):
            quick.create_topic(bootstrap, topic, 4)
        for key_type, key in ((0, "g"), (1, "x")):
            eventually(lambda: self.ask(FindCoordinatorRequest(key_type=key_type, key=key), 3).error_code == 0, key)

    def ask(self, request: Any, version: int) -> Any:
        with Raw(self.address) as connection:
            return connection.ask(request, version)

    def say(self, step: str, said: object) -> None:
        self.said.append((step, said.name if isinstance(said, ErrorCode) else said))

    # --- requests

    def init(self) -> None:
        """Again, while the transaction before is not complete."""

        def begun() -> bool:
            request = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
            response = self.ask(request, 4)
            if ErrorCode(response.error_code) in NOT_YET:
                return False
            assert response.error_code == 0, response
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch
            return True

        eventually(begun, "a producer id")

    def produce(
        self,
        topic: str,
        index: int,
        sequence: int,
        version: int,
        *,
        ids: tuple[int, int] | None = None,
        name: str = "x",
    ) -> tuple[str, str | None]:
        producer_id, epoch = ids or (self.producer_id, self.epoch)
        batch = build_batch(
            [(None, b"value", int(time.time() * 1000))],
            BatchFields(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, is_transactional=True),
        )
        data = ProduceRequest.PartitionProduceData(index=index, records=bytes(batch))
        topic_id = self.ids_of.get(topic) or self.topic_id(topic)
        topics = [ProduceRequest.TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])]
        request = ProduceRequest(transactional_id=name, acks=-1, timeout_ms=10_000, topic_data=topics)
        found = self.ask(request, version).responses[0].partition_responses[0]
        return ErrorCode(found.error_code).name, found.error_message

    def topic_id(self, topic: str) -> bytes:
        named = MetadataRequest.MetadataRequestTopic(name=topic)
        (found,) = self.ask(MetadataRequest(topics=[named], allow_auto_topic_creation=False), 12).topics
        found_id: bytes = found.topic_id
        return found_id

    def add(self, topic: str, index: int) -> ErrorCode:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[index])],
        )
        response = self.ask(request, 3)
        return ErrorCode(response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

    def offsets(self, version: int, ids: tuple[int, int] | None = None) -> ErrorCode:
        producer_id, epoch = ids or (self.producer_id, self.epoch)
        partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)
        topics = [TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name="t", partitions=[partition])]
        request = TxnOffsetCommitRequest(
            transactional_id="x", group_id="g", producer_id=producer_id, producer_epoch=epoch, topics=topics
        )
        return ErrorCode(self.ask(request, version).topics[0].partitions[0].error_code)

    def end(self, committed: bool, version: int, ids: tuple[int, int] | None = None) -> tuple[str, int, int]:
        """The code, the epoch relative to the first, and whether the id is the same. The caller continues with them."""
        producer_id, epoch = ids or (self.producer_id, self.epoch)
        request = EndTxnRequest(
            transactional_id="x", producer_id=producer_id, producer_epoch=epoch, committed=committed
        )
        response = self.ask(request, version)
        if response.error_code == 0 and version >= 5 and ids is None:
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        next_epoch = response.producer_epoch - self.first_epoch if response.producer_epoch >= 0 else -1
        return ErrorCode(response.error_code).name, next_epoch, int(response.producer_id == self.producer_id)

    def marker(self, index: int, epoch: int, transaction_version: int, version: int) -> ErrorCode:
        topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic(name="t", partition_indexes=[index])
        marker = WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=self.producer_id,
            producer_epoch=epoch,
            topics=[topic],
            transaction_version=transaction_version,
        )
        response = self.ask(WriteTxnMarkersRequest(markers=[marker]), version)
        return ErrorCode(response.markers[0].topics[0].partitions[0].error_code)

    def described(self) -> tuple[str, int, list[tuple[str, int]]]:
        (found,) = self.ask(DescribeTransactionsRequest(transactional_ids=["x"]), 0).transaction_states
        places = sorted((topic.topic, index) for topic in found.topics for index in topic.partitions)
        return found.transaction_state, found.producer_epoch - self.first_epoch, places

    def complete(self) -> None:
        eventually(lambda: not self.described()[0].startswith("Prepare"), "the end of the transaction")

    @property
    def ids(self) -> tuple[int, int]:
        return self.producer_id, self.epoch


def empty_ends(play: Play) -> None:
    play.say("commit of nothing", play.end(True, 5))
    play.say("commit of nothing, version 4", play.end(True, 4))
    before = play.ids
    play.say("abort of nothing", play.end(False, 5))
    play.complete()
    play.say("the same again", play.end(False, 5, before))
    play.say("then", play.described())
    play.say("abort of nothing, version 4", play.end(False, 4))


def writes(play: Play) -> None:
    play.say("sequence 3 first", play.produce("t", 0, 3, 12))
    play.say("described", play.described())
    play.say("sequence 0", play.produce("t", 0, 0, 12))
    play.say("by id", play.produce("t", 1, 0, 13))
    play.say("a gap", play.produce("t", 1, 2, 13))
    play.say("not added, version 11", play.produce("t", 2, 0, 11))
    play.say("not added, version 9", play.produce("t", 2, 0, 9))
    play.say("added by the producer", play.add("t", 2))
    play.say("then, version 11", play.produce("t", 2, 0, 11))
    play.say("offsets, version 4", play.offsets(4))
    play.say("offsets, version 5", play.offsets(5))
    play.say("described", play.described())
    play.say("unknown id", play.produce("t", 3, 0, 12, ids=(play.producer_id + 7_000, 0)))
    play.say("unknown name", play.produce("t", 3, 0, 12, name="y"))
    play.say("epoch to come", play.produce("t", 3, 0, 12, ids=(play.producer_id, play.epoch + 1)))
    play.say("offsets of an epoch to come", play.offsets(5, (play.producer_id, play.epoch + 1)))
    play.say("end in an epoch to come", play.end(True, 5, (play.producer_id, play.epoch + 1)))
    play.say("end of an unknown id", play.end(True, 5, (play.producer_id + 7_000, play.epoch)))


def ends(play: Play) -> None:
    before = play.ids
    play.say("commit", play.end(True, 5))
    play.complete()
    play.say("the same again", play.end(True, 5, before))
    play.say("the other end", play.end(False, 5, before))
    play.say("an epoch before", play.end(True, 5, (before[0], before[1] - 1)))
    play.say("late, where it wrote", play.produce("t", 0, 1, 12, ids=before))
    play.say("late, elsewhere", play.produce("t", 3, 0, 12, ids=before))
    play.say("late offsets", play.offsets(5, before))
    play.say("late, version 11", play.produce("t", 0, 1, 11, ids=before))
    play.say("described", play.described())


def markers(play: Play) -> None:
    play.say("nothing open, the same again", play.marker(0, play.epoch, 2, 2))
    play.say("nothing open, an epoch before", play.marker(0, play.epoch - 1, 2, 2))
    play.say("written", play.produce("t", 0, 0, 12))
    play.say("open, its epoch", play.marker(0, play.epoch, 2, 2))
    play.say("open, its epoch, version 1 of the transaction", play.marker(0, play.epoch - 1, 1, 2))
    play.say("still open", play.produce("t", 0, 1, 12))
    play.say("ended by one of version 1", play.marker(0, play.epoch, 1, 2))
    play.say("what follows", play.produce("t", 0, 2, 12))
    play.say("abort", play.end(False, 5))
    play.complete()


def both_versions(play: Play) -> None:
    play.say("written in version 2", play.produce("t", 0, 0, 12))
    play.say("ended as before", play.end(True, 4))
    play.complete()
    play.say("the same again", play.end(True, 4))
    play.say("and in version 2", play.end(True, 5))
    play.say("described", play.described())
    play.say("added", play.add("t", 1))
    play.say("written", play.produce("t", 1, 0, 11))
    play.say("ended in version 2", play.end(False, 5))
    play.complete()
    play.say("described", play.described())


def taken_over(play: Play) -> None:
    play.say("written", play.produce("t", 0, 0, 12))
    zombie = play.ids
    play.init()
    play.say("the next one", play.described())
    play.say("the one before writes", play.produce("t", 0, 1, 12, ids=zombie))
    play.say("the one before ends", play.end(True, 5, zombie))


def topics_again(play: Play) -> None:
    old = play.topic_id("u")
    play.say("written", play.produce("u", 0, 0, 13))
    play.say("end", play.end(True, 5))
    play.complete()
    play.ask(DeleteTopicsRequest(topic_names=["u"], timeout_ms=10_000), 5)
    eventually(lambda: play.topic_id("u") == bytes(16), "u is gone")
    quick.create_topic(play.bootstrap, "u", 4)
    eventually(lambda: play.topic_id("u") not in (bytes(16), old), "u is back")
    new, play.ids_of["u"] = play.topic_id("u"), old
    play.say("by the id of before", play.produce("u", 0, 0, 13))
    play.ids_of["u"] = new
    eventually(lambda: play.produce("u", 0, 0, 13)[0] == "NONE", "a leader that takes it by the new one")
    play.say("a second", play.produce("u", 0, 1, 13))
    play.say("end", play.end(True, 5))
    play.complete()


STEPS: tuple[Callable[[Play], None], ...] = (
    *(empty_ends, writes, ends, markers, both_versions, taken_over, topics_again),
)


def played(bootstrap: str) -> list[tuple[str, object]]:
    play = Play(bootstrap)
    play.init()
    play.first_epoch = play.epoch
    for step in STEPS:
        play.say(step.__name__, "---")
        step(play)
    return play.said


@pytest.fixture
def kafka_4(tmp_path: Path) -> Iterator[str]:
    broker = KraftBroker(tmp_path / "kafka", KEYS)
    try:
        broker.start()
        yield broker.bootstrap
    finally:
        broker.close()


def test_the_same_codes_as_kafka_4(kafka_4: str) -> None:
    with Broker(config=KEYS) as broker:
        ours = played(broker.bootstrap_servers)
    assert ours == played(kafka_4)
