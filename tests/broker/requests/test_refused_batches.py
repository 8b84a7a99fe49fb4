"""Behind a batch that was refused for now, what would leave a gap is refused as it was, until it comes again."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.broker.requests.context import PlainConnectionInfo
from kpybroker.broker.requests.refused_batches import BEHIND_MAX, FOR_NOW, PARTITIONS_MAX, RefusedBatches
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.produce import ProduceRequest
from tests.support.brokers.leadership import order
from tests.support.brokers.running_broker import ask, running_broker
from tests.support.storage.batches import batch
from tests.support.storage.lossy_files import LossyFiles

NOT_LEADER = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def sent(sequence: int, *, producer_id: int = 7, producer_epoch: int = 0) -> bytes:
    return bytes(
        batch(b"%d" % sequence, producer_id=producer_id, producer_epoch=producer_epoch, base_sequence=sequence)
    )


def code_of(
    refused: RefusedBatches,
    records: bytes | None,
    *,
    place: tuple[str, int] = ("t", 0),
    last: int | None = 0,
    epoch: int = 0,
    topic_id: bytes = ZERO_UUID,
) -> ErrorCode | None:
    """What the partition's leader says, which knows the producer up to `last`, or not at all."""
    known = {} if last is None else {7: SimpleNamespace(producer_epoch=epoch, last_sequence=last)}
    producers: Any = SimpleNamespace(producers=known)
    try:
        refused.check(place, topic_id, producers, records)
    except KafkaError as error:
        return error.code
    return None


def after(records: bytes | None, error: KafkaError | LogDirError = NOT_LEADER) -> RefusedBatches:
    refused = RefusedBatches()
    refused.note(("t", 0), ZERO_UUID, records, error)
    return refused


@pytest.mark.parametrize("last", [2, None])
def test_batches_behind_are_refused_until_the_first_is_sent_again(last: int | None) -> None:
    refused = after(sent(3))
    codes = [code_of(refused, sent(sequence), last=last) for sequence in (4, 5)]
    assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
    refused.note(("t", 0), ZERO_UUID, sent(4), KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS))
    assert code_of(refused, sent(6), last=last) == ErrorCode.NOT_LEADER_OR_FOLLOWER, "as the first was"
    assert code_of(refused, sent(3), last=last) is None
    assert not refused.by_partition
    assert code_of(refused, sent(5), last=last) is None


def test_no_more_than_can_be_on_their_way() -> None:
    refused = after(sent(3))
    codes = [code_of(refused, sent(sequence)) for sequence in range(4, 10)]
    assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * BEHIND_MAX + [None] * 2


@pytest.mark.parametrize(("sequence", "last"), [(4, 3), (9, 8), (9, 9), (9, 20)])
def test_a_batch_that_another_leader_has_appended_is_forgotten(sequence: int, last: int) -> None:
    refused = after(sent(3))
    assert code_of(refused, sent(sequence), last=last) is None
    assert not refused.by_partition


def test_the_log_may_know_an_older_epoch_of_the_producer() -> None:
    refused = after(sent(0, producer_epoch=1))
    assert code_of(refused, sent(1, producer_epoch=1), last=0, epoch=0) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_fenced_producer_is_left_to_the_append() -> None:
    assert code_of(after(sent(3)), sent(4), last=0, epoch=1) is None


