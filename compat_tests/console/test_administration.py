"""What an administrator does with the console, in the browser: from the front page, with its script and policy."""

from __future__ import annotations

import time
import uuid

import pytest
from playwright.sync_api import expect

from compat_tests.console.conftest import OpenPage, barriers
from kpybroker.testing import Broker


@pytest.fixture
def topic(kafka: Broker) -> str:
    name = f"adm-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(name, 2)
    return name


def test_the_front_page_says_why_the_cluster_is_not_well(
    address: str, kafka: Broker, topic: str, open_page: OpenPage, axe_source: str
) -> None:
    producer = kafka.producer()
    producer.produce(topic, b"x", timestamp=int(time.time() * 1000) + 3_600_000)
    producer.flush()
    page = open_page(f"{address}/")
    reason = page.locator("#health a", has_text=topic)
    expect(reason).to_contain_text("ahead of this machine's clock")
    assert barriers(page, axe_source) == []
    page.get_by_role("link", name="Each check").click()
    expect(page.get_by_role("row", name="Clocks")).to_contain_text(topic)
    assert barriers(page, axe_source) == []
    page.get_by_role("link", name=topic).first.click()
    expect(page.locator("#messages tr")).to_have_count(1)
    kafka.delete_topic(topic)
