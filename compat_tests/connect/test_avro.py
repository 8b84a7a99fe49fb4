"""Change data as Avro with `kpybroker registry`: other readers understand it, and no failure of the registry loses any.

The converter is the tests' own (`java/`). The reader is confluent-kafka's.
"""

from __future__ import annotations

from pathlib import Path

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from compat_tests.conftest import StartBroker
from compat_tests.connect.conftest import MakeWorkers
from compat_tests.connect.plugins import AVRO_CONVERTER
from compat_tests.connect.shop import TABLE, Change, Shop, change_of
from compat_tests.connect.sources import JDBC_SINK, POSTGRES_SOURCE, TOPIC, change_data, converters, table_sink
from compat_tests.connect.test_tables import same_rows
from compat_tests.connect.topics import becomes, read_to_end
from compat_tests.connect.workers import DEADLINE_S, Worker
from compat_tests.registry.conftest import Instance
from compat_tests.support.machine.postgres import Postgres
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually
from tests.support.network.ports import free_port

ROWS, TRANSACTIONS = 50, 30


class Avro:
    """A shop whose changes become Avro, on one worker, and the registry, which comes and goes at one address."""

    def __init__(self, broker: Broker, postgres: Postgres, worker: Worker, directory: Path, seed: int) -> None:
        self.broker, self.worker = broker, worker
        self.shop = Shop(postgres, seed)
        self.port = free_port()
        self.directory = directory
        self.registry: Instance | None = None

    def start_registry(self) -> None:
        address = ["-b", self.broker.bootstrap, "--port", str(self.port), "--timeout", "120"]
        self.registry = Instance(*address, log=self.directory / "registry.log")

    def stop_registry(self) -> None:
        if self.registry is not None:
            self.registry.close()
            self.registry = None

    def configure(self) -> None:
        avro = converters(AVRO_CONVERTER, schema_registry_url=f"http://127.0.0.1:{self.port}")
        source = change_data(self.shop.postgres, exactly_once_support="required", **avro)
        self.worker.configure("shop", POSTGRES_SOURCE, **source)

    def changes(self) -> list[Change]:
        """By confluent-kafka's deserializer and its client of the registry."""
        client = SchemaRegistryClient({"url": f"http://127.0.0.1:{self.port}"})
        decode = AvroDeserializer(client)
        key, value = (SerializationContext(TOPIC, field) for field in (MessageField.KEY, MessageField.VALUE))
        messages = read_to_end(self.broker.bootstrap, TOPIC)
        return [change_of(decode(one.key(), key), decode(one.value(), value)) for one in messages]

    def arrived(self) -> None:
        def found() -> list[Change]:
            tasks = self.worker.insist("GET", "connectors/shop/status")["tasks"]
            if any(task["state"] == "FAILED" for task in tasks):
                raise RuntimeError(tasks[0]["trace"])
            return self.changes()

        becomes(found, self.shop.changes, "all changes")

    def fails(self) -> str:
        """Wait until the task has failed; what it says."""

        def failed() -> str:
            (task,) = self.worker.ask("GET", "connectors/shop/status")["tasks"] or [{"state": "none"}]
            assert task["state"] == "FAILED", task
            return str(task["trace"])

        return eventually(failed, "the task fails", DEADLINE_S)

    def restart(self) -> None:
        self.worker.insist("POST", "connectors/shop/restart?includeTasks=true&onlyFailed=true")
        self.worker.where("shop")

    def written(self) -> int:
        return len(read_to_end(self.broker.bootstrap, TOPIC))


def test_avro_through_a_registry_that_fails_and_refuses(
    own_broker: StartBroker, postgres: Postgres, make_workers: MakeWorkers, tmp_path: Path, seed: int
) -> None:
    """Without the registry, and after a refused schema, the task fails; started again, it has lost nothing."""
    broker = own_broker()
    (worker,) = make_workers(broker.bootstrap)
    avro = Avro(broker, postgres, worker, tmp_path, seed)
    try:
        avro.shop.create(ROWS)
        avro.start_registry()
        avro.configure()
        avro.arrived()  # the snapshot; what is changed before it is part of it
        avro.shop.transact(TRANSACTIONS)
        avro.arrived()
        _check_sink(avro)
        _without_registry(avro)
        avro.shop.drop_column()  # the form that it had before: no new version
        avro.shop.transact(TRANSACTIONS)
        avro.arrived()
        _refused(avro)
    finally:
        avro.stop_registry()


def _check_sink(avro: Avro) -> None:
    """A sink reads what the source wrote, deletes too."""
    settings = converters(AVRO_CONVERTER, schema_registry_url=f"http://127.0.0.1:{avro.port}")
    avro.worker.configure("copy", JDBC_SINK, **table_sink(avro.shop.postgres, "copied", **settings))
    same_rows(avro.shop.postgres, avro.shop.postgres, "copied")
    avro.worker.insist("DELETE", "connectors/copy")


def _without_registry(avro: Avro) -> None:
    """A schema that the converter does not know yet fails the task."""
    avro.stop_registry()
    before = avro.written()
    avro.shop.add_column()
    avro.shop.transact(TRANSACTIONS)
    assert "the schema registry does not respond" in avro.fails()
    assert avro.written() == before
    avro.start_registry()
    avro.restart()
    avro.arrived()


def _refused(avro: Avro) -> None:
    """A column of another type: the registry refuses the schema (409), until the subject may take it."""
    before = avro.written()
    avro.shop.make_paid_a_text()
    avro.shop.transact(TRANSACTIONS)
    trace = avro.fails()
    assert "the schema registry: 409" in trace
    assert "MISSING_UNION_BRANCH" in trace, trace
    assert avro.written() == before
    client = SchemaRegistryClient({"url": f"http://127.0.0.1:{avro.port}"})
    client.set_compatibility(f"{TOPIC}-value", "NONE")
    avro.restart()
    avro.arrived()
    versions = client.get_versions(f"{TOPIC}-value")
    assert versions == [1, 2, 3], f"{TABLE} has had three forms"
    assert "WARN" not in (avro.directory / "registry.log").read_text()
