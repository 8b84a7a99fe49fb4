"""The pipeline `ledger`: balances equal to a plain sum, while transactions are aborted and producers die."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from compat_tests.conftest import MakeTopic
from compat_tests.spark.test_pipeline import committed
from compat_tests.support.quick import DEADLINE_S, QUIET
from compat_tests.support.services import Broker
from kpybroker.pipelines.ledger.generator import START, Transfer, transfers, write
from kpybroker.pipelines.ledger.pipeline import LEDGER, LedgerOptions
from kpybroker.pipelines.runtime.options import Options, Run
from kpybroker.pipelines.runtime.run import run

END_OF_TIME = b"9999-01-01T00:00:00Z"


@pytest.fixture
def options(broker: Broker, topic: MakeTopic, tmp_path: Path, name: str) -> Options[LedgerOptions]:
    return Options(
        broker.bootstrap,
        (topic(partitions=3),),
        LedgerOptions(),
        checkpoint=str(tmp_path / "checkpoint"),
        output=(str(tmp_path / "results"), f"topics:{name}-out"),
    )


def heartbeat(broker: Broker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
    producer.produce(topic, END_OF_TIME, b"heartbeat", partition=0)
    assert producer.flush(DEADLINE_S) == 0


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
        found, wrong = write(broker.bootstrap, topic, prefix, part, seed=turn)
        expected.update(found)
        broken += wrong
        if turn == 0:
            dead = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "north", **QUIET})
            dead.init_transactions(DEADLINE_S)
            dead.begin_transaction()
            for account, value in Transfer(-1, START, {"account-0000": 10**9, "account-0001": -(10**9)}).entries("x"):
                dead.produce(topic, value, account)
            assert dead.flush(DEADLINE_S) == 0
        assert run(spark, LEDGER, options).rows["violations"] == 0
    heartbeat(broker, topic)
    run(spark, LEDGER, options)

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


def test_a_transfer_that_does_not_sum_to_zero_is_found(
    spark: SparkSession, broker: Broker, options: Options[LedgerOptions]
) -> None:
    """As where a program writes without a transaction, and dies between two entries."""
    (topic,) = options.input
    producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
    whole = Transfer(1, START, {"a": 5, "b": -5})
    half = Transfer(2, START, {"a": 700})
    for transfer in (whole, half):
        for account, value in transfer.entries("t"):
            producer.produce(topic, value, account)
    assert producer.flush(DEADLINE_S) == 0
    heartbeat(broker, topic)
    run(spark, LEDGER, options)
    (row,) = spark.read.parquet(f"{options.directories[0]}/violations").collect()
    assert (row.transfer, row["sum"], row.entries) == ("t-2", 700, 1)
    assert balances(broker, options) == {"a": 705, "b": -5}
