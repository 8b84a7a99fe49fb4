"""What an administrator does with the console, in the browser: from the front page, with its script and policy."""

from __future__ import annotations

import json
import time
import uuid

import httpx
import pytest
from confluent_kafka import TopicPartition
from playwright.sync_api import expect

from compat_tests.console.conftest import START_S, OpenPage, barriers, console
from kpybroker.testing import Broker, SchemaRegistry


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
    expect(page.get_by_label("Find what has a name")).to_be_focused()
    page.keyboard.type(topic)
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?*")  # the list that is left has the topic, too
    expect(page.get_by_role("region", name="Topics")).to_contain_text(topic)
    assert barriers(page, axe_source) == []
    page.get_by_role("link", name=topic).click()
    expect(page.locator("h1")).to_contain_text(topic)


def test_two_versions_of_a_schema_are_compared_and_a_third_is_registered(
    kafka: Broker, topic: str, open_page: OpenPage, axe_source: str
) -> None:
    def record(*names: str) -> str:
        fields = [{"name": name, "type": "string", "default": ""} for name in names]
        return json.dumps({"type": "record", "name": "Order", "fields": fields})

    subject = f"{topic}-value"
    with SchemaRegistry(kafka, start_timeout=START_S) as registry:
        for names in (("id",), ("id", "note")):
            new = {"schema": record(*names)}
            httpx.post(f"{registry.url}/subjects/{subject}/versions", json=new).raise_for_status()
        arguments = ("-b", kafka.bootstrap_servers, "--allow-changes", "--schema-registry", registry.url)
        with console(*arguments) as address:
            page = open_page(f"{address}/")
            page.get_by_role("link", name="Schemas").click()
            page.get_by_role("link", name=subject).click()
            page.get_by_label("compared with").select_option("1")
            page.get_by_role("button", name="Show").click()
            expect(page.get_by_role("region", name="What has changed").locator("ins").first).to_be_visible()
            assert barriers(page, axe_source) == []
            page.get_by_role("link", name="Register a version").click()
            page.get_by_label("Schema", exact=True).fill(record("id", "note", "state"))
            page.get_by_role("button", name="Preview").click()
            expect(page.locator("code.command")).to_contain_text("curl -f -X POST")
            assert barriers(page, axe_source) == []
            page.get_by_role("button", name="Register the schema").click()
            page.get_by_role("link", name="See what it is now").click()
            expect(page.locator("dl.facts")).to_contain_text("Version3")


def test_access_is_given_and_a_group_is_edited_by_partition(
    address: str, kafka: Broker, topic: str, open_page: OpenPage, axe_source: str
) -> None:
    kafka.produce(topic, [("k", "v")] * 4)
    ((partition, end),) = [(number, end) for number, end in enumerate(ends(kafka, topic)) if end]
    consumer = kafka.consumer(topic)
    consumer.commit(offsets=[TopicPartition(topic, partition, end)], asynchronous=False)
    consumer.close()
    page = open_page(f"{address}/group?id={topic}")
    page.get_by_role("link", name="Edit the offset of each partition").click()
    expect(page.get_by_label("Offsets", exact=True)).to_have_value(f"{topic} {partition} {end}")
    page.get_by_label("Offsets", exact=True).fill(f"{topic} {partition} 1")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("button", name="Commit these offsets")).to_be_visible()
    assert barriers(page, axe_source) == []
    page.get_by_role("button", name="Commit these offsets").click()
    expect(page.get_by_role("status")).to_contain_text("Done.")
    assert kafka.committed(topic) == {topic: {partition: 1}}
    page.get_by_role("link", name="Access").click()
    page.get_by_role("link", name="Set quotas").click()
    page.get_by_label("User", exact=True).fill(topic)
    page.get_by_label("Quotas", exact=True).fill("producer_byte_rate=1000000")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Set these quotas").click()
    page.get_by_role("link", name="See what it is now").click()
    expect(page.get_by_role("row", name=topic)).to_contain_text("producer_byte_rate")
    assert barriers(page, axe_source) == []


def ends(kafka: Broker, topic: str) -> list[int]:
    """The end of each of both partitions."""
    consumer = kafka.consumer(f"{topic}-ends")
    found = [consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=30)[1] for number in (0, 1)]
    consumer.close()
    return found
