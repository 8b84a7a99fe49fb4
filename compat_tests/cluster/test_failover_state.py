"""What a leader knew besides the records its successor knows too: it was in the followers' logs all along.

Sequences of idempotent producers (duplicates and gaps), open and aborted transactions, the last stable offset; and the
coordinators' own state, whose leader is killed in the same moment.
"""

from __future__ import annotations

from typing import NamedTuple

from confluent_kafka import Producer

from compat_tests.cluster.traffic import Writer, verify, wait_for_equal_logs
from compat_tests.eos.readers import read_to_end
from compat_tests.exchange.clients import Sequenced
from compat_tests.exchange.contents import Entry
from compat_tests.overload.raw import Raw
from compat_tests.support.cluster import Cluster
from compat_tests.support.quick import DEADLINE_S, QUIET
from compat_tests.support.security.logins import reach
from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.fetch import FetchRequest

READ_COMMITTED = 1


class Seen(NamedTuple):
    """What a leader reports to a read_committed reader who starts at the beginning."""

    high_watermark: int
    last_stable_offset: int
    aborted: list[tuple[int, int]]

    @property
    def are_ended(self) -> bool:
        """Whether there is an aborted transaction, and no open one."""
        return len(self.aborted) == 1 and self.last_stable_offset == self.high_watermark


def seen_at(cluster: Cluster, broker_id: int, topic: str) -> Seen:
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
    request = FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=1_000_000,
        isolation_level=READ_COMMITTED,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[partition])],
    )
    with Raw(("127.0.0.1", cluster.brokers[broker_id].port)) as raw:
        (data,) = raw.ask(request, 11).responses[0].partitions
    assert data.error_code == ErrorCode.NONE, ErrorCode(data.error_code).name
    aborted = [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()]
    return Seen(data.high_watermark, data.last_stable_offset, aborted)


class Transactional:
    """librdkafka's transactional producer of one topic."""

    def __init__(self, cluster: Cluster, topic: str, name: str) -> None:
        self._topic = topic
        self.producer = Producer({**reach(cluster.bootstrap), "transactional.id": name, "linger.ms": 0, **QUIET})
        self.producer.init_transactions(DEADLINE_S)

    def begin(self, *values: str) -> None:
        """And write, until the broker has it."""
        self.producer.begin_transaction()
        for value in values:
            self.producer.produce(self._topic, value, partition=0)
        assert self.producer.flush(DEADLINE_S) == 0


def committed_values(cluster: Cluster, topic: str) -> list[str]:
    return [stored.value for stored in read_to_end(cluster.bootstrap, topic, [0], "read_committed")[0]]


def test_sequences_and_transactions_go_on_at_the_next_leader(cluster: Cluster, name: str) -> None:
    first, second, third = cluster.brokers
    cluster.create(name, f"{first}:{second}:{third}", "--config", "min.insync.replicas=2")
    partition = (name, 0)
    plain = Sequenced(cluster.brokers[first].port)
    plain.write(partition, [Entry(None, f"plain {n}") for n in range(5)], Codec.NONE)
    good, bad, late = (Transactional(cluster, name, f"{name}-{which}") for which in ("good", "bad", "late"))
    good.begin("good 1", "good 2")
    bad.begin("bad 1", "bad 2")
    good.producer.commit_transaction(DEADLINE_S)
    bad.producer.abort_transaction(DEADLINE_S)
    cluster.wait(
        lambda: seen_at(cluster, first, name).are_ended, "both markers, which EndTxn's responses do not wait for"
    )
    late.begin("late 1", "late 2")
    before = seen_at(cluster, first, name)
    assert len(before.aborted) == 1
    assert before.last_stable_offset == before.high_watermark - 2

    cluster.brokers[first].kill()
    cluster.wait_for_leader(name, second)
    cluster.wait(lambda: seen_at(cluster, second, name) == before, "the next leader says what the last one reported")
    plain.port = cluster.brokers[second].port
    again, at_first = plain.repeat(partition)
    assert again == at_first
    assert plain.skip(partition) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    plain.write(partition, [Entry(None, "plain 5")], Codec.NONE)
    settled = [*(f"plain {n}" for n in range(5)), "good 1", "good 2"]
    assert committed_values(cluster, name) == settled

    late.producer.commit_transaction(DEADLINE_S)
    settled += ["late 1", "late 2", "plain 5"]
    assert committed_values(cluster, name) == settled
    ended = seen_at(cluster, second, name)
    assert ended.last_stable_offset == ended.high_watermark
    bad.begin("bad again")  # by the same id, whichever broker coordinates it now
    bad.producer.commit_transaction(DEADLINE_S)

    cluster.brokers[first].start()
    cluster.wait_for_isr(name, {first, second, third})
    wait_for_equal_logs(list(cluster.brokers.values()), name, 0)
    cluster.tools.run("leader-election", "--election-type", "preferred", "--topic", name, "--partition", "0")
    cluster.wait_for_leader(name, first)
    plain.port = cluster.brokers[first].port
    again, at_first = plain.repeat(partition)
    assert again == at_first, "who was away knows what was sent in between"
    assert committed_values(cluster, name) == [*settled, "bad again"]


def test_with_one_of_three_left_the_topic_goes_on(cluster: Cluster, name: str) -> None:
    """Two die at once; when they are back, they catch up and are in sync."""
    survivor = next(i for i in cluster.brokers if i != cluster.controller())
    dying = [i for i in cluster.brokers if i != survivor]
    cluster.create(name, "1:2:3,2:3:1,3:1:2", "--config", "min.insync.replicas=1")
    writer = Writer(cluster.bootstrap, name, 3)
    writer.start()
    writer.wait_for_more(300)
    for broker_id in dying:
        cluster.brokers[broker_id].service.kill()
    for broker_id in dying:
        cluster.expire(broker_id)
    cluster.wait(lambda: cluster.live() == {survivor}, "the other two are gone")
    for partition in range(3):
        cluster.wait(lambda: cluster.state(name, partition)[:2] == (survivor, {survivor}), "it leads alone")
    assert cluster.controller() == survivor
    writer.wait_for_more(600)
    for broker_id in dying:
        cluster.brokers[broker_id].start()
    for partition in range(3):
        cluster.wait_for_isr(name, {1, 2, 3}, partition)
    writer.wait_for_more(300)
    writer.stop()
    verify(cluster.bootstrap, writer)
    for partition in range(3):
        wait_for_equal_logs(list(cluster.brokers.values()), name, partition)
