"""Transactions aborted: by id, and by their place in a log."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import KafkaException

from kpybroker.testing import Broker
from tests.console.changes.conftest import command_of, done, previewed
from tests.console.conftest import MakeClient, RunCommand, rows_of, text_of


@contextmanager
def open_transaction(broker: Broker, name: str) -> Iterator[Any]:
    """A producer with a record in an open transaction, in a topic and with an id of this name."""
    broker.create_topic(name, 1)
    producer = broker.producer(transactional_id=name)
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(name, b"pending", partition=0)
    producer.flush(60)
    yield producer


@pytest.fixture
def name() -> str:
    return f"tx-{uuid.uuid4().hex[:8]}"


def test_a_transaction_is_aborted_with_its_id_typed_again(
    client: MakeClient, broker: Broker, name: str, run_command: RunCommand
) -> None:
    browser = client(allow_changes=True)
    with open_transaction(broker, name) as producer:
        assert f"/change/transaction-abort?id={name}" in browser.get(f"/transactions?q={name}").text
        page = previewed(browser, "transaction-abort", id=name).text
        assert rows_of(page, "Preview")[0][-1] == "would be aborted"
        assert done(browser, "transaction-abort", id=name).status_code == 400
        result = done(browser, "transaction-abort", name, id=name)
        assert rows_of(result.text, "Result")[0][-1] == "aborted"
        with pytest.raises(KafkaException, match="fenced"):
            producer.commit_transaction(60)
    assert "There is nothing to change." in previewed(browser, "transaction-abort", id=name).text
    assert "nothing to abort" in run_command(command_of(page)).text


def test_a_transaction_is_aborted_by_its_place(
    client: MakeClient, broker: Broker, name: str, run_command: RunCommand
) -> None:
    browser = client(allow_changes=True)
    with open_transaction(broker, name):
        page = browser.get(f"/transactions?topic={name}").text
        assert f"Abort the transaction at {name}-0, offset 0" in text_of(page)
        place = {"topic": name, "partition": "0", "start_offset": "0"}
        preview = previewed(browser, "transaction-abort-hanging", **place).text
        assert rows_of(preview, "Preview")[0][-1] == "would be aborted"
        result = done(browser, "transaction-abort-hanging", name, **place)
        assert rows_of(result.text, "Result")[0][-1] == "aborted"
        gone = previewed(browser, "transaction-abort-hanging", **place)
        assert "no open transaction begins at offset 0" in gone.text
        assert "no open transaction begins at offset 0" in run_command(command_of(preview)).err


def test_those_that_hang_are_looked_for(client: MakeClient) -> None:
    page = client(allow_changes=True).get("/transactions?hanging=1").text
    assert rows_of(page, "Transactions that hang")[0][0] == "none hangs"


@pytest.mark.parametrize("bad", [{"partition": "first"}, {"start_offset": "-1"}, {"topic": ""}])
def test_bad_input_marks_its_field(client: MakeClient, bad: dict[str, str]) -> None:
    values = {"topic": "orders", "partition": "0", "start_offset": "0", **bad}
    page = previewed(client(allow_changes=True), "transaction-abort-hanging", **values)
    assert page.status_code == 400
    (field,) = bad
    assert f'name="{field}"' in page.text.split('aria-invalid="true"')[0].rsplit("<", 1)[1]
