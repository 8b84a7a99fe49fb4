"""Transactions of version 2 (KIP-890, part 2) with stock clients: which of them use it, when, and what is read then.

The Java client of Kafka 4 and franz-go do, as soon as `transaction.version` 2 is finalized. What they send is looked up
in the broker, which remembers the requests, and in the log of the coordinator.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import OFFSET_INVALID

from compat_tests.eos.readers import read_to_end
from compat_tests.eos.transaction_log import completed
from compat_tests.overload.raw import Raw
from compat_tests.support import quick
from compat_tests.support.tools import Tools
from compat_tests.support.transactional import (
    FRANZ,
    LIBRARIES,
    OF_VERSION_2,
    Failed,
    Transactional,
    parameters,
    visible,
)
from compat_tests.support.waiting import eventually
from kpybroker.testing import ApiName, Broker, Cluster
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.update_features import UpdateFeaturesRequest

V1_LIBRARIES = ("java-3.9.1", "confluent")
TV2 = "java-4.3.1"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
ADDING: Final[tuple[ApiName, ...]] = ("AddPartitionsToTxn", "AddOffsetsToTxn")
ADDS_FROM: Final[dict[ApiName, int]] = {"Produce": 12, "EndTxn": 5, "TxnOffsetCommit": 5}
"""By API its first version of transactions of version 2."""

Begin = Callable[..., Transactional]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(config={"transaction.state.log.num.partitions": 1}, data_dir=tmp_path / "data") as one:
        yield one


@pytest.fixture
def begin(broker: Broker) -> Iterator[Begin]:
    """`begin(library)`: a producer with the transactional id `x` that has called init."""
    started: list[Transactional] = []

    def start(library: str, bootstrap: str | None = None) -> Transactional:
        one = Transactional(library, bootstrap or broker.bootstrap_servers, "x")
        started.append(one)
        one.do("init")
        return one

    yield start
    for one in started:
        one.kill()


def asked(broker: Broker | Cluster, *apis: ApiName) -> Counter[tuple[ApiName | int, int]]:
    """How many requests there were, by API and version."""
    return Counter((one.api, one.version) for api in apis for one in broker.requests(api, limit=10_000))


def set_level(broker: Broker | Cluster, level: int, *, falls: bool) -> None:
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="transaction.version", max_version_level=level, upgrade_type=2 if falls else 1
    )
    addresses = [("127.0.0.1", int(one.rpartition(":")[2])) for one in broker.bootstrap_servers.split(",")]

    def is_set() -> bool:
        for address in addresses:
            with contextlib.suppress(OSError), Raw(address) as connection:
                response = connection.ask(UpdateFeaturesRequest(timeout_ms=30_000, feature_updates=[update]), 2)
                if response.error_code not in (0, ErrorCode.NOT_CONTROLLER):
                    raise ValueError(response.error_message)
                if response.error_code == 0:
                    return True
        return False

    eventually(is_set, f"transaction.version={level}")


def committed(broker: Broker, expected: list[str], topic: str = "t") -> None:
    eventually(lambda: visible(broker.bootstrap_servers, topic) == expected, f"{expected[-3:]} in {topic}")


def test_java_of_kafka_4_adds_by_writing_and_bumps_at_every_end(broker: Broker, begin: Begin) -> None:
    bootstrap = broker.bootstrap_servers
    quick.create_topic(bootstrap, "t", 2)
    producer = begin(TV2)
    epoch = broker.transactions()["x"].producer_epoch
    expected = []
    for n in range(10):
        producer.do("begin")
        producer.do("produce", "t", 0, [f"{n} a", f"{n} b"])
        producer.do("produce", "t", 1, [f"{n} c"])
        producer.do("offsets", "g", [("t", 1, n)])
        producer.do("commit" if n % 3 else "abort")
        expected += [f"{n} a", f"{n} b"] if n % 3 else []
    committed(broker, expected)
    eventually(lambda: quick.committed(bootstrap, "g", [("t", 1)]) == [8], "the offset of the last that was committed")
    assert broker.transactions()["x"].producer_epoch == epoch + 10
    assert asked(broker, *ADDING) == {}
    found = asked(broker, "Produce", "EndTxn", "TxnOffsetCommit", "InitProducerId")
    assert set(found) == {("Produce", 13), ("EndTxn", 5), ("TxnOffsetCommit", 5), ("InitProducerId", 5)}
    assert (found["EndTxn", 5], found["InitProducerId", 5]) == (10, 1)


@pytest.mark.parametrize("library", parameters(LIBRARIES, wide=["kafka-python", "aiokafka"]))
@pytest.mark.parametrize("level", [0, pytest.param(1, marks=pytest.mark.wide), 2])
def test_each_client_at_each_level(broker: Broker, begin: Begin, level: int, library: str) -> None:
    """In the version that both know: what is committed is read, what is aborted is in the log and is not."""
    bootstrap = broker.bootstrap_servers
    if level < 2:
        set_level(broker, level, falls=True)
    quick.create_topic(bootstrap, "t", 2)
    producer = begin(library)
    epoch = broker.transactions()["x"].producer_epoch
    written: dict[int, list[str]] = {0: [], 1: []}
    for n in range(6):
        producer.do("begin")
        for partition, values in written.items():
            producer.do("produce", "t", partition, [f"{n} a", f"{n} b"])
            values += [f"{n} a", f"{n} b"]
        if library != FRANZ:
            producer.do("offsets", "g", [("t", 1, n)])
        producer.do("commit" if n % 3 else "abort")
    is_second = level == 2 and library in OF_VERSION_2
    eventually(lambda: completed(bootstrap) == {"x": [2 if is_second else 0] * 6}, f"six of {library} at {level}")
    for isolation, shown in (("read_uncommitted", "012345"), ("read_committed", "1245")):
        found = read_to_end(bootstrap, "t", written, isolation)
        read = {partition: [one.value for one in stored] for partition, stored in found.items()}
        assert read == {
            partition: [value for value in some if value[0] in shown] for partition, some in written.items()
        }
    if library != FRANZ:
        eventually(lambda: quick.committed(bootstrap, "g", [("t", 1)]) == [5], "the offset that was committed last")
    assert broker.transactions()["x"].producer_epoch == epoch + (6 if is_second else 0)
    assert asked(broker, "EndTxn").total() == 6
    used = {(api, version >= first) for api, first in ADDS_FROM.items() for _, version in asked(broker, api)}
    assert {uses for _, uses in used} == {is_second}, used
    assert bool(asked(broker, *ADDING)) is not is_second


@pytest.mark.wide
@pytest.mark.parametrize("level", [0, 2])
def test_franz_copies_at_each_level(broker: Broker, begin: Begin, level: int) -> None:
    """Offsets of its group are in the transaction."""
    bootstrap = broker.bootstrap_servers
    if level < 2:
        set_level(broker, level, falls=True)
    values = [str(n) for n in range(20)]
    quick.create_topic(bootstrap, "source")
    quick.create_topic(bootstrap, "t")
    quick.fill(bootstrap, "source", values)
    copier = begin(FRANZ)
    for count in (5, 15):
        copier.do("copy", "source", "t", "g", count)
    committed(broker, values)
    assert quick.committed(bootstrap, "g", [("source", 0)]) == [len(values)]
    eventually(lambda: completed(bootstrap) == {"x": [level, level]}, f"two at level {level}")
    assert {version >= 5 for _, version in asked(broker, "TxnOffsetCommit")} == {level == 2}
    assert bool(asked(broker, "AddOffsetsToTxn")) is (level < 2)


@pytest.mark.wide
@pytest.mark.parametrize("other", parameters(["confluent", FRANZ]))
def test_clients_of_both_versions_in_turn_on_one_transactional_id(broker: Broker, begin: Begin, other: str) -> None:
    """Each fences the one before, whose open transaction is never seen."""
    quick.create_topic(broker.bootstrap_servers, "t")
    expected = []
    before: Transactional | None = None
    for n, library in enumerate([*V1_LIBRARIES, TV2, *V1_LIBRARIES, other, TV2, TV2, other, "java-3.9.1"]):
        producer = begin(library)
        if before is not None:
            with pytest.raises(Failed):
                before.do("commit")
        for end in ("a", "b"):
            producer.transact("t", f"{n} {end}")
            expected.append(f"{n} {end}")
        producer.transact("t", f"{n} dropped", commit=False)
        producer.do("begin")
        producer.do("produce", "t", 0, [f"{n} left open"])
        before = producer
        eventually(
            lambda: visible(broker.bootstrap_servers, "t") == expected,
            f"what {library} has committed",
        )


@pytest.mark.parametrize("library", parameters(OF_VERSION_2))
def test_in_the_place_of_kafka_3_9_clients_of_version_2_go_on_as_before(begin: Begin, library: str) -> None:
    with Broker(kafka_version="3.9") as broker:
        quick.create_topic(broker.bootstrap_servers, "t")
        begin(library, broker.bootstrap_servers).transact("t", "a")
        committed(broker, ["a"])
        assert sum(asked(broker, "AddPartitionsToTxn").values()) == 1
        assert set(asked(broker, "EndTxn", "Produce")) == {("EndTxn", 4), ("Produce", 11)}


def test_the_level_falls_and_rises_while_a_producer_works(broker: Broker, begin: Begin) -> None:
    """It learns of the level with its next connection, and changes between two transactions: what is open goes on as it
    began.
    """
    quick.create_topic(broker.bootstrap_servers, "t")
    producer = begin(TV2)
    expected = []
    for level, open_as, then in ((0, 5, 4), (2, 4, 5), (0, 5, 4)):
        broker.clear_requests()
        producer.do("begin")
        producer.do("produce", "t", 0, [f"{level} before"])
        set_level(broker, level, falls=level == 0)
        with broker.faults.disconnect("Produce", once=True):
            producer.do("produce", "t", 0, [f"{level} after"])
        producer.do("commit")
        assert set(asked(broker, "EndTxn")) == {("EndTxn", open_as)}
        broker.clear_requests()
        producer.transact("t", f"{level} dropped", commit=False)
        producer.transact("t", f"{level} then")
        assert set(asked(broker, "EndTxn")) == {("EndTxn", then)}
        assert bool(asked(broker, *ADDING)) is (then < 5)
        expected += [f"{level} {word}" for word in ("before", "after", "then")]
        committed(broker, expected)


@pytest.mark.wide
def test_franz_goes_on_in_version_2_until_it_starts_again(broker: Broker, begin: Begin) -> None:
    """A connection that hears of a lower level does not make it go back; what it sends is served."""
    quick.create_topic(broker.bootstrap_servers, "t")
    producer = begin(FRANZ)
    producer.transact("t", "before")
    set_level(broker, 0, falls=True)
    with broker.faults.disconnect("Produce", once=True):
        producer.transact("t", "after")
    producer.transact("t", "dropped", commit=False)
    begin(FRANZ).transact("t", "again")
    committed(broker, ["before", "after", "again"])
    assert asked(broker, "EndTxn") == {("EndTxn", 5): 3, ("EndTxn", 4): 1}


@pytest.mark.parametrize("library", parameters(["java-4.3.1", "java-3.9.1", "confluent", FRANZ], wide=["java-3.9.1"]))
def test_a_topic_is_made_again_between_transactions(broker: Broker, begin: Begin, library: str) -> None:
    """Each goes on in the new topic, whose id it has to learn; franz-go refuses to before it starts again. No group has
    anything committed there.
    """
    bootstrap = broker.bootstrap_servers
    quick.create_topic(bootstrap, "t")
    producer = begin(library)
    for topic in ("first", "second"):
        producer.do("begin")
        if (library, topic) == (FRANZ, "second"):
            with pytest.raises(Failed, match="UNKNOWN_TOPIC_ID"):
                producer.do("produce", "t", 0, ["lost"])
            producer = begin(FRANZ)
            producer.do("begin")
        producer.do("produce", "t", 0, [f"{topic} a", f"{topic} b"])
        if library != FRANZ:
            producer.do("offsets", "g", [("t", 0, 2)])
        producer.do("commit")
        committed(broker, [f"{topic} a", f"{topic} b"])
        if library != FRANZ:
            eventually(lambda: quick.committed(bootstrap, "g", [("t", 0)]) == [2], "the group's offset")
        if topic == "first":
            make_again(bootstrap)
            eventually(lambda: quick.committed(bootstrap, "g", [("t", 0)]) == [OFFSET_INVALID], "no offset")


def make_again(bootstrap: str) -> None:
    """The topic `t`, once it is gone."""
    admin = quick.admin_client(bootstrap)
    admin.delete_topics(["t"], operation_timeout=quick.DEADLINE_S)["t"].result(quick.DEADLINE_S)
    eventually(lambda: "t" not in admin.list_topics(timeout=quick.DEADLINE_S).topics, "t is gone")
    quick.create_topic(bootstrap, "t")


@pytest.mark.parametrize("commit", [True, pytest.param(False, marks=pytest.mark.wide)])
def test_an_end_whose_response_is_lost_is_repeated(broker: Broker, begin: Begin, commit: bool) -> None:
    """The request is the same, with the epoch of before: the coordinator knows that it has done that."""
    quick.create_topic(broker.bootstrap_servers, "t")
    producer = begin(TV2)
    expected = []
    for n in range(3):
        with broker.faults.disconnect("EndTxn", "after", once=True):
            producer.transact("t", f"{n}", commit=commit)
        expected += [f"{n}"] if commit else []
    producer.transact("t", "last")
    committed(broker, [*expected, "last"])
    assert broker.transactions()["x"].producer_epoch == 4
    assert set(asked(broker, "InitProducerId").values()) == {1}


@pytest.mark.parametrize(
    "levels",
    [pytest.param((2,), id="level 2", marks=pytest.mark.wide), pytest.param((2, 0, 1, 2, 0), id="levels that change")],
)
def test_coordinators_and_leaders_die_in_transactions(begin: Begin, levels: tuple[int, ...]) -> None:
    """Three brokers, each killed in turn between what is written and its end: leaders add at a coordinator elsewhere,
    another coordinator carries the decision out, and each end bumps the epoch once. Where the level changes, the log
    has values of both versions, and the producer changes when it has connected again.
    """
    with Cluster(3, config={"transaction.state.log.num.partitions": 3}) as cluster:
        bootstrap = cluster.bootstrap_servers
        quick.create_topic(bootstrap, "t", 3, replicas=3, min_insync_replicas=2)
        producer = begin(TV2, bootstrap)
        epoch = cluster.transactions()["x"].producer_epoch
        expected: dict[int, list[str]] = {0: [], 1: [], 2: []}
        for n in range(9):
            producer.do("begin")
            for partition in expected:
                producer.do("produce", "t", partition, [f"{n} before"])
            if len(levels) > 1:
                level = levels[n % len(levels)]
                set_level(cluster, level, falls=level == 0)
            cluster[n % 3].kill()
            for partition in expected:
                producer.do("produce", "t", partition, [f"{n} after"])
            producer.do("commit" if n % 4 else "abort")
            cluster[n % 3].start()
            if n % 4:
                for values in expected.values():
                    values += [f"{n} before", f"{n} after"]
        producer.transact("t", "last")
        expected[0].append("last")
        for partition, values in expected.items():
            eventually(lambda: visible(bootstrap, "t", partition) == values, f"{values} in t-{partition}")
        versions = {version for _, version in asked(cluster, "EndTxn")}
        added = asked(cluster, "AddPartitionsToTxn")
        if levels == (2,):
            assert cluster.transactions()["x"].producer_epoch == epoch + 10
            assert set(added) == {("AddPartitionsToTxn", 4)}, "between brokers alone"
            assert versions == {5}
        else:
            assert versions == {4, 5}


def test_the_log_as_kafka_4_reads_it(tmp_path: Path) -> None:
    """Values of version 1, each with the version of its transaction."""
    with Broker(config={"transaction.state.log.num.partitions": 1}, data_dir=tmp_path / "data") as broker:
        quick.create_topic(broker.bootstrap_servers, "t")
        producer = Transactional(TV2, broker.bootstrap_servers, "x")
        try:
            producer.do("init")
            producer.transact("t", "a")
            producer.transact("t", "b", commit=False)
            committed(broker, ["a"])
            eventually(lambda: broker.transactions()["x"].state == "CompleteAbort", "the end of the second")
        finally:
            producer.kill()
    (file,) = tmp_path.glob("data/**/__transaction_state-0/00000000000000000000.log")
    dumped = Tools("4.x", "unused").run_main(DUMP, "--transaction-log-decoder", "--files", str(file)).out
    fields = ("producerEpoch", "transactionStatus", "clientTransactionVersion")
    rows = [
        tuple(int(found.group(1)) if (found := re.search(rf'"{field}":(-?\d+)', line)) else None for field in fields)
        for line in dumped.splitlines()
        if '"transactionalId":"x"' in line
    ]
    versions = set(re.findall(r'"version":"?(\d+)"?,"data":\{"producerId"', dumped))
    assert versions == {"1"}
    # (epoch, state, version): empty; open, decided and complete with a commit; the same with an abort
    assert [(epoch, state, version or 0) for epoch, state, version in rows] == [
        (0, 0, 0),
        (0, 1, 2),
        (1, 2, 2),
        (1, 4, 2),
        (1, 1, 2),
        (2, 3, 2),
        (2, 5, 2),
    ]
    assert "isvalid: false" not in dumped
