"""The console of clusters that are not one broker of ours: real Kafka 3.9 and 4.3, and three brokers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import NewTopic
from playwright.sync_api import Page, expect

from compat_tests.console.conftest import START_S, OpenPage, barriers, console
from compat_tests.support.kafkas import kafka_3, kafka_4
from compat_tests.support.quick import admin_client
from kpybroker.config.docs.lookup import topic_doc
from kpybroker.testing import Cluster

TOPIC, GROUP = "orders", "billing"


def fill(bootstrap: str, replicas: int = 1) -> None:
    """A topic of three partitions with thirty records in it, one transaction, and a group that has read half of it."""
    admin = admin_client(bootstrap)
    admin.create_topics([NewTopic(TOPIC, 3, replicas)])[TOPIC].result()
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "payments"})
    producer.init_transactions(START_S)
    producer.begin_transaction()
    for number in range(30):
        producer.produce(TOPIC, f'{{"order": {number}}}', f"customer-{number}", partition=number % 3)
    producer.commit_transaction(START_S)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    read = 0
    while read < 15:
        read += len(consumer.consume(1, timeout=1))
    consumer.commit(asynchronous=False)
    consumer.close()


@contextmanager
def three_of_ours(_: Path) -> Iterator[str]:
    with Cluster(3, start_timeout=START_S) as cluster:
        yield cluster.bootstrap_servers


CLUSTERS = {"3.9": (kafka_3, 1, "3.9"), "4.3": (kafka_4, 1, "4.3"), "three of ours": (three_of_ours, 3, "4.3")}
PARAMETERS = [
    pytest.param("3.9", marks=pytest.mark.wide),
    pytest.param("4.3", marks=pytest.mark.wide),
    "three of ours",
]


@pytest.fixture(scope="module", params=PARAMETERS)
def elsewhere(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a console that may change a cluster, and which Kafka its brokers look like."""
    start, replicas, version = CLUSTERS[request.param]
    with ExitStack() as stack:
        bootstrap = stack.enter_context(start(tmp_path_factory.mktemp("cluster")))
        fill(bootstrap, replicas)
        yield stack.enter_context(console("-b", bootstrap, "--allow-changes")), version


SHOWN = {
    "/": "Kafka {version}",
    "/topics?sizes=1": TOPIC,
    f"/topics/{TOPIC}": "Records/s",
    f"/topics/{TOPIC}/configuration": "retention.ms",
    f"/topics/{TOPIC}/messages": "customer-29",
    f"/topics/{TOPIC}/messages/0/0": '"order": 0',
    f"/topics/{TOPIC}/groups": GROUP,
    "/groups?lag=1": GROUP,
    f"/group?id={GROUP}": "Committed",
    f"/change/group-move?group={GROUP}&to=start&preview=1": "would move",
    f"/transactions?topic={TOPIC}": "payments",
    "/replication": "none: every replica is in sync",
    "/log-dirs": "online",
    "/logs": "Kafka gives its log to no client",
}


def seen(page: Page, text: str) -> None:
    expect(page.locator("main")).to_contain_text(text)
    assert page.locator("[aria-label='What failed']").count() == 0


def test_every_page_shows_what_it_has(elsewhere: tuple[str, str], open_page: OpenPage, axe_source: str) -> None:
    address, version = elsewhere
    page = open_page(address)
    for path, text in SHOWN.items():
        page.goto(address + path)
        seen(page, text.format(version=version))
    page.goto(f"{address}/")
    page.locator("tbody th a").first.click()
    seen(page, "log.retention.ms")
    assert barriers(page, axe_source) == []


def test_settings_are_explained_by_their_broker(
    elsewhere: tuple[str, str], open_page: OpenPage, request: pytest.FixtureRequest
) -> None:
    is_ours = request.node.callspec.params["elsewhere"] == "three of ours"
    kafkas = "This configuration controls the maximum time we will retain a log before"
    page = open_page(f"{elsewhere[0]}/topics/{TOPIC}/configuration")
    row = page.locator("tr", has=page.get_by_role("rowheader", name="retention.ms", exact=True))
    expect(row).to_contain_text(str(topic_doc("retention.ms")) if is_ours else kafkas)


def test_acls_are_a_note_and_the_rest_of_access_is_shown(elsewhere: tuple[str, str], open_page: OpenPage) -> None:
    address, _ = elsewhere
    page = open_page(f"{address}/access")
    expect(page.locator("main")).to_contain_text("SECURITY_DISABLED")
    expect(page.get_by_role("heading", name="Quotas")).to_be_visible()
    expect(page.locator("[aria-label='What failed'] p")).to_have_count(1)


def test_a_message_is_produced_and_a_group_moved(elsewhere: tuple[str, str], open_page: OpenPage) -> None:
    address, _ = elsewhere
    page = open_page(f"{address}/topics/{TOPIC}/produce")
    page.locator("[name=value]").fill("from the console")
    page.get_by_role("button", name="Produce", exact=True).click()
    expect(page.locator("pre").last).to_contain_text("from the console")
    page.goto(f"{address}/group?id={GROUP}")
    page.locator("[name=to]").select_option("start")
    page.get_by_role("button", name="Preview", exact=True).click()
    page.get_by_role("button", name="Move the group").click()
    expect(page.locator("tbody tr", has_text="moved").first).to_be_visible()


def test_partitions_are_moved_leaders_elected_and_a_topic_is_made_and_deleted(
    elsewhere: tuple[str, str], open_page: OpenPage, request: pytest.FixtureRequest
) -> None:
    address, _ = elsewhere
    page = open_page(f"{address}/topics")
    page.get_by_role("link", name="Create a topic").click()
    page.get_by_label("Topic", exact=True).fill("made")
    page.get_by_label("Partitions", exact=True).fill("2")
    page.get_by_label("Replicas", exact=True).fill("1")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Create made").click()
    expect(page.get_by_role("status")).to_contain_text("Done.")
    if request.node.callspec.params["elsewhere"] == "three of ours":
        page.goto(f"{address}/replication")
        page.get_by_role("link", name="Move partitions").click()
        page.get_by_label("Topics and partitions", exact=True).fill("made")
        page.get_by_label("To the brokers", exact=True).fill("1,2")
        page.get_by_label("Replicas of each", exact=True).fill("2")
        page.get_by_role("button", name="Preview").click()
        page.get_by_role("button", name="Move these partitions").click()
        expect(page.get_by_role("row", name="made").first).to_contain_text("moving")
        page.get_by_role("link", name="See what it is now").click()
        expect(page.get_by_role("region", name="Moves under way")).to_contain_text("none")
    page.goto(f"{address}/change/topic-delete?topic=made&preview=1")
    page.get_by_label("Type made again").fill("made")
    page.get_by_role("button", name="Delete made").click()
    expect(page.get_by_role("row", name="made")).to_contain_text("deleted")
