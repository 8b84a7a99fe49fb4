"""`transaction list|describe|hanging|abort` against a broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from tests.client.conftest import Run


@contextmanager
def open_transaction(bootstrap: str, transactional_id: str, topic: str) -> Iterator[Any]:
    """A producer with a record in an open transaction."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "log_level": 0})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"pending", partition=0)
    producer.flush(60)
    yield producer


def test_an_open_transaction_is_seen_and_aborted(run: Run, bootstrap: str, name: str) -> None:
    run("topic", "create", name)
    with open_transaction(bootstrap, name, name) as producer:
        listed = {row["transactional_id"]: row for row in run("transaction", "list", "--format", "json").json}
        assert listed[name]["state"] == "Ongoing"
        assert listed[name]["partitions"] == [{"topic": name, "partition": 0}]
        assert name in run("transaction", "list", "--state", "ongoing").text
        assert f"{name}:0" in run("transaction", "describe", name).text
        dry = run("transaction", "abort", name)
        assert "would be aborted" in dry.text
        assert "dry run" in dry.err
        assert run("transaction", "describe", name, "--format", "json").json[0]["state"] == "Ongoing"
        assert run("transaction", "abort", name, "--execute").code == 0
        with pytest.raises(KafkaException, match="fenced"):
            producer.commit_transaction(60)
    assert run("transaction", "describe", name, "--format", "json").json[0]["state"] in ("CompleteAbort", "Empty")
    assert run("topic", "consume", name, "-e").out == b""
    assert "nothing to abort" in run("transaction", "abort", name, "-y").text


def test_what_is_not_there_is_named(run: Run, name: str) -> None:
    for words in (("describe", name), ("abort", name), ("abort", name, "-y")):
        result = run("transaction", *words)
        assert result.code == 1
        assert f"transactional id {name}: " in result.err
    run("topic", "create", name)
    missing = run("transaction", "abort", "--topic", name, "--partition", "0", "--start-offset", "5", "-y")
    assert (missing.code, "no open transaction begins at offset 5" in missing.err) == (1, True)


@pytest.mark.parametrize("words", [(), ("id", "--topic", "t"), ("--topic", "t"), ("--topic", "t", "--partition", "0")])
def test_what_to_abort_is_said_in_one_way(run: Run, words: tuple[str, ...]) -> None:
    assert run("transaction", "abort", *words).code == 2


def test_a_transaction_that_its_coordinator_knows_does_not_hang(run: Run, bootstrap: str, name: str) -> None:
    run("topic", "create", name)
    with open_transaction(bootstrap, name, name) as producer:
        result = run("transaction", "hanging", name, "--older-than", "0")
        assert (result.code, result.out, result.err) == (0, b"", "no transaction hangs\n")
        producer.abort_transaction(60)
    assert run("transaction", "hanging", f"{name}-none").code == 1
