"""What people do with the console: follow, produce, move a group, log in, and wait for a broker that is away."""

from __future__ import annotations

import re
import uuid

import pytest
from playwright.sync_api import Route, expect

from compat_tests.console.conftest import NAME, OpenPage, barriers, console
from kpybroker.console.web.live import CLIENT_ID
from kpybroker.testing import Broker, Fault

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\x00\x1b[31m\u202e"


@pytest.fixture
def topic(kafka: Broker) -> str:
    name = f"w-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(name, 1)
    return name


def test_messages_are_followed_live(address: str, kafka: Broker, topic: str, open_page: OpenPage) -> None:
    page = open_page(f"{address}/topics/{topic}/messages")
    page.get_by_role("button", name="Follow live").click()
    expect(page.locator("#summary")).to_have_attribute("data-following", "yes")
    kafka.produce(topic, [f"live {number}" for number in range(5)])
    expect(page.locator("#messages tr")).to_have_count(5)
    expect(page.locator("#messages tr").first).to_contain_text("live 4")
    expect(page.locator("#summary")).to_have_text("Following: 5 new.")
    page.get_by_role("button", name="Stop following").click()
    expect(page.locator("#summary")).to_have_text("Not following.")


def test_a_hostile_message_is_shown_as_text(
    address: str, kafka: Broker, topic: str, open_page: OpenPage, axe_source: str
) -> None:
    page = open_page(f"{address}/topics/{topic}/messages")
    page.get_by_role("button", name="Follow live").click()
    expect(page.locator("#summary")).to_have_attribute("data-following", "yes")
    kafka.produce(topic, [(HOSTILE, HOSTILE), (b"\xff\xfe", b"\xc3\x28\xa0\xa1")])
    expect(page.locator("#messages tr")).to_have_count(2)
    assert page.locator("#messages script, #messages img").count() == 0
    page.reload()
    expect(page.locator("#messages")).to_contain_text(
        "<script>alert(1)</script><img src=x onerror=alert(2)>␀␛[31m\\u202e"
    )
    assert barriers(page, axe_source) == []
    page.goto(f"{address}/topics/{topic}/messages/0/0")
    expect(page.locator("pre").last).to_contain_text("<script>alert(1)</script>")
    assert page.locator("main script, main img").count() == 0


def test_ten_megabytes_are_cut(address: str, kafka: Broker, open_page: OpenPage) -> None:
    name = f"large-{uuid.uuid4().hex[:8]}"
    admin = kafka.admin()
    from confluent_kafka.admin import NewTopic

    large = {"max.message.bytes": "20000000"}
    admin.create_topics([NewTopic(name, 1, config=large)])[name].result()
    producer = kafka.producer(message_max_bytes=20_000_000)
    producer.produce(name, b'{"a": "' + b"x" * 10_000_000 + b'"}')
    producer.flush()
    page = open_page(f"{address}/topics/{name}/messages")
    expect(page.locator("#messages tr")).to_contain_text("9.5 MiB")
    page.locator("#messages a").click()
    expect(page.get_by_text("Only the beginning is shown.")).to_be_visible()
    assert len(page.content()) < 600_000
    with page.expect_download() as download:
        page.get_by_text("Download the value").click()
    assert download.value.path().stat().st_size == 10_000_009


def test_a_message_is_produced(address: str, topic: str, open_page: OpenPage) -> None:
    page = open_page(f"{address}/topics/{topic}/produce")
    page.locator("[name=key]").fill("k")
    page.locator("[name=value]").fill('{"total": 7}')
    page.get_by_label("Headers").fill("trace=1")
    page.get_by_role("button", name="Produce", exact=True).click()
    expect(page.locator("h1")).to_have_text(f"{topic}-0 at 0")
    expect(page.locator("pre").last).to_contain_text('"total": 7')
    page.get_by_text("Copy into the produce form").click()
    expect(page.locator("[name=value]")).to_have_value('{"total": 7}')


def test_messages_are_filtered_and_downloaded(address: str, open_page: OpenPage) -> None:
    page = open_page(f"{address}/topics/orders/messages")
    page.get_by_label("JSONPath").fill("@.order == 7")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#messages tr")).to_have_count(1)
    with page.expect_download() as download:
        page.get_by_role("link", name="JSON lines", exact=True).last.click()
    assert '\\"order\\": 7' in download.value.path().read_text() or '\\"order\\":7' in download.value.path().read_text()


def test_a_search_goes_to_the_end(address: str, kafka: Broker, topic: str, open_page: OpenPage) -> None:
    kafka.produce(topic, ["needle", *("hay" for _ in range(45_000))])  # a page searches 20 000 before it is shown
    page = open_page(f"{address}/topics/{topic}/messages?value=needle")
    expect(page.locator("#summary")).to_contain_text("Everything older was searched.")
    expect(page.locator("#messages tr")).to_have_count(1)
    expect(page.locator("#messages tr")).to_contain_text("needle")
    expect(page.get_by_role("button", name="Search on")).to_have_count(0)
    expect(page.locator("#no-messages")).to_have_count(0)
    expect(page.get_by_role("link", name="Older")).to_have_count(0)


def test_a_search_is_stopped_and_goes_on(address: str, kafka: Broker, topic: str, open_page: OpenPage) -> None:
    kafka.produce(topic, ["needle", *("hay" for _ in range(45_000))])
    page = open_page("about:blank")
    page.route("**/search?*", held := Held(kafka))
    page.goto(f"{address}/topics/{topic}/messages?value=needle")
    summary = page.locator("#summary")
    expect(summary).to_contain_text("0 shown, 0 read")  # progress of the search; the page itself has read 20 000
    page.get_by_role("button", name="Stop searching").click()
    expect(summary).to_contain_text(re.compile(r"0 read .* older.*: not searched yet"))
    expect(page.get_by_role("button", name="Search on")).to_have_attribute("aria-pressed", "false")
    held.release()
    page.get_by_role("button", name="Search on").click()
    expect(summary).to_contain_text(re.compile("1 shown, .* read .* Everything older was searched."))
    expect(page.locator("#messages tr")).to_contain_text("needle")


class Held:
    """The first search waits for its first records until `release`."""

    def __init__(self, kafka: Broker) -> None:
        self._kafka = kafka
        self._faults: list[Fault] = []

    def __call__(self, route: Route) -> None:
        """Before the request is sent."""
        if not self._faults:
            self._faults.append(self._kafka.faults.hold("Fetch", client_id=CLIENT_ID, expect_unused=True))
        route.continue_()

    def release(self) -> None:
        """Later searches do not wait."""
        self._faults[0].remove()


def test_a_search_without_scripts_goes_on_page_by_page(
    address: str, kafka: Broker, topic: str, open_page: OpenPage
) -> None:
    kafka.produce(topic, ["needle", *("hay" for _ in range(45_000))])
    page = open_page(f"{address}/topics/{topic}/messages?value=needle", java_script_enabled=False)
    summary, rows = page.locator("#summary"), page.locator("#messages tr")
    pages = 1
    while not rows.count():
        expect(summary).to_contain_text(re.compile("0 shown, .* older than .*: not searched yet"))
        expect(page.get_by_role("button", name=re.compile("Search on|Stop"))).to_have_count(0)
        page.get_by_role("link", name="Older").click()
        page.wait_for_load_state()
        pages += 1
    expect(rows).to_contain_text("needle")
    expect(summary).to_contain_text(re.compile("1 shown, .* Everything older was searched."))
    assert pages > 2


def test_a_group_is_moved_after_its_preview(address: str, kafka: Broker, topic: str, open_page: OpenPage) -> None:
    kafka.produce(topic, ["a", "b", "c"])
    group = f"group of {topic}"
    consumer = kafka.consumer(group_id=group, auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.subscribe([topic])
    read = 0
    while read < 3:
        read += len(consumer.consume(3 - read, timeout=1))
    consumer.commit(asynchronous=False)
    consumer.close()
    page = open_page(f"{address}/groups?q={topic}")
    page.get_by_role("link", name=group).click()
    page.locator("[name=to]").select_option("shift")
    page.get_by_label("Offset, shift or time").fill("-2")
    page.get_by_role("button", name="Preview", exact=True).click()
    expect(page.locator("tbody tr")).to_contain_text("would move")
    assert kafka.committed(group) == {topic: {0: 3}}
    page.get_by_role("button", name="Move the group").click()
    expect(page.locator("tbody tr")).to_contain_text("moved")
    assert kafka.committed(group) == {topic: {0: 1}}


def test_a_password_opens_the_console(
    kafka: Broker, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, axe_source: str
) -> None:
    monkeypatch.setenv("KPYBROKER_CONSOLE_PASSWORD", "open sesame")
    with console("-b", kafka.bootstrap_servers) as address:
        page = open_page(f"{address}/topics", allows_failures=True)
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            assert barriers(page, axe_source) == [], scheme
        page.get_by_label("Password").fill("wrong")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_have_text("this is not the password")
        page.get_by_label("Password").fill("open sesame")
        page.get_by_role("button", name="Log in").click()
        expect(page.locator("h1")).to_have_text("Topics")
        page.get_by_role("button", name="Log out").click()
        page.goto(f"{address}/topics")
        expect(page.get_by_label("Password")).to_be_visible()


def test_forms_work_under_another_name_than_that_of_loopback(
    kafka: Broker, topic: str, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KPYBROKER_CONSOLE_PASSWORD", "open sesame")
    with console("-b", kafka.bootstrap_servers, "--allow-changes", "--allowed-host", NAME) as address:
        page = open_page(f"{address.replace('127.0.0.1', NAME)}/topics/{topic}/produce", allows_failures=True)
        page.get_by_label("Password").fill("open sesame")
        page.get_by_role("button", name="Log in").click()
        page.locator("[name=value]").fill("sent")
        page.get_by_role("button", name="Produce", exact=True).click()
        expect(page.locator("h1")).to_have_text(f"{topic}-0 at 0")


def test_a_download_is_produced_from_its_file(address: str, kafka: Broker, topic: str, open_page: OpenPage) -> None:
    page = open_page(f"{address}/topics/orders/messages?start=oldest&limit=5&partitions=0")
    with page.expect_download() as download:
        page.get_by_role("link", name="JSON lines", exact=True).last.click()
    page.goto(f"{address}/topics/{topic}/produce")
    page.locator("input[type=file]").set_input_files(download.value.path())
    expect(page.locator("[name=lines]")).to_have_value(download.value.path().read_text())
    page.get_by_role("button", name="Produce all").click()
    expect(page.get_by_role("status")).to_contain_text("messages were produced")
    assert len(kafka.records(topic)) == len(download.value.path().read_text().splitlines())


def test_a_message_opens_next_to_its_list(
    address: str, kafka: Broker, topic: str, open_page: OpenPage, axe_source: str
) -> None:
    kafka.produce(topic, [("k", f'{{"number": {number}}}') for number in range(3)])
    page = open_page(f"{address}/topics/{topic}/messages")
    drawer, value = page.get_by_role("dialog"), page.get_by_role("dialog").get_by_role("region", name="Value")
    first = page.locator("#messages a").first
    first.click()
    expect(drawer.get_by_role("heading", name=f"{topic}-0 at 2")).to_be_visible()
    expect(value).to_contain_text('"number": 2')
    expect(drawer.get_by_role("button", name="Previous")).to_be_disabled()
    assert barriers(page, axe_source) == []
    drawer.get_by_role("button", name="Next").click()
    expect(value).to_contain_text('"number": 1')
    expect(page.locator("#messages tr[aria-current]")).to_contain_text("0 · 1")
    drawer.get_by_role("button", name="Next").click()
    expect(value).to_contain_text('"number": 0')
    expect(drawer.get_by_role("button", name="Next")).to_be_disabled()
    drawer.get_by_role("button", name="Previous").click()
    expect(value).to_contain_text('"number": 1')
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(page.locator("#messages a").nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    drawer.get_by_role("link", name="Open its page").click()
    expect(page.locator("h1")).to_have_text(f"{topic}-0 at 1")
    page.get_by_role("link", name="Next").click()
    expect(page.locator("h1")).to_have_text(f"{topic}-0 at 2")
    page.get_by_role("link", name="Next").click()
    expect(page.get_by_role("status")).to_contain_text("There is no message after this one")
    assert barriers(page, axe_source) == []
