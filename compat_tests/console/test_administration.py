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


def test_a_topic_is_created_changed_and_deleted(
    address: str, kafka: Broker, open_page: OpenPage, axe_source: str
) -> None:
    name = f"made-{uuid.uuid4().hex[:8]}"
    page = open_page(f"{address}/", allows_failures=True)
    page.get_by_role("link", name="Topics", exact=True).click()
    page.get_by_role("link", name="Create a topic").click()
    page.get_by_label("Topic", exact=True).fill(name)
    page.get_by_label("Partitions", exact=True).fill("none")
    page.get_by_label("Settings", exact=True).fill("retention.ms=3600000")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_label("Partitions", exact=True)).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("Topic", exact=True)).to_have_value(name)
    assert barriers(page, axe_source) == []
    page.get_by_label("Partitions", exact=True).fill("2")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("code.command")).to_contain_text("topic create -p 2 -c retention.ms=3600000")
    assert barriers(page, axe_source) == []
    page.get_by_role("button", name=f"Create {name}").click()
    expect(page.get_by_role("status")).to_contain_text("Done.")
    page.get_by_role("link", name="See what it is now").click()
    page.get_by_role("link", name="Configuration").click()
    page.get_by_role("link", name="Change retention.ms").click()
    expect(page.get_by_label("Value", exact=True)).to_have_value("3600000")
    page.get_by_label("Value", exact=True).fill("7200000")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Change retention.ms").click()
    page.get_by_role("link", name="See what it is now").click()
    expect(page.get_by_role("row", name="retention.ms").first).to_contain_text("2 hours")
    page.get_by_role("link", name="Partitions", exact=True).click()
    page.get_by_role("link", name="Delete the topic").click()
    page.get_by_label(f"Type {name} again").fill(name)
    page.get_by_role("button", name=f"Delete {name}").click()
    expect(page.get_by_role("row", name=name)).to_contain_text("deleted")
    assert name not in kafka.admin().list_topics(timeout=30).topics


def test_a_list_is_filtered_as_one_types_and_ctrl_k_finds_a_topic(
    address: str, topic: str, open_page: OpenPage, axe_source: str
) -> None:
    page = open_page(f"{address}/topics")
    page.get_by_label("Name contains").press_sequentially(topic[:10])
    expect(page.locator("#live tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Partitions").first.click()
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Partitions")
    page.keyboard.press("Control+k")
    expect(page.get_by_label("Find a topic, group or subject")).to_be_focused()
    page.keyboard.type(topic)
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Topics")).to_contain_text(topic)
    assert barriers(page, axe_source) == []
    page.get_by_role("link", name=topic).click()
    expect(page.locator("h1")).to_contain_text(topic)
