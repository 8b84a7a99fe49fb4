"""Transactions with stock clients: what is committed is read, once and in order; nothing else ever is."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, TopicPartition

from compat_tests.deps import ROOT
from compat_tests.overload.raw import Raw
from compat_tests.support import quick
from compat_tests.support.services import Broker
from compat_tests.support.tools import VERSIONS, Tools, run_process
from compat_tests.support.transactional import FRANZ, LIBRARIES, Failed, Transactional, parameters, visible
from compat_tests.support.waiting import eventually
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.records.builder import BatchFields, build_batch

WORKERS = ROOT / "compat_tests" / "workers"
READERS = ("confluent", "kafka-python", "aiokafka", "java")
OTHERS = ("kafka-python", "aiokafka", "java-3.9.1")
"""They commit and abort in `make test`, and the rest in the wide tests."""
WITH_OFFSETS = parameters((library for library in LIBRARIES if library != FRANZ), wide=OTHERS)

MakeTopic = Callable[..., str]
StartBroker = Callable[..., Broker]


Begin = Callable[..., Transactional]


@pytest.fixture
def begin(broker: Broker, name: str) -> Iterator[Begin]:
    """`begin(library)`: a producer that has called init; those that still run at the end are killed."""
    started: list[Transactional] = []

    def start(
        library: str, *, bootstrap: str | None = None, transactional_id: str | None = None, timeout_ms: int = 60_000
    ) -> Transactional:
        one = Transactional(library, bootstrap or broker.bootstrap, transactional_id or name, timeout_ms)
        started.append(one)
        one.do("init")
        return one

    yield start
    for one in started:
        one.kill()


# --- commit and abort


@pytest.mark.parametrize("library", parameters(LIBRARIES))
def test_commit_and_abort(broker: Broker, topic: MakeTopic, begin: Begin, library: str) -> None:
    place = topic(2)
    producer = begin(library)
    producer.transact(place, "a", "b")
    producer.transact(place, "dropped", commit=False)
    producer.do("begin")
    for partition in (0, 1):
        producer.do("produce", place, partition, [f"c{partition}"])
    assert visible(broker.bootstrap, place) == ["a", "b"]
    producer.do("commit")
    eventually(lambda: visible(broker.bootstrap, place) == ["a", "b", "c0"], "the third transaction")
    eventually(lambda: visible(broker.bootstrap, place, 1) == ["c1"], "its other partition")


@pytest.mark.parametrize("reader", parameters(READERS, wide=OTHERS))
def test_readers_of_committed_data(broker: Broker, topic: MakeTopic, begin: Begin, reader: str) -> None:
    """Aborted batches before, between and after, and one that is still open."""
    place = topic()
    producer, other = begin("confluent"), begin("confluent", transactional_id=f"{place}-other")
    expected = []
    for n in range(10):
        producer.transact(place, f"dropped {n}", commit=False)
        producer.transact(place, f"kept {n}", f"kept {n} too")
        other.transact(place, f"other {n}", commit=n % 3 == 0)
        expected += [f"kept {n}", f"kept {n} too", *([f"other {n}"] if n % 3 == 0 else [])]
    producer.do("begin")
    producer.do("produce", place, 0, ["open"])
    eventually(lambda: visible(broker.bootstrap, place) == expected, "all that is committed")

    def has_all() -> bool:
        """Java's program ends after seconds without a record, and may need as long to begin. What it reads is right."""
        found = read_committed(reader, broker.bootstrap, place, len(expected))
        assert found == expected[: len(found)]
        return len(found) == len(expected)

    eventually(has_all, f"{reader} reads all of it")


def read_committed(reader: str, bootstrap: str, topic: str, count: int) -> list[str]:
    if reader == "java":
        arguments = ["--topic", topic, "--from-beginning", "--isolation-level", "read_committed"]
        result = Tools("3.9.1", bootstrap).run("console-consumer", *arguments, "--timeout-ms", "4000", check=False)
        return result.lines
    command = [sys.executable, str(WORKERS / "committed_reader.py"), reader, bootstrap, topic, str(count)]
    found: list[str] = json.loads(run_process(command).out)
    return found


def test_a_reader_never_sees_what_is_not_committed(broker: Broker, topic: MakeTopic, begin: Begin) -> None:
    """It reads while transactions come and go."""
    place = topic()
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "none", "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "enable.auto.commit": False, "log_level": 0})
    consumer.assign([TopicPartition(place, 0, 0)])
    seen: list[str] = []
    is_over = threading.Event()

    def read() -> None:
        while not is_over.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                seen.append(message.value().decode())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        producer = begin("confluent")
        expected = []
        for n in range(60):
            producer.transact(place, *(f"{n} {part}" for part in range(3)), commit=n % 2 == 0)
            expected += [f"{n} {part}" for part in range(3)] if n % 2 == 0 else []
        eventually(lambda: len(seen) >= len(expected), "all committed records")
    finally:
        is_over.set()
        reader.join()
        consumer.close()
    assert seen == expected


# --- fencing


