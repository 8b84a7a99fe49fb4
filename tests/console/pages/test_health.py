"""The front page says whether the cluster is well, and why not, with a link to where it is seen."""

from __future__ import annotations

import time
import uuid
from typing import Any

import pytest

from kpybroker.client.connect.errors import CommandError
from kpybroker.console.queries.health import checks, seen
from kpybroker.console.queries.samples import Samples
from kpybroker.testing import Broker
from tests.console.conftest import MakeClient, rows_of, text_of

CHECKS = ["Brokers", "Partitions", "Leaders", "Disks", "Min ISR", "Groups", "Transactions", "Clocks"]


@pytest.fixture
def disk_with_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """How full the disk of the test's machine is does not matter."""
    monkeypatch.setattr(checks, "FREE_WARN", 0.0)


def statuses(page: str) -> dict[str, list[str]]:
    return {row[0]: row[1:] for row in rows_of(page, "Checks")}


@pytest.mark.usefixtures("disk_with_room")
def test_a_cluster_that_is_well_is_green_at_once_and_says_what_was_checked(client: MakeClient) -> None:
    browser = client()
    front = browser.get("/").text
    assert "No problem among brokers, partitions and disks" in front
    assert 'hx-get="/health/now"' in front
    found = statuses(browser.get("/health").text)
    assert list(found) == CHECKS
    assert {name: row[0] for name, row in found.items() if row[0] != "well"} == {}
    assert "The cluster is well" in browser.get("/health/now").text


@pytest.mark.usefixtures("disk_with_room")
def test_a_record_from_the_future_is_a_reason_with_a_link_to_it(client: MakeClient, broker: Broker) -> None:
    topic = f"future-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    producer = broker.producer()
    producer.produce(topic, b"x", timestamp=int(time.time() * 1000) + 3_600_000)
    producer.flush()
    part = client().get("/health/now").text
    assert "This needs attention" in part
    assert f'href="/topics/{topic}/messages"' in part
    assert "ahead of this machine" in text_of(part)
    broker.delete_topic(topic)


def test_a_group_that_lags_and_grows_is_named(client: MakeClient, broker: Broker) -> None:
    topic = f"grows-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    broker.produce(topic, ["a", "b"])
    consumer = broker.consumer(topic, topic, auto_offset_reset="earliest", enable_auto_commit=False)
    while not consumer.consume(1, timeout=1):
        pass
    consumer.commit(asynchronous=False)
    consumer.close()
    browser = client()
    samples: Samples = browser.app.state.console.samples  # type: ignore[attr-defined]
    now = time.time()
    for before_s in (40, 30, 20, 10):  # further apart there is a gap
        samples.add(f"lag/{topic}", 0, now - before_s)
    broker.produce(topic, ["more"])
    text = text_of(browser.get("/health").text)
    assert f"group {topic} lags by " in text
    assert "grew by" in text


def test_what_is_refused_is_not_green(client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise CommandError("Topic authorization failed (TOPIC_AUTHORIZATION_FAILED)")

    monkeypatch.setattr(seen, "_minimum", refuse)
    page = client().get("/health").text
    assert statuses(page)["Min ISR"] == ["not known", "Topic authorization failed (TOPIC_AUTHORIZATION_FAILED)"]
    assert "The cluster is well" not in page


def test_a_cluster_that_is_away_is_a_part_of_the_page(client: MakeClient) -> None:
    part = client(bootstrap="127.0.0.1:1").get("/health/now")
    assert part.status_code == 200
    assert 'role="alert"' in part.text
    assert "fix: " in part.text