def test_a_name_that_no_topic_can_have_is_not_kept() -> None:
    refused = RefusedBatches()
    refused.note(("x" * 250, 0), ZERO_UUID, sent(3), KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    assert not refused.by_partition


def test_the_first_of_a_later_epoch_counts() -> None:
    refused = after(sent(3))
    refused.note(("t", 0), ZERO_UUID, sent(0, producer_epoch=1), NOT_LEADER)
    assert code_of(refused, sent(1, producer_epoch=1)) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_broker_that_does_not_lead_keeps_what_was_noted() -> None:
    refused = after(sent(3))
    refused.check(("t", 0), ZERO_UUID, None, sent(4))
    assert refused.by_partition


@pytest.mark.parametrize(
    "records",
    [sent(2), sent(3), sent(4, producer_id=8), sent(0, producer_epoch=1), bytes(batch(b"plain")), None, b"short"],
)
def test_other_batches_are_not_behind(records: bytes | None) -> None:
    assert code_of(after(sent(3)), records) is None


def test_sequences_wrap() -> None:
    top = 2**31 - 1
    assert code_of(after(sent(top)), sent(0), last=top - 1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code_of(after(sent(top)), sent(0), last=top) is None
    assert code_of(after(sent(0)), sent(top), last=top - 1) is None


@pytest.mark.parametrize("code", ErrorCode)
def test_for_now(code: ErrorCode) -> None:
    assert code_of(after(sent(3), KafkaError(code)), sent(4)) == (code if code in FOR_NOW else None)


def test_a_failed_directory_is_as_a_storage_error() -> None:
    assert code_of(after(sent(3), LogDirError("logs", "broken")), sent(4)) == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("records", [None, b"", b"short", bytes(batch(b"plain")), bytes(8) + b"\xff" * 60])
def test_what_is_no_idempotent_producers_is_not_noted(records: bytes | None) -> None:
    assert not after(records).by_partition


def test_other_partitions_are_free_and_only_so_many_are_noted() -> None:
    refused = after(sent(3))
    assert code_of(refused, sent(4), place=("t", 1)) is None
    assert code_of(refused, sent(4), place=("u", 0)) is None
    for index in range(1, PARTITIONS_MAX + 1):
        refused.note(("t", index), ZERO_UUID, sent(3), NOT_LEADER)
    assert code_of(refused, sent(4)) is None, "the oldest is forgotten"
    assert code_of(refused, sent(4), place=("t", 1)) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_name_may_have_been_unknown() -> None:
    """A topic that was named by its id when the metadata did not have it yet."""
    one, other = bytes(15) + b"1", bytes(15) + b"2"
    refused = RefusedBatches()
    refused.note(("", 0), one, sent(3), KafkaError(ErrorCode.UNKNOWN_TOPIC_ID))
    assert code_of(refused, sent(4), topic_id=other) is None
    assert code_of(refused, sent(4), topic_id=one) == ErrorCode.UNKNOWN_TOPIC_ID
    assert code_of(refused, sent(3), topic_id=one) is None
    assert not refused.by_partition


# --- a broker that becomes the leader between two requests


async def produce(broker: Broker, connection: PlainConnectionInfo, version: int, *sequences: int) -> list[ErrorCode]:
    codes = []
    for sequence in sequences:
        data = ProduceRequest.PartitionProduceData(index=0, records=sent(sequence))
        topic = ProduceRequest.TopicProduceData(name="t", partition_data=[data])
        request = ProduceRequest(acks=1, timeout_ms=1_000, topic_data=[topic])
        response = await ask(broker, request, version, connection=connection)
        codes.append(ErrorCode(response.responses[0].partition_responses[0].error_code))
    return codes


@pytest.mark.parametrize("version", [3, 9, 11])
async def test_a_leader_that_hears_late(autojump_clock: trio.testing.MockClock, version: int) -> None:
    """The first of four comes before the broker leads, the others after."""
    one, other = PlainConnectionInfo(connection_id="one"), PlainConnectionInfo(connection_id="other")
    moved, fine = ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE
    async with running_broker(Path("/logs"), files=LossyFiles()) as broker:
        await order(broker, 0, 0, [0])
        assert await produce(broker, one, version, 0) == [fine]
        await order(broker, 1, 1, [0])
        assert await produce(broker, one, version, 1) == [moved]
        await order(broker, 0, 2, [0])
        assert await produce(broker, other, version, 4) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
        assert await produce(broker, one, version, 2, 3, 4) == [moved] * 3
        assert await produce(broker, one, version, 1, 2, 3, 4) == [fine] * 4
        assert broker.replicas.hosted("t", 0).online_log().log_end_offset == 5


async def test_what_is_in_the_log_already_makes_no_request_wait(autojump_clock: trio.testing.MockClock) -> None:
    connection = PlainConnectionInfo(connection_id="one")
    moved, fine = ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE
    async with running_broker(Path("/logs"), files=LossyFiles()) as broker:
        await order(broker, 0, 0, [0])
        assert await produce(broker, connection, 9, 0, 1) == [fine] * 2
        await order(broker, 1, 1, [0])
        assert await produce(broker, connection, 9, 1) == [moved]
        await order(broker, 0, 2, [0])
        assert await produce(broker, connection, 9, 2, 1, 3) == [fine] * 3
        assert broker.replicas.hosted("t", 0).online_log().log_end_offset == 4


async def test_a_leader_that_was_away(autojump_clock: trio.testing.MockClock) -> None:
    """What it refused was taken by the leader of the time between, and is in its log."""
    one, other = PlainConnectionInfo(connection_id="one"), PlainConnectionInfo(connection_id="other")
    moved, fine = ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE
    async with running_broker(Path("/logs"), files=LossyFiles()) as broker:
        await order(broker, 0, 0, [0])
        assert await produce(broker, one, 9, 0) == [fine]
        await order(broker, 1, 1, [0])
        assert await produce(broker, one, 9, 1) == [moved]
        await order(broker, 0, 2, [0])
        assert await produce(broker, other, 9, 1, 2) == [fine] * 2
        assert await produce(broker, one, 9, 3, 5) == [fine, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]


async def test_a_partition_that_is_new_here(autojump_clock: trio.testing.MockClock) -> None:
    """Kafka takes what comes behind for a beginning: the producer is not known here."""
    connection = PlainConnectionInfo(connection_id="one")
    unknown, fine = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE
    async with running_broker(Path("/logs"), files=LossyFiles()) as broker:
        assert await produce(broker, connection, 9, 0) == [unknown]
        await order(broker, 0, 0, [0])
        assert await produce(broker, connection, 9, 1, 0, 1) == [unknown, fine, fine]
