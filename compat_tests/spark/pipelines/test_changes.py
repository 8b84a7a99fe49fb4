"""The pipeline `changes` over Debezium's records from a generator: each version is the source after its transaction.

The real database and the real Debezium are in `compat_tests/spark/pipelines/test_changes_debezium.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions
from pyspark.sql import SparkSession

from compat_tests.conftest import StartBroker
from compat_tests.deps import jars_dir
from compat_tests.spark.pipelines.activity.test_pipeline import committed
from compat_tests.spark.pipelines.recounts.changes import newest, texts, typed
from compat_tests.spark.pipelines.surviving import die
from compat_tests.support.quick import DEADLINE_S, QUIET, admin_client, create_topic
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually
from kpybroker.pipelines.changes.pipeline import CHANGES, ChangesOptions
from kpybroker.pipelines.changes.versions import FOLDER, Versions, read_table
from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime.options import Options
from kpybroker.pipelines.runtime.run import run
from tests.pipelines.changes.generator import CUSTOMERS, ORDERS, TRANSACTIONS, Record, Shop, topic_of

TABLES = (ORDERS, CUSTOMERS)
Chosen = Options[ChangesOptions]


class Source:
    """Topics of this test's own, and what is written to them of a shop."""

    def __init__(self, broker: Broker, prefix: str, shop: Shop) -> None:
        self.broker, self.prefix, self.shop = broker, prefix, shop
        self.topics = [self.name(topic) for topic in (*map(topic_of, TABLES), TRANSACTIONS)]
        for topic in self.topics:
            create_topic(broker.bootstrap, topic, 1)

    def name(self, topic: str) -> str:
        return f"{self.prefix}.{topic}"

    def write(self, records: Iterable[Record]) -> list[Record]:
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "linger.ms": 5, **QUIET})
        given = list(records)
        for record in given:
            producer.produce(self.name(record.topic), record.value, record.key, partition=0)
        assert producer.flush(DEADLINE_S) == 0
        return given

    def transact(self, count: int) -> list[Record]:
        return [record for _ in range(count) for record in self.write(self.shop.transaction())]

    def options(self, directory: Path, **own: Any) -> Chosen:
        chosen = ChangesOptions(transactions=self.topics[-1], buckets=3, versions=50)
        output = (str(directory / "results"), f"topics:{self.prefix}-out")
        checkpoint = str(directory / "checkpoint")
        return Options(
            self.broker.bootstrap, tuple(self.topics), replace(chosen, **own), checkpoint=checkpoint, output=output
        )


def same(spark: SparkSession, options: Chosen, shop: Shop) -> list[int]:
    """Compare each version that is kept with the source after its transaction; the transactions."""
    (directory,) = options.directories
    versions = Versions(spark, f"{directory}/{FOLDER}")
    as_read = typed if shop.schemas else texts
    first = min(shop.history)
    found = []
    for number in versions.numbers():
        version = versions.load(number)
        if not version.tables:
            continue
        transaction = version.transaction or first
        for table in TABLES:
            rows = {int(row.id): row.asDict() for row in read_table(spark, directory, table, number).collect()}
            assert rows == as_read(shop.history[transaction][table]), (number, table)
        found.append(transaction)
    return found


@pytest.fixture
def source(broker: Broker, name: str) -> Source:
    return Source(broker, name, Shop(seed=3))


