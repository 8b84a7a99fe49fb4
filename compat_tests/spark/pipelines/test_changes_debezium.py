"""The pipeline `changes` on PostgreSQL and Debezium: each version is what the source had after its transaction.

The source itself says what its tables are, after every transaction (`workload`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from pyspark.sql import SparkSession

from compat_tests.conftest import StartBroker
from compat_tests.connect.plugins import AVRO_CONVERTER, make_plugin_path
from compat_tests.connect.sources import JSON, POSTGRES_SOURCE, change_data, converters
from compat_tests.connect.topics import read_to_end
from compat_tests.connect.workers import Place, Worker
from compat_tests.registry.conftest import Instance
from compat_tests.spark.pipelines.surviving import die
from compat_tests.spark.pipelines.test_changes import command
from compat_tests.support.machine.postgres import Postgres
from compat_tests.support.quick import DEADLINE_S, QUIET
from compat_tests.support.services import Broker, started
from compat_tests.support.waiting import eventually
from kpybroker.pipelines.changes import workload
from kpybroker.pipelines.changes.pipeline import CHANGES, ChangesOptions
from kpybroker.pipelines.changes.versions import FOLDER, Versions, read_table
from kpybroker.pipelines.changes.workload import SNAPSHOT, TABLES, Workload
from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime.options import Options
from kpybroker.pipelines.runtime.run import run
from tests.support.network.ports import free_port

pytestmark = pytest.mark.wide
TRANSACTIONS = "shop.transaction"
TOPICS = (*(f"shop.{table}" for table in TABLES), TRANSACTIONS)
WAIT_S = 180.0
Decode = Callable[[Message], dict[str, object]]


class Capture:
    """A database that is changed, and Debezium on one worker."""

    def __init__(self, broker: Broker, postgres: Postgres, worker: Worker, seed: int) -> None:
        self.broker, self.postgres, self.worker = broker, postgres, worker
        self.shop = Workload(postgres.execute, seed)
        self.decode: Decode = lambda message: json.loads(message.value())["payload"]

    def begin(self, rows: int, **converter: str) -> None:
        self.shop.create(rows)
        settings = {"exactly_once_support": "required", "provide_transaction_metadata": "true"}
        settings |= {"skipped_operations": "none", "decimal_handling_mode": "precise"}
        settings["table_include_list"] = ",".join(TABLES)
        self.worker.configure("shop", POSTGRES_SOURCE, **change_data(self.postgres, **settings, **converter))
        eventually(lambda: all(read_to_end(self.broker.bootstrap, topic) for topic in TOPICS[:2]), "a snapshot", WAIT_S)

    def arrived(self) -> None:
        """Wait until the last transaction's end is in its topic."""

        def there() -> bool:
            said = [self.decode(message) for message in read_to_end(self.broker.bootstrap, TRANSACTIONS)]
            ends = [str(one["id"]) for one in said if one["status"] == "END"]
            return any(one.startswith(f"{self.shop.last}:") for one in ends)

        eventually(there, f"the end of transaction {self.shop.last}", WAIT_S)

    def compare(self, spark: SparkSession, directory: str) -> list[int]:
        """Each version with the source; the transactions."""
        versions = Versions(spark, f"{directory}/{FOLDER}")
        found = []
        for version in map(versions.load, versions.numbers()):
            if version.tables:
                transaction = version.transaction or SNAPSHOT
                for table in TABLES:
                    rows = [row.asDict() for row in read_table(spark, directory, table, version.number).collect()]
                    plain = {row["id"]: workload.plain(row) for row in rows}
                    wrong = list(workload.differences(plain, self.shop.history[transaction][table]))
                    assert not wrong, (version.number, transaction, table, wrong[:3])
                found.append(transaction)
        return found