@pytest.mark.parametrize("library", parameters(LIBRARIES, wide=OTHERS))
def test_a_zombie_is_fenced(broker: Broker, topic: MakeTopic, begin: Begin, library: str) -> None:
    place = topic()
    zombie = begin(library)
    zombie.do("begin")
    zombie.do("produce", place, 0, ["of the zombie"])
    successor = begin(library)
    successor.transact(place, "of its successor")
    with pytest.raises(Failed):
        zombie.do("commit")
    eventually(lambda: visible(broker.bootstrap, place) == ["of its successor"], "the successor's record alone")


# --- offsets


@pytest.mark.parametrize("library", WITH_OFFSETS)
def test_offsets_are_committed_with_the_transaction(
    broker: Broker, topic: MakeTopic, begin: Begin, name: str, library: str
) -> None:
    place = topic(2)
    producer = begin(library)
    for offset, end, expected in ((3, "commit", 3), (5, "abort", 3), (8, "commit", 8)):
        producer.do("begin")
        producer.do("produce", place, 0, ["x"])
        producer.do("offsets", name, [(place, 1, offset)])
        producer.do(end)
        places = [(place, 0), (place, 1)]
        eventually(
            lambda: quick.committed(broker.bootstrap, name, places) == [OFFSET_INVALID, expected],
            f"offset {expected}",
        )


@pytest.mark.wide
def test_franz_copies_with_its_offsets(broker: Broker, topic: MakeTopic, begin: Begin, name: str) -> None:
    source, target = topic(1, "-source"), topic(1, "-target")
    values = [str(n) for n in range(20)]
    quick.fill(broker.bootstrap, source, values)
    copier = begin(FRANZ)
    for count in (5, 15):
        copier.do("copy", source, target, name, count)
    eventually(lambda: visible(broker.bootstrap, target) == values, "all records once and in order")
    assert quick.committed(broker.bootstrap, name, [(source, 0)]) == [len(values)]


@pytest.mark.parametrize("mode", ["assigned", "group"])
def test_kafkas_message_copier(broker: Broker, topic: MakeTopic, name: str, mode: str) -> None:
    """Consume, transform, produce: every record once, whatever is aborted on the way."""
    source, target = topic(1, "-source"), topic(1, "-target")
    values = [str(n) for n in range(600)]
    quick.fill(broker.bootstrap, source, values)
    options = ["--enable-random-aborts", "--transaction-size", "50", "--consumer-group", name]
    if mode == "group":
        options += ["--group-mode", "--use-group-metadata"]
    Tools("3.9.1", broker.bootstrap).run(
        "message-copier",
        *("--input-topic", source, "--input-partition", "0", "--output-topic", target, "--transactional-id", name),
        *options,
        deadline_s=120,
    )
    eventually(lambda: visible(broker.bootstrap, target) == values, "all records once and in order")
    assert quick.committed(broker.bootstrap, name, [(source, 0)]) == [len(values)]


# --- restarts


@pytest.mark.parametrize("library", WITH_OFFSETS)
@pytest.mark.parametrize("how", [pytest.param("stopped", marks=pytest.mark.wide), "killed"])
def test_an_open_transaction_survives_a_restart(own_broker: StartBroker, begin: Begin, library: str, how: str) -> None:
    broker = own_broker()
    quick.create_topic(broker.bootstrap, "t")
    # librdkafka waits forever for a group's coordinator that is only just being made, as Kafka does it
    quick.committed(broker.bootstrap, "g", [("t", 0)])
    producer = begin(library, bootstrap=broker.bootstrap)
    producer.do("begin")
    producer.do("produce", "t", 0, ["before"])
    producer.do("offsets", "g", [("t", 0, 4)])
    if how == "killed":
        broker.kill()
        broker.start()
    else:
        broker.restart()
    assert visible(broker.bootstrap, "t") == []
    producer.do("produce", "t", 0, ["after"])
    producer.do("commit")
    eventually(lambda: visible(broker.bootstrap, "t") == ["before", "after"], "both records")
    eventually(lambda: quick.committed(broker.bootstrap, "g", [("t", 0)]) == [4], "the offset")
    producer.transact("t", "next")
    eventually(lambda: visible(broker.bootstrap, "t") == ["before", "after", "next"], "the next transaction")


# --- time


def test_a_transaction_left_open_is_aborted(own_broker: StartBroker, begin: Begin) -> None:
    broker = own_broker(transaction_abort_timed_out_transaction_cleanup_interval_ms=100)
    quick.create_topic(broker.bootstrap, "t")
    left, other = (
        begin("confluent", bootstrap=broker.bootstrap, transactional_id="left", timeout_ms=1000),
        begin("confluent", bootstrap=broker.bootstrap, transactional_id="other"),
    )
    left.do("begin")
    left.do("produce", "t", 0, ["forgotten"])
    other.transact("t", "kept")
    eventually(lambda: visible(broker.bootstrap, "t") == ["kept"], "the end of the one left open")
    with pytest.raises(Failed):
        left.do("commit")


# --- kafka-transactions


