"""A standalone worker that is killed, and a record that stops a sink: nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path

from confluent_kafka import Producer

from compat_tests.conftest import StartBroker
from compat_tests.connect.conftest import MakeWorkers
from compat_tests.connect.standalone import Standalone
from compat_tests.connect.topics import read_to_end
from compat_tests.connect.workers import DEADLINE_S, Worker
from compat_tests.support import quick
from compat_tests.support.services import started
from compat_tests.support.waiting import eventually

FILE = "org.apache.kafka.connect.file.FileStream"
JSON = "org.apache.kafka.connect.json.JsonConverter"
LINES_AT_ONCE, KILLS = 2000, 3
POISON = b"{no json"


def test_a_standalone_worker_that_is_killed_repeats_and_loses_nothing(own_broker: StartBroker, tmp_path: Path) -> None:
    """At least once: each line is in the topic, the first copies are in order, and the sink's file has them all."""
    broker = own_broker()
    quick.create_topic(broker.bootstrap, "lines")
    lines, sunk = tmp_path / "lines.txt", tmp_path / "sunk.txt"
    sunk.touch()
    source = {"connector.class": f"{FILE}SourceConnector", "file": str(lines), "topic": "lines", "batch.size": "100"}
    sink = {"connector.class": f"{FILE}SinkConnector", "file": str(sunk), "topics": "lines"}
    # the group waits for a member that was killed as long as its session lasts
    from_start = {"consumer.override.auto.offset.reset": "earliest", "consumer.override.session.timeout.ms": "6000"}
    written: list[str] = []

    def arrived() -> bool:
        missing = set(written) - set(sunk.read_text().splitlines())
        assert not missing, f"{len(missing)} of {len(written)} lines"
        return True

    with started(Standalone(broker.bootstrap, tmp_path, {"source": source, "sink": {**sink, **from_start}})) as worker:
        for _ in range(KILLS):
            new = [f"line {len(written) + n}" for n in range(LINES_AT_ONCE)]
            with lines.open("a") as file:
                file.writelines(f"{line}\n" for line in new)
            written += new
            some = len(written) - LINES_AT_ONCE // 2
            eventually(lambda: quick.end_offset(broker.bootstrap, "lines", 0) > some, "some of them", DEADLINE_S)
            worker.service.kill()
            worker.start()
        eventually(arrived, "all lines", DEADLINE_S)
    found = [message.value().decode() for message in read_to_end(broker.bootstrap, "lines")]
    assert list(dict.fromkeys(found)) == written
    assert set(sunk.read_text().splitlines()) == set(written)


def test_a_record_that_cannot_be_read_stops_a_sink_until_it_may_be_put_aside(
    own_broker: StartBroker, make_workers: MakeWorkers, tmp_path: Path
) -> None:
    """The task fails and says why, also when it is restarted; with errors.tolerance=all all others arrive."""
    broker = own_broker()
    quick.create_topic(broker.bootstrap, "orders")
    producer = Producer({"bootstrap.servers": broker.bootstrap, **quick.QUIET})
    for value in (b'{"id":1}', b'{"id":2}', POISON, b'{"id":4}'):
        producer.produce("orders", value)
    assert producer.flush(DEADLINE_S) == 0
    (worker,) = make_workers(broker.bootstrap)
    sunk = tmp_path / "sunk.txt"
    settings = {
        "file": str(sunk),
        "topics": "orders",
        "value_converter": JSON,
        "value_converter_schemas_enable": "false",
    }
    settings["consumer_override_auto_offset_reset"] = "earliest"
    worker.configure("sink", f"{FILE}SinkConnector", **settings)
    for _ in range(2):
        trace = failure_of(worker, "sink")
        assert "Tolerance exceeded in error handler" in trace
        assert "Converting byte[] to Kafka Connect data failed due to serialization error" in trace
        worker.insist("POST", "connectors/sink/restart?includeTasks=true&onlyFailed=true")
    failure_of(worker, "sink")
    aside = {"errors_tolerance": "all", "errors_deadletterqueue_topic_name": "dead"}
    aside["errors_deadletterqueue_topic_replication_factor"] = "1"
    worker.configure("sink", f"{FILE}SinkConnector", **settings, **aside)
    eventually(lambda: "{id=4}" in sunk.read_text().splitlines(), "the record after it", DEADLINE_S)
    assert list(dict.fromkeys(sunk.read_text().splitlines())) == ["{id=1}", "{id=2}", "{id=4}"]
    (dead,) = eventually(lambda: read_to_end(broker.bootstrap, "dead"), "the dead letter", DEADLINE_S)
    assert (dead.value(), dead.headers()) == (POISON, None)
    worker.where("sink")


def failure_of(worker: Worker, connector: str) -> str:
    """Wait until the connector's task has failed; its trace."""

    def failed() -> str:
        tasks = worker.insist("GET", f"connectors/{connector}/status")["tasks"]
        assert [task["state"] for task in tasks] == ["FAILED"], json.dumps(tasks)[:500]
        return str(tasks[0]["trace"])

    return eventually(failed, f"{connector}'s task fails", DEADLINE_S)
