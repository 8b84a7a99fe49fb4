"""Replication, log directories, transactions and access."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from kpybroker.console.queries import storage
from kpybroker.console.queries.pages import ANYTHING
from kpybroker.console.web.live import Notes
from kpybroker.testing import Broker
from tests.console.conftest import MakeClient


def test_replication_shows_every_replica_in_sync(client: MakeClient) -> None:
    page = client().get("/replication").text
    assert "none: every replica is in sync" in page
    assert "Partitions with a problem: 0" in page


def partition(leader: int, replicas: list[int], isr: list[int]) -> Any:
    return SimpleNamespace(id=0, leader=leader, replicas=replicas, isrs=isr)


def test_the_worst_partition_is_first_and_a_broker_that_is_down_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = {
        "healthy": partition(1, [1, 2], [1, 2]),
        "behind": partition(1, [1, 2, 3], [1]),
        "shrunk": partition(2, [2, 3], [2]),
        "gone": partition(-1, [3], [3]),
    }
    metadata = SimpleNamespace(
        brokers={1: None, 2: None}, topics={name: SimpleNamespace(partitions={0: one}) for name, one in topics.items()}
    )
    no_brokers = SimpleNamespace(nodes={}, controller_id=-1)
    cluster: Any = SimpleNamespace(metadata=lambda: metadata, wire=lambda: nullcontext(no_brokers))
    replica = {"topic": "behind", "partition": 0, "broker": 2, "offset_lag": 7, "size": 1}
    monkeypatch.setattr(storage, "log_dir_rows", lambda *_: ([], [replica, {**replica, "offset_lag": 0}]))
    found = storage.replication(cluster, ANYTHING, Notes())
    assert [one.topic for one in found.problems] == ["gone", "behind", "shrunk"]
    assert [(one["broker"], one["is_up"], one["leads"], one["replicas"] - one["in_sync"]) for one in found.brokers] == [
        (1, True, 2, 0),
        (2, True, 1, 1),
        (3, False, 0, 2),
    ]
    assert found.behind == [replica]


def test_log_directories_and_the_largest_replicas(client: MakeClient) -> None:
    page = client().get("/log-dirs").text
    assert "online" in page
    assert "/topics/orders" in page


def test_a_transaction_is_shown_while_it_is_open(client: MakeClient, broker: Broker) -> None:
    producer = broker.producer(transactional_id="<tx>")
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", "in a transaction", partition=0)
    producer.flush()
    page = client().get("/transactions?topic=orders&q=TX").text
    producer.abort_transaction()
    assert "&lt;tx&gt;" in page
    assert "Ongoing" in page
    assert "orders-0" in page
    producers = page.split("Producers of orders", 1)[1]
    assert "<td colspan" not in producers
    assert "<strong>" in producers


def test_an_idempotent_producer_is_a_producer_of_the_topic(client: MakeClient, broker: Broker) -> None:
    producer = broker.producer(enable_idempotence=True)
    broker.create_topic("idempotent", 1)
    producer.produce("idempotent", "once")
    producer.flush()
    producers = client().get("/transactions?topic=idempotent").text.split("Producers of idempotent", 1)[1]
    assert producers.count('<th scope="row"') == 1
    assert "<strong>" not in producers


def test_without_an_authorizer_acls_are_a_note_with_a_fix(client: MakeClient) -> None:
    page = client().get("/access")
    assert page.status_code == 200
    assert "SECURITY_DISABLED" in page.text
    assert "authorizer.class.name" in page.text
    assert "Quotas" in page.text


def test_a_cluster_that_is_away(client: MakeClient) -> None:
    browser = client(bootstrap="127.0.0.1:1")
    for path in ("/replication", "/log-dirs", "/transactions", "/access", "/groups", "/group?id=g"):
        page = browser.get(path)
        assert page.status_code == 503
        assert "fix: " in page.text
