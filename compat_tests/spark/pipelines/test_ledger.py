"""The pipeline `ledger`: balances equal to a plain sum, while transactions are aborted and producers die."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from compat_tests.conftest import MakeTopic, StartBroker
from compat_tests.spark.pipelines.activity.test_pipeline import committed
from compat_tests.spark.pipelines.surviving import check_changed_topics, command, heartbeat, survive
from compat_tests.support.quick import DEADLINE_S, QUIET, create_topic, fill
from compat_tests.support.services import Broker
from kpybroker.pipelines.ledger.generator import NO_ENTRIES, START, Transfer, transfers, write
from kpybroker.pipelines.ledger.pipeline import LEDGER, LedgerOptions
from kpybroker.pipelines.runtime.options import Options, Run, result_topic
from kpybroker.pipelines.runtime.run import run

AMOUNT_MAX = 10**18 - 1


@pytest.fixture
def options(broker: Broker, topic: MakeTopic, tmp_path: Path, name: str) -> Options[LedgerOptions]:
    return options_for(broker, topic(partitions=3), tmp_path, name)


def options_for(broker: Broker, topic: str, place: Path, name: str) -> Options[LedgerOptions]:
    return Options(
        broker.bootstrap,
        (topic,),
        LedgerOptions(),
        checkpoint=str(place / "checkpoint"),
        output=(str(place / "results"), f"topics:{name}-out"),
    )


def balances(broker: Broker, options: Options[LedgerOptions]) -> dict[str, int]:
    """The last balance of each account: all of one are in one partition, in order."""
    found = {}
    for message in committed(broker.bootstrap, f"{options.prefixes[0]}-balances"):
        row = json.loads(message.value())
        assert message.key().decode() == row["account"]
        found[row["account"]] = row["balance"]
    return found


def test_balances_are_the_sum_of_what_was_committed(
    spark: SparkSession, broker: Broker, options: Options[LedgerOptions], tmp_path: Path
) -> None:
    """Three producers, one of which dies in a transaction that another one ends; then a replay from offset 0."""
    (topic,) = options.input
    expected: Counter[str] = Counter()
    broken = 0
    given = list(transfers(7, 150))
    for turn, prefix in enumerate(("north", "south", "north")):
        part = given[turn * 50 : turn * 50 + 50]
        written = write(broker.bootstrap, topic, prefix, part, seed=turn)
        assert written.committed + written.aborted == len(part)
        expected.update(written.balances)
        broken += written.broken
        if turn == 0:
            dead = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "north", **QUIET})
            dead.init_transactions(DEADLINE_S)
            dead.begin_transaction()
            for account, value in Transfer(-1, START, {"account-0000": 10**9, "account-0001": -(10**9)}).entries("x"):
                dead.produce(topic, value, account)
            assert dead.flush(DEADLINE_S) == 0
        assert run(spark, LEDGER, options).rows["violations"] == 0
    heartbeat(broker.bootstrap, topic)
    assert run(spark, LEDGER, options).rows["violations"] == 0

    assert sum(expected.values()) == 0
    assert balances(broker, options) == expected
    on_disk = spark.read.parquet(f"{options.directories[0]}/balances")
    last = on_disk.groupBy("account").agg(F.max_by("balance", "batch").alias("balance"))
    assert {row.account: row.balance for row in last.collect()} == expected

    again = replace(options, run=Run.WHOLE, checkpoint=None, output=(str(tmp_path / "replayed"),))
    report = run(spark, LEDGER, again)
    rows = spark.read.parquet(f"{tmp_path}/replayed/balances").collect()
    assert {row.account: row.balance for row in rows} == expected
    assert (report.rows["violations"], report.broken) == (0, broken)


@pytest.mark.wide
def test_balances_are_right_and_no_row_is_there_twice_after_driver_and_broker_were_killed(
    spark: SparkSession, own_broker: StartBroker, tmp_path: Path
) -> None:
    """A batch that is written again would repeat the number of entries of an account, and one that is lost would be
    missing in its last row."""
    broker = own_broker()
    create_topic(broker.bootstrap, "entries", 3)
    options = replace(options_for(broker, "entries", tmp_path, "killed"), max_offsets=150)
    written = write(broker.bootstrap, "entries", "bank", transfers(8, 400), seed=8)
    expected = written.balances
    halves = [Transfer(1000 + n, START, {f"account-{n:04d}": n + 1}) for n in range(20)]
    write_plainly(broker, "entries", halves)
    for half in halves:
        expected.update(half.amounts)
    heartbeat(broker.bootstrap, "entries", 3)
    survive(broker, command(LEDGER, options), tmp_path, ["balances", "dead_letters", "violations"])
    run(spark, LEDGER, options)

    assert balances(broker, options) == expected
    for result, row in ROWS.items():
        topic = result_topic(options.prefixes[0], result)
        in_topic = Counter(row(json.loads(message.value())) for message in committed(broker.bootstrap, topic))
        on_disk = spark.read.parquet(f"{options.directories[0]}/{result}").collect()
        assert in_topic == Counter(row(one.asDict()) for one in on_disk)
        assert set(in_topic.values()) == {1}
        if result == "violations":
            assert in_topic == Counter((f"t-{half.number}", *half.amounts.values(), 1) for half in halves)
    dead = committed(broker.bootstrap, result_topic(options.prefixes[0], "dead_letters"))
    assert len(dead) == written.broken > 0


ROWS: dict[str, Callable[[dict[str, Any]], tuple[object, ...]]] = {
    # the last row of an account is that with the most entries
    "balances": lambda row: (row["account"], row["entries"]),
    "violations": lambda row: (row["transfer"], row["sum"], row["entries"]),
}


@pytest.mark.wide
def test_partitions_that_are_added_are_read_and_a_topic_made_again_is_refused(
    spark: SparkSession, broker: Broker, options: Options[LedgerOptions]
) -> None:
    def write_to(partition: int) -> int:
        values = [value.decode() for one in transfers(partition, 20) for _, value in one.entries(str(partition))]
        fill(broker.bootstrap, options.input[0], values, partition)
        return len(values)

    check_changed_topics(spark, broker, LEDGER, options, write_to)


def write_plainly(broker: Broker, topic: str, given: list[Transfer]) -> None:
    """Entries without a transaction."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
    for transfer in given:
        for account, value in transfer.entries("t"):
            producer.produce(topic, value, account)
    assert producer.flush(DEADLINE_S) == 0


def test_a_transfer_that_does_not_sum_to_zero_is_found(
    spark: SparkSession, broker: Broker, options: Options[LedgerOptions]
) -> None:
    """As where a program writes without a transaction, and dies between two entries. Sums have more than 64 bits, and
    what is not an entry does not end the run."""
    (topic,) = options.input
    whole = Transfer(1, START, {"a": 5, "b": -5})
    half = Transfer(2, START, {"a": 700})
    large = [Transfer(number, START, {"c": AMOUNT_MAX, "d": -AMOUNT_MAX}) for number in range(3, 15)]
    write_plainly(broker, topic, [whole, half, *large])
    fill(broker.bootstrap, topic, [value.decode() for value in NO_ENTRIES])
    heartbeat(broker.bootstrap, topic)
    assert run(spark, LEDGER, options).broken == len(NO_ENTRIES)
    (row,) = spark.read.parquet(f"{options.directories[0]}/violations").collect()
    assert (row.transfer, row["sum"], row.entries) == ("t-2", 700, 1)
    assert balances(broker, options) == {"a": 705, "b": -5, "c": 12 * AMOUNT_MAX, "d": -12 * AMOUNT_MAX}