def test_each_version_is_the_source_after_its_transaction(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    """Deletes, other keys, changed columns, a truncate, half a transaction, repeats, broken records."""
    shop, options = source.shop, source.options(tmp_path)
    source.write(shop.snapshot(10))
    before = source.transact(12)
    half = list(shop.transaction())
    source.write(half[:-1])
    assert run(spark, CHANGES, options).broken == 0
    waits = shop.tx
    shop.add_column(True)
    shop.widen_column()
    # the source was started again and repeats what it is not sure of; then there are records of others
    source.write([half[-1], *before[-9:], *half])
    source.transact(8)
    source.write([Record(topic_of(ORDERS), key, value) for key, value in BROKEN])
    shop.drop_column()
    source.write(shop.transaction(truncate=CUSTOMERS))
    source.transact(8)
    report = run(spark, CHANGES, options)
    assert report.broken == len(BROKEN)
    assert same(spark, options, shop) == [waits - 1, shop.tx]
    in_topic = newest(committed(source.broker.bootstrap, f"{source.prefix}-out-rows"))
    for table in TABLES:
        assert in_topic[table].keys() == shop.tables[table].keys()
    amounts = {key: row["amount"] for key, row in in_topic[ORDERS].items()}
    assert amounts == {key: float(row["amount"]) for key, row in shop.tables[ORDERS].items()}


NO_SOURCE = {"op": "c", "after": {"id": 1}}
PLACED = {"schema": "public", "table": "orders", "lsn": 9, "txId": 1}
BROKEN: Sequence[tuple[bytes | None, bytes]] = (
    (b'{"id":1}', b"{"),
    (b'{"id":1}', b"\xff\xfe"),
    (b'{"id":1}', b"[1]"),
    (b'{"id":1}', json.dumps(NO_SOURCE).encode()),
    (None, json.dumps({**NO_SOURCE, "source": PLACED}).encode()),
    (b'{"id":1}', json.dumps({"op": "u", "after": None, "source": PLACED}).encode()),
    (b'{"id":1}', json.dumps({**NO_SOURCE, "op": "x", "source": PLACED}).encode()),
    (b'{"id":1}', json.dumps({"status": "END", "id": "soon"}).encode()),
    *(
        (b'{"id":1}', json.dumps({"schema": {"fields": [form]}, "payload": {**NO_SOURCE, "source": PLACED}}).encode())
        for form in ({"field": "after", "fields": 5}, {"field": "after", "fields": [1]})
    ),
)


@pytest.mark.wide
def test_without_schemas_columns_are_texts(spark: SparkSession, broker: Broker, name: str, tmp_path: Path) -> None:
    """And without ends of transactions every change that was read is in the tables."""
    source = Source(broker, name, Shop(seed=5, schemas=False))
    shop, options = source.shop, source.options(tmp_path, transactions=None)
    source.write(shop.snapshot(10))
    source.transact(20)
    shop.add_column(True)
    source.transact(20)
    run(spark, CHANGES, options)
    shop.history = {0: shop.history[shop.tx]}
    source.write([])
    assert same(spark, options, shop) == [0]


@pytest.mark.wide
def test_columns_whose_names_differ_only_in_case(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    """PostgreSQL has such columns, and Spark too, with a setting that a pipeline makes."""

    def with_another_note(record: Record) -> Record:
        if record.topic != topic_of(ORDERS) or record.value is None:
            return record
        value = json.loads(record.value)
        row = value["schema"]["fields"][1]
        row["fields"] = [*row["fields"], {"type": "string", "optional": True, "field": "NOTE"}]
        value["payload"]["after"]["NOTE"] = "large"
        return replace(record, value=json.dumps(value).encode())

    shop, options = source.shop, source.options(tmp_path)
    source.write(map(with_another_note, shop.snapshot(5)))
    assert run(spark, CHANGES, options).broken == 0
    session = spark.newSession()
    session.conf.set("spark.sql.caseSensitive", "true")
    (directory,) = options.directories
    found = {row["id"]: (row["note"], row["NOTE"]) for row in read_table(session, directory, ORDERS).collect()}
    assert found == {key: (row["note"], "large") for key, row in shop.tables[ORDERS].items()}
    in_topic = newest(committed(source.broker.bootstrap, f"{source.prefix}-out-rows"))[ORDERS]
    assert {key: (row.get("note"), row["NOTE"]) for key, row in in_topic.items()} == found


@pytest.mark.wide
def test_versions_are_whole_after_driver_and_broker_were_killed(
    spark: SparkSession, own_broker: StartBroker, tmp_path: Path
) -> None:
    """The driver is killed when a version is there, and Spark has not noted its batch; so is the broker."""
    broker = own_broker()
    source = Source(broker, "killed", Shop(seed=8))
    shop, options = source.shop, source.options(tmp_path)
    source.write(shop.snapshot(10))
    source.transact(60)
    job = command(options, "--master", "local[2]", "--max-offsets", "60", "--run", "follow", "--every", "1 second")
    for turn in range(2):
        die(job, "written", "rows", tmp_path / f"driver-{turn}")
    die(job, "written", "rows", tmp_path / "broker", broker.kill)
    broker.start()
    run(spark, CHANGES, options)
    transactions = same(spark, options, shop)
    assert transactions == sorted(transactions)
    assert transactions[-1] == shop.tx
    in_topic = newest(committed(broker.bootstrap, "killed-out-rows"))
    assert {table: sorted(rows) for table, rows in in_topic.items()} == {
        table: sorted(rows) for table, rows in shop.tables.items()
    }
    assert len(written_once(broker, "killed-out-rows")) > 0


def written_once(broker: Broker, topic: str) -> set[tuple[bytes, bytes | None]]:
    """Key and value of each record, which are all different: a change has amounts or profiles of its own."""
    messages = [message for message in committed(broker.bootstrap, topic) if message.value() is not None]
    found = {(message.key(), message.value()) for message in messages}
    assert len(found) == len(messages)
    return found


def command(options: Chosen, *more: str) -> list[str]:
    """The arguments of the program."""
    return [
        *("run", "changes", "--input", ",".join(options.input)),
        *("--bootstrap-servers", options.bootstrap_servers, "--jars", str(jars_dir("spark-4.0.0"))),
        *("--transactions", str(options.own.transactions), "--buckets", str(options.own.buckets)),
        *("--versions", str(options.own.versions), "--checkpoint", str(options.checkpoint), *more),
        *(part for one in options.output for part in ("--output", one)),
    ]


@pytest.mark.wide
def test_old_versions_are_removed_and_a_reader_of_kept_ones_is_not_disturbed(
    spark: SparkSession, source: Source, tmp_path: Path
) -> None:
    shop, options = source.shop, source.options(tmp_path, versions=2)
    source.write(shop.snapshot(10))
    (directory,) = options.directories
    seen = []
    for _ in range(4):
        source.transact(3)
        run(spark, CHANGES, options)
        seen.append(shop.tx)
        assert same(spark, options, shop) == seen[-2:]
    versions = Versions(spark, f"{directory}/{FOLDER}")
    assert len(versions.numbers()) == 2
    kept = [table for number in versions.numbers() for table in versions.load(number).tables.values()]
    named = {one for table in kept for one in table.buckets.values()}
    there = {
        str(path.relative_to(versions.place)) for path in Path(versions.place).glob("public.*/version=*/_bucket=*")
    }
    assert there == named


@pytest.mark.wide
def test_more_partitions_are_read_and_a_topic_made_again_is_refused(
    spark: SparkSession, source: Source, tmp_path: Path
) -> None:
    shop, options = source.shop, source.options(tmp_path)
    source.write(shop.snapshot(5))
    source.transact(3)
    run(spark, CHANGES, options)
    admin = admin_client(source.broker.bootstrap)
    orders = source.topics[0]
    admin.create_partitions([NewPartitions(orders, 2)])[orders].result(DEADLINE_S)
    producer = Producer({"bootstrap.servers": source.broker.bootstrap, **QUIET})
    for record in [one for _ in range(5) for one in shop.transaction()]:
        # the new partition has the changes of some keys, as with a partitioner
        partition = sum(record.key or b"") % 2 if record.topic == topic_of(ORDERS) else 0
        producer.produce(source.name(record.topic), record.value, record.key, partition=partition)
    assert producer.flush(DEADLINE_S) == 0
    run(spark, CHANGES, options)
    assert same(spark, options, shop)[-1] == shop.tx
    admin.delete_topics([orders])[orders].result(DEADLINE_S)
    eventually(lambda: orders not in admin.list_topics(timeout=DEADLINE_S).topics, "the topic is gone")
    create_topic(source.broker.bootstrap, orders, 2)
    with pytest.raises(PipelineError, match=f"The topic {orders} was deleted and created again"):
        run(spark, CHANGES, options)
