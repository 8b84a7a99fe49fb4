"""The samples of docs/guides/connect.md do what the page says."""

from __future__ import annotations

import json
from pathlib import Path

import javaproperties
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from compat_tests.conftest import StartBroker
from compat_tests.connect.plugins import AVRO_CONVERTER
from compat_tests.connect.topics import read_to_end
from compat_tests.connect.workers import DEADLINE_S, connect_service
from compat_tests.registry.conftest import Instance
from compat_tests.support import quick
from compat_tests.support.machine.postgres import USER, Postgres, SqlError
from compat_tests.support.rest import call
from compat_tests.support.services import Broker, Service
from compat_tests.support.waiting import eventually
from tests.support.network.ports import free_port
from tests.support.programs.samples import run_sample, text_of


def places(broker: Broker, rest_port: int) -> dict[str, str]:
    return {"127.0.0.1:9092": broker.bootstrap, "127.0.0.1:8083": f"127.0.0.1:{rest_port}"}


def worker(kind: str, directory: Path, sample: str, replaced: dict[str, str], *files: str) -> Service:
    """Kafka's worker with the sample's properties, in `directory`, with these files of connectors."""
    properties = javaproperties.loads(text_of(f"connect/{sample}", replaced))
    properties["offset.flush.interval.ms"] = "500"  # it is a minute, and a sink commits its offsets as often
    service = connect_service(kind, f"org.apache.kafka.connect.cli.Connect{kind}", directory, properties)
    for name in files:
        (directory / name).write_text(text_of(f"connect/{name}", replaced))
        service.command.append(name)
    return service


def test_a_file_becomes_a_topic_and_a_file_again(own_broker: StartBroker, tmp_path: Path) -> None:
    broker = own_broker()
    quick.create_topic(broker.bootstrap, "lines")
    (tmp_path / "lines.txt").write_text("one\ntwo\n")
    port = free_port()
    files = ("file-source.properties", "file-sink.properties")
    service = worker("Standalone", tmp_path, "standalone.properties", places(broker, port), *files)
    copy = tmp_path / "copy.txt"
    try:
        service.start(lambda _: sorted(call("GET", f"http://127.0.0.1:{port}/connectors")) == ["copy", "lines"])
        eventually(lambda: copy.exists() and len(copy.read_text().splitlines()) == 2, "the copy", DEADLINE_S)
        values = [json.loads(message.value()) for message in read_to_end(broker.bootstrap, "lines")]
        assert values == [{"line": "one", "shop": "north"}, {"line": "two", "shop": "north"}]
        quick.fill(broker.bootstrap, "lines", ["{no json"])
        (dead,) = eventually(lambda: read_to_end(broker.bootstrap, "lines.dead"), "the dead letter", DEADLINE_S)
        assert dead.value() == b"{no json"
        assert dict(dead.headers())["__connect.errors.stage"] == b"VALUE_CONVERTER"
    finally:
        service.kill()


def test_a_table_becomes_topics_in_json_and_avro_and_a_table_again(
    own_broker: StartBroker,
    postgres: Postgres,
    plugins: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = own_broker()
    for name, value in {"PGHOST": "127.0.0.1", "PGPORT": str(postgres.port), "PGUSER": USER}.items():
        monkeypatch.setenv(name, value)
    run_sample("connect/database.sh", tmp_path, {})
    registry = Instance("-b", broker.bootstrap, "--timeout", "120", log=tmp_path / "registry.log")
    port = free_port()
    replaced = places(broker, port) | {
        "/opt/connect-plugins": plugins["plugin.path"],
        "127.0.0.1:5432": f"127.0.0.1:{postgres.port}",
        '"5432"': f'"{postgres.port}"',
        "http://127.0.0.1:8081": registry.url,
        "io.confluent.connect.avro.AvroConverter": AVRO_CONVERTER,
    }
    service = worker("Distributed", tmp_path, "distributed.properties", replaced)
    connectors = f"http://127.0.0.1:{port}/connectors"
    try:
        service.start(lambda _: call("GET", connectors) == [])
        for name in ("shop-source.json", "warehouse-sink.json", "avro-source.json"):
            (tmp_path / name).write_text(text_of(f"connect/{name}", replaced))
        run_sample("connect/connectors.sh", tmp_path, replaced)
        copied(postgres, [["1", "first"]])
        postgres.execute("update orders set note = 'second'; insert into orders values (2, 'third')")
        postgres.execute("delete from orders where id = 1")
        copied(postgres, [["2", "third"]])
        call("PUT", f"{connectors}/avro/config", json.loads((tmp_path / "avro-source.json").read_text()))
        _check_avro(broker, registry.url)
        sunk = f"{connectors}/warehouse/offsets"
        eventually(lambda: call("GET", sunk)["offsets"], "the sink has committed", DEADLINE_S)
        _check_look(run_sample("connect/look.sh", tmp_path, replaced))
    finally:
        service.kill()
        registry.close()


def copied(postgres: Postgres, rows: list[list[str]]) -> None:
    """Wait until the warehouse has these rows."""

    def there() -> bool:
        try:
            found = postgres.execute("select id, note from orders_copy order by id", database="warehouse")
        except SqlError as error:
            raise AssertionError(f"no table yet: {error}") from None
        assert found == rows
        return True

    eventually(there, "the copy", DEADLINE_S)


def _check_avro(broker: Broker, url: str) -> None:
    topic = "avro.public.orders"
    messages = eventually(lambda: read_to_end(broker.bootstrap, topic), "records in Avro", DEADLINE_S)
    client = SchemaRegistryClient({"url": url})
    value = AvroDeserializer(client)(messages[0].value(), SerializationContext(topic, MessageField.VALUE))
    assert value["after"] == {"id": 2, "note": "third"}
    assert sorted(client.get_subjects()) == [f"{topic}-key", f"{topic}-value"]


def _check_look(out: str) -> None:
    """Three responses: the status of all, nothing to restart, and two offsets."""
    assert out.count('"state":"RUNNING"') >= 4
    assert "FAILED" not in out
    assert '"lsn"' in out
    assert '"kafka_offset"' in out