@pytest.fixture
def capture(own_broker: StartBroker, tmp_path: Path, seed: int) -> Iterator[Capture]:
    broker = own_broker(transaction_abort_timed_out_transaction_cleanup_interval_ms="1000")
    with started(Postgres()) as postgres:
        worker = Worker("worker", Place(broker.bootstrap, tmp_path), make_plugin_path(tmp_path / "c" / "plugins"))
        try:
            worker.start()
            yield Capture(broker, postgres, worker, seed)
        finally:
            worker.service.kill()


@pytest.fixture
def options(capture: Capture, tmp_path: Path) -> Options[ChangesOptions]:
    own = ChangesOptions(transactions=TRANSACTIONS, buckets=3, versions=100)
    output = (str(tmp_path / "results"), "topics:out")
    checkpoint = str(tmp_path / "checkpoint")
    return Options(capture.broker.bootstrap, TOPICS, own, checkpoint=checkpoint, output=output, max_offsets=300)


def test_the_tables_are_the_source_while_driver_worker_and_broker_are_killed(
    spark: SparkSession, capture: Capture, options: Options[ChangesOptions], tmp_path: Path
) -> None:
    """Across columns that are added, widened and dropped, and a truncate."""
    shop = capture.shop
    capture.begin(20, **converters(JSON, schemas_enable="true"))
    shop.transact(10)
    job = command(options, "--master", "local[2]", "--max-offsets", "80", "--run", "follow", "--every", "1 second")
    die(job, "written", "rows", tmp_path / "driver")
    shop.alter(workload.ADD_COLUMN)
    shop.transact(10)
    capture.worker.service.kill()
    shop.transact(10)
    capture.worker.start()
    capture.arrived()
    die(job, "written", "rows", tmp_path / "broker", capture.broker.kill)
    shop.alter(workload.WIDEN_COLUMN)
    shop.transact(10, workload.TRUNCATE)
    capture.broker.start()
    shop.alter(workload.DROP_COLUMN)
    shop.transact(10)
    capture.arrived()
    run(spark, CHANGES, options)
    transactions = capture.compare(spark, options.directories[0])
    assert transactions == sorted(transactions)
    assert transactions[-1] == shop.last


@contextmanager
def registry(broker: Broker, port: int, log: Path) -> Iterator[Instance]:
    instance = Instance("-b", broker.bootstrap, "--port", str(port), "--timeout", "120", log=log)
    try:
        yield instance
    finally:
        instance.close()


def test_avro_with_a_registry_that_is_away_for_a_while(
    spark: SparkSession, capture: Capture, options: Options[ChangesOptions], tmp_path: Path
) -> None:
    """A new column is a new schema. What is not Avro, or has a schema that no one knows, is put aside."""
    shop, port = capture.shop, free_port()
    url = f"http://127.0.0.1:{port}"
    options = replace(options, own=replace(options.own, value_format="avro", schema_registry=url))
    with registry(capture.broker, port, tmp_path / "registry.log"):
        client = SchemaRegistryClient({"url": url})
        decode = AvroDeserializer(client)
        capture.decode = lambda message: decode(message.value(), None)
        capture.begin(10, **converters(AVRO_CONVERTER, schema_registry_url=url))
        shop.transact(15)
        capture.arrived()
        assert run(spark, CHANGES, options).broken == 0
        shop.alter(workload.ADD_COLUMN)
        shop.alter(workload.WIDEN_COLUMN)
        shop.transact(15)
        capture.arrived()
    producer = Producer({"bootstrap.servers": capture.broker.bootstrap, **QUIET})
    for value in (b"{}", b"\x00\x00\x00", b"\x00\x00\x0f\xff\xff\x02"):
        producer.produce(TOPICS[0], value, b"{}")
    assert producer.flush(DEADLINE_S) == 0
    with pytest.raises(PipelineError, match="The schema registry does not respond"):
        run(spark, CHANGES, options)
    with registry(capture.broker, port, tmp_path / "registry-again.log"):
        assert run(spark, CHANGES, options).broken == 3
    assert capture.compare(spark, options.directories[0])[-1] == shop.last
    reasons = spark.read.parquet(f"{options.directories[0]}/dead_letters").select("reason").collect()
    assert len({row.reason for row in reasons}) == 2
