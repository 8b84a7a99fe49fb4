"""The service of suggestions: it has what is committed, follows its topics, and says why it cannot. No Spark."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions

from compat_tests.conftest import MakeTopic
from compat_tests.deps import ROOT
from compat_tests.support.quick import DEADLINE_S, QUIET, admin_client
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually
from kpybroker.pipelines.suggestion.service import READY

STOP_S = 60.0


class Service:
    """The process, once it is ready at `url`."""

    def __init__(self, log: Path, *arguments: str) -> None:
        self._log: IO[bytes] = log.open("wb")
        self.log = log
        self.process = subprocess.Popen(
            command(*arguments), stdout=subprocess.PIPE, stderr=self._log, text=True, cwd=ROOT
        )
        assert self.process.stdout is not None
        self.ready = self.process.stdout.readline().strip()
        assert self.ready.startswith(READY), log.read_text()
        self.url = self.ready.removeprefix(READY).split()[0].rstrip("/")

    def get(self, path: str) -> tuple[int, Any]:
        try:
            with urlopen(f"{self.url}{path}", timeout=DEADLINE_S) as page:
                return page.status, json.loads(page.read())
        except HTTPError as error:
            return error.code, json.loads(error.read())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self._log.close()


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "kpybroker.pipelines.suggestion.service", "--port", "0", *arguments]


def row(kind: str, name: str, *products: str) -> str:
    return json.dumps({kind: name, "suggestions": [{"product": one, "score": 0.5} for one in products]})


def commit(producer: Producer, topic: str, *records: tuple[str, str | None], abort: bool = False) -> None:
    producer.begin_transaction()
    for key, value in records:
        producer.produce(topic, value, key)
    assert producer.flush(DEADLINE_S) == 0
    if abort:
        producer.abort_transaction(DEADLINE_S)
    else:
        producer.commit_transaction(DEADLINE_S)


@pytest.fixture
def producer(broker: Broker, name: str) -> Producer:
    made = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name, **QUIET})
    made.init_transactions(DEADLINE_S)
    return made


def test_the_service_has_what_is_committed_and_follows(
    broker: Broker, topic: MakeTopic, producer: Producer, tmp_path: Path
) -> None:
    products, users = topic(partitions=2), topic(suffix="-users")
    commit(producer, products, ("tea", row("product", "tea", "old")), ("a/b", row("product", "a/b", "cup")))
    commit(producer, products, ("tea", row("product", "tea", "cup", "pot")))
    commit(producer, products, ("tea", row("product", "tea", "aborted")), abort=True)
    commit(producer, users, ("tea", row("user", "tea", "spoon")), ("x", "{"), ("y", row("user", "z", "spoon")))
    service = Service(tmp_path / "log", "--bootstrap-servers", broker.bootstrap, "--topic", products, "--topic", users)
    try:
        assert service.ready.endswith("products=2 users=1")
        assert service.get("/products/tea") == (200, json.loads(row("product", "tea", "cup", "pot")))
        assert service.get("/products/a/b")[0] == 200
        assert service.get("/users/tea") == (200, json.loads(row("user", "tea", "spoon")))
        assert service.get("/users/x") == (404, {"error": "no suggestions for this user", "user": "x"})
        assert service.get("/elsewhere")[0] == 404
        assert service.get("/") == (200, {"products": 2, "users": 1})

        commit(producer, products, ("milk", row("product", "milk", "bread")), ("tea", None))
        eventually(lambda: service.get("/products/milk")[0] == 200, "what is written later")
        eventually(lambda: service.get("/products/tea")[0] == 404, "what is removed is gone")
        assert service.get("/users/tea")[0] == 200, "of another topic"

        admin = admin_client(broker.bootstrap)
        admin.create_partitions([NewPartitions(products, 3)])[products].result(DEADLINE_S)
        plain = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
        plain.produce(products, row("product", "new", "bread"), "new", partition=2)
        assert plain.flush(DEADLINE_S) == 0
        eventually(lambda: service.get("/products/new")[0] == 200, "a partition that was added is read")

        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(STOP_S) == 0
        assert service.log.read_text() == ""
    finally:
        service.close()


@pytest.mark.wide
def test_a_topic_that_is_deleted_ends_the_service_with_the_cause(
    broker: Broker, topic: MakeTopic, producer: Producer, tmp_path: Path
) -> None:
    name = topic(partitions=1)
    commit(producer, name, ("tea", row("product", "tea", "cup")))
    service = Service(tmp_path / "log", "--bootstrap-servers", broker.bootstrap, "--topic", name)
    try:
        admin = admin_client(broker.bootstrap)
        admin.delete_topics([name])[name].result(DEADLINE_S)
        assert service.process.wait(STOP_S) == 1
        lines = service.log.read_text().splitlines()
        assert len(lines) == 2, lines
        assert "deleted" in lines[0] or "does not exist" in lines[0]
    finally:
        service.close()


def test_what_a_person_can_fix_is_said_in_two_lines(broker: Broker, topic: MakeTopic, name: str) -> None:
    there = topic(partitions=1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        cases = [
            (broker.bootstrap, f"{name}-nowhere", "0", 1, f"The topic {name}-nowhere does not exist."),
            (broker.bootstrap, there, port, 1, f"Cannot listen at 127.0.0.1:{port}: Address already in use."),
            (broker.bootstrap, there, "many", 2, "Argument --port: 'many' is not a port."),
            (f"127.0.0.1:{_closed_port()}", there, "0", 1, "No broker responds"),
        ]
        for bootstrap, topic_name, at, code, cause in cases:
            arguments = ["--bootstrap-servers", bootstrap, "--topic", topic_name, "--port", at]
            done = subprocess.run(
                command(*arguments), capture_output=True, text=True, cwd=ROOT, env=os.environ, check=False
            )
            said = done.stderr.splitlines()
            assert (done.returncode, len(said)) == (code, 2), done.stderr
            assert cause in said[0]
            assert said[1].startswith("fix: ")


def _closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