def rows(output: str) -> list[dict[str, str]]:
    """A table of the tool as dicts."""
    head, *lines = [line.split("\t") for line in output.splitlines() if line.strip()]
    names = [name.strip() for name in head]
    return [dict(zip(names, (cell.strip() for cell in line), strict=False)) for line in lines]


@pytest.mark.parametrize("version", VERSIONS)
def test_kafka_transactions_lists_and_describes(
    broker: Broker, topic: MakeTopic, begin: Begin, name: str, version: str
) -> None:
    place = topic(2)
    tools = Tools(version, broker.bootstrap)
    producer = begin("confluent")
    producer.do("begin")
    producer.do("produce", place, 1, ["a"])

    listed = {row["TransactionalId"]: row for row in rows(tools.run("transactions", "list").out)}
    assert listed[name]["TransactionState"] == "Ongoing"
    (described,) = rows(tools.run("transactions", "describe", "--transactional-id", name).out)
    assert described["TransactionState"] == "Ongoing"
    assert described["TopicPartitions"] == f"{place}-1"
    assert described["TransactionTimeoutMs"] == "60000"
    where = ("--topic", place, "--partition", "1")
    (active,) = rows(tools.run("transactions", "describe-producers", *where).out)
    assert active["ProducerId"] == described["ProducerId"]
    assert (active["LastSequence"], active["CurrentTransactionStartOffset"]) == ("0", "0")

    producer.do("commit")
    eventually(
        lambda: (
            rows(tools.run("transactions", "describe-producers", *where).out)[0]["CurrentTransactionStartOffset"]
            == "None"
        ),
        "the end of the transaction in the partition",
    )
    (described,) = rows(tools.run("transactions", "describe", "--transactional-id", name).out)
    assert (described["TransactionState"], described.get("TopicPartitions", "")) == ("CompleteCommit", "")


@pytest.mark.wide
@pytest.mark.parametrize("version", VERSIONS)
def test_a_hanging_transaction_is_found_and_aborted(own_broker: StartBroker, version: str) -> None:
    """A batch of a transaction that no coordinator knows of: before KIP-890 a late retry could leave one."""
    broker = own_broker(transaction_partition_verification_enable="false", log_retention_ms=-1)
    quick.create_topic(broker.bootstrap, "t")
    tools = Tools(version, broker.bootstrap)
    write_hanging(broker, "t")
    quick.fill(broker.bootstrap, "t", ["held back"])
    assert visible(broker.bootstrap, "t") == []
    found = rows(tools.run("transactions", "find-hanging", "--broker-id", "0").out)
    assert [(row["Topic"], row["Partition"], row["StartOffset"]) for row in found] == [("t", "0", "0")]
    tools.run("transactions", "abort", "--topic", "t", "--partition", "0", "--start-offset", "0")
    eventually(lambda: visible(broker.bootstrap, "t") == ["held back"], "what was held back")
    assert rows(tools.run("transactions", "find-hanging", "--topic", "t").out) == []


def write_hanging(broker: Broker, topic: str) -> None:
    """Written long ago, by a producer that no one knows."""
    records = build_batch(
        [(None, b"hanging", 1_000_000_000_000)],
        BatchFields(producer_id=4711, producer_epoch=0, base_sequence=0, is_transactional=True),
    )
    data = ProduceRequest.PartitionProduceData(index=0, records=bytes(records))
    topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=[data])]
    request = ProduceRequest(transactional_id="no-one", acks=-1, timeout_ms=5000, topic_data=topics)
    with Raw(("127.0.0.1", broker.port)) as connection:
        response = connection.ask(request, 9)
    assert response.responses[0].partition_responses[0].error_code == 0


# --- the log


def test_the_transaction_log_as_kafka_reads_it(own_broker: StartBroker, begin: Begin) -> None:
    broker = own_broker(transaction_state_log_num_partitions=1)
    quick.create_topic(broker.bootstrap, "t", 2)
    producer = begin("confluent", bootstrap=broker.bootstrap, transactional_id="x")
    producer.do("begin")
    producer.do("produce", "t", 0, ["a"])
    producer.do("produce", "t", 1, ["b"])
    producer.do("commit")
    producer.transact("t", "c", commit=False)
    eventually(lambda: visible(broker.bootstrap, "t") == ["a"], "the transactions' ends")
    broker.stop()
    file = broker.data_dir / "__transaction_state-0" / "00000000000000000000.log"
    dumped = Tools("3.9.1", "unused").run("dump-log", "--transaction-log-decoder", "--files", str(file)).out
    found = re.findall(r"transactionalId=x payload: .*?state=(\w+),partitions=\[([^\]]*)\]", dumped)
    states = [(state, sorted(filter(None, partitions.split(",")))) for state, partitions in found]
    assert states[0] == ("Empty", [])
    assert {partitions[0] for _, partitions in states if partitions} <= {"t-0", "t-1"}
    committed = states.index(("PrepareCommit", ["t-0", "t-1"]))
    assert [state for state, _ in states[committed:]] == [
        "PrepareCommit",
        "CompleteCommit",
        "Ongoing",
        "PrepareAbort",
        "CompleteAbort",
    ]
    assert "isvalid: false" not in dumped
