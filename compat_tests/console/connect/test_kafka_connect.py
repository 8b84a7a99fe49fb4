"""Kafka Connect 3.9.1 and 4.3.1 from the console: what an operator does with a connector, in a browser.

Also, that the Connect of `tests/console/connect/fake.py` says what these two say.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Page, expect

from compat_tests.connect.workers import DEADLINE_S, JARS, Place, Worker
from compat_tests.console.conftest import START_S, OpenPage, barriers_of, console
from compat_tests.console.pictures import taken
from compat_tests.console.test_pictures import SCREEN
from compat_tests.support import quick
from compat_tests.support.rest import call
from compat_tests.support.waiting import eventually
from kpybroker.testing import Broker
from tests.console.connect.fake import SINK, FakeConnect, serving

pytestmark = pytest.mark.wide

FILE = "org.apache.kafka.connect.file.FileStream"
CLICKS_MAX = 4
ANY = frozenset(("config", "partition", "offset"))
"""What may have any keys."""


class There(NamedTuple):
    """A console of a Kafka Connect, and a worker of that."""

    address: str
    worker: Worker
    broker: Broker
    directory: Path


@pytest.fixture(scope="module", params=JARS)
def there(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[There]:
    directory = tmp_path_factory.mktemp("connect")
    with Broker(topics={"orders": 1, "made": 1, "more-lines": 1, "shape": 1}, start_timeout=START_S) as broker:
        settings = {"exactly.once.source.support": "disabled"}
        worker = Worker("worker", Place(broker.bootstrap_servers, directory, jars=request.param), settings)
        try:
            worker.start()
            arguments = ("-b", broker.bootstrap_servers, "--connect", f"etl=http://{worker.id}")
            with console(*arguments, "--allow-changes") as address:
                yield There(address, worker, broker, directory)
        finally:
            worker.service.kill()


class Clicks:
    """Counts what is clicked since the front page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.count = 0

    def __call__(self, role: Any, name: str) -> None:
        self.page.get_by_role(role, name=name, exact=True).first.click()
        self.count += 1


def begin(open_page: OpenPage, there: There, *, has_errors: bool = False) -> tuple[Page, Clicks]:
    page = open_page(there.address, allows_failures=has_errors)
    return page, Clicks(page)


def picture(page: Page, name: str, request: pytest.FixtureRequest) -> None:
    """For the docs, with `--console-pictures`."""
    directory = request.config.getoption("--console-pictures")
    if directory:
        taken(page, "").save(Path(directory) / f"{name}.png", optimize=True)


def run(command: str) -> None:
    subprocess.run(["sh", "-c", command], check=True, capture_output=True)


def result(page: Page, status: str) -> None:
    """What was done has this status in each row."""
    expect(page.get_by_role("status").first).to_contain_text("Done.")
    expect(page.get_by_role("region", name="Result")).to_contain_text(status)


def is_state(there: There, name: str, wanted: list[str]) -> bool:
    """Of the connector, then of its tasks."""
    status = there.worker.ask("GET", f"connectors/{name}/status")
    found = [status["connector"]["state"], *(one["state"] for one in status["tasks"])]
    assert found == wanted, status
    return True


def test_a_connector_is_made_of_a_plugins_fields(open_page: OpenPage, there: There, axe_source: str) -> None:
    """The plugin's errors are at their fields, what was typed stays, and the command makes the same connector."""
    (lines := there.directory / "made.txt").write_text("one\ntwo\n")
    page, click = begin(open_page, there, has_errors=True)
    click("link", "Kafka Connect")
    click("link", "Make a connector in etl")
    assert barriers_of(page, axe_source) == []
    click("link", "FileStreamSourceConnector")
    assert barriers_of(page, axe_source) == []
    page.locator("[name='name']").fill("made")
    page.locator("[name='config.file']").fill(str(lines))
    page.locator("[name='config.tasks.max']").fill("many")
    page.get_by_role("button", name="Preview").press("Enter")
    expect(page.locator("[name='config.tasks.max'][aria-invalid=true]")).to_have_value("many")
    expect(page.get_by_text("Not a number of type INT").first).to_be_visible()
    expect(page.locator("[name='config.topic'][aria-invalid=true]")).to_be_visible()
    assert barriers_of(page, axe_source) == []
    page.locator("[name='config.tasks.max']").fill("1")
    page.locator("[name='config.topic']").fill("made")
    page.get_by_role("button", name="Preview").press("Enter")
    expect(page.get_by_role("region", name="Preview")).to_contain_text("would be set")
    assert there.worker.ask("GET", "connectors") == []
    command = page.locator("code.command").inner_text()
    click("button", "Make the connector")
    result(page, "set")
    assert click.count <= CLICKS_MAX
    there.worker.where("made")
    eventually(lambda: quick.end_offset(there.broker.bootstrap_servers, "made", 0) == 2, "both lines", DEADLINE_S)
    made = there.worker.ask("GET", "connectors/made/config")
    there.worker.insist("DELETE", "connectors/made")
    run(command)
    assert there.worker.insist("GET", "connectors/made/config") == made
    there.worker.where("made")


def test_a_connector_is_paused_resumed_and_configured(open_page: OpenPage, there: There, axe_source: str) -> None:
    page = open_page(f"{there.address}/connector?connect=etl&name=made")
    expect(page.get_by_role("region", name="Tasks")).to_contain_text("RUNNING")
    expect(page.get_by_role("region", name="Configuration")).to_contain_text("Source filename")
    assert barriers_of(page, axe_source) == []
    for verb, state in (("Pause", "PAUSED"), ("Resume", "RUNNING")):
        page, click = begin(open_page, there)
        click("link", "Kafka Connect")
        click("link", "made")
        click("link", verb)
        click("button", verb)
        result(page, "is being")
        assert click.count <= CLICKS_MAX
        eventually(partial(is_state, there, "made", [state, state]), state, DEADLINE_S)
    before = there.worker.insist("GET", "connectors/made/config")
    page, click = begin(open_page, there)
    click("link", "Kafka Connect")
    click("link", "made")
    click("link", "Configure")
    page.locator("[name='config.topic']").fill("more-lines")
    page.get_by_role("button", name="Preview").press("Enter")
    expect(page.get_by_role("region", name="Preview").get_by_role("row")).to_have_count(2)
    command = page.locator("code.command").inner_text()
    click("button", "Set the configuration")
    result(page, "set")
    assert click.count <= CLICKS_MAX
    after = {**before, "topic": "more-lines"}
    assert there.worker.insist("GET", "connectors/made/config") == after
    there.worker.insist("PUT", "connectors/made/config", before)
    run(command)
    assert there.worker.insist("GET", "connectors/made/config") == after


def test_a_connector_that_is_stopped_forgets_its_offsets_and_is_deleted(open_page: OpenPage, there: There) -> None:
    """Each only with its name typed again."""
    there.worker.insist("PUT", "connectors/made/stop")
    eventually(partial(is_state, there, "made", ["STOPPED"]), "stopped", DEADLINE_S)
    page = open_page(f"{there.address}/connector?connect=etl&name=made")
    expect(page.get_by_role("region", name="Offsets")).to_contain_text("position=")
    for link, button in (("Reset its offsets", "Forget its offsets"), ("Delete", "Delete the connector")):
        page.goto(f"{there.address}/connector?connect=etl&name=made")
        page.get_by_role("link", name=link, exact=True).click()
        page.get_by_label("Type made again").fill("made")
        page.get_by_role("button", name=button).click()
        expect(page.get_by_role("status").first).to_contain_text("Done.")
        if link != "Delete":
            assert there.worker.insist("GET", "connectors/made/offsets") == {"offsets": []}
    eventually(lambda: there.worker.ask("GET", "connectors") == [], "deleted", DEADLINE_S)


def test_a_failed_task_shows_its_trace_and_is_restarted(
    open_page: OpenPage, there: There, axe_source: str, request: pytest.FixtureRequest
) -> None:
    config = {"file": "exports/orders.txt", "topics": "orders"}
    there.worker.configure("failing", f"{FILE}SinkConnector", **config)
    eventually(partial(is_state, there, "failing", ["RUNNING", "FAILED"]), "a failed task", DEADLINE_S)
    page, click = begin(open_page, there)
    click("link", "Kafka Connect")
    click("link", "failing")
    expect(page.get_by_label("Trace of task 0")).to_contain_text("Exception")
    picture(open_page(page.url, color_scheme="light", **SCREEN), "connector", request)
    assert barriers_of(page, axe_source) == []
    (there.directory / "exports").mkdir()
    click("link", "Restart task 0")
    expect(page.get_by_role("region", name="Preview")).to_contain_text("would be restarted")
    click("button", "Restart the task")
    result(page, "is being restarted")
    assert click.count <= CLICKS_MAX
    there.worker.where("failing")
    there.worker.insist("DELETE", "connectors/failing")


def test_the_fake_says_what_kafka_connect_says(there: There) -> None:
    """The same requests get JSON of the same shape, in both."""
    (lines := there.directory / "shape.txt").write_text("one\n")
    there.worker.configure("shape", f"{FILE}SourceConnector", file=str(lines), topic="shape")
    there.worker.where("shape")
    eventually(lambda: there.worker.ask("GET", "connectors/shape/offsets")["offsets"] or None, "its offset", DEADLINE_S)
    with serving(FakeConnect()) as fake:
        fake.add("shape", SINK, table_url="http://t", table_code="x")
        for path, real_path in (
            ("", ""),
            ("connectors?expand=status&expand=info", "connectors?expand=status&expand=info"),
            ("connectors", "connectors"),
            ("connectors/shape", "connectors/shape"),
            ("connectors/shape/status", "connectors/shape/status"),
            ("connectors/shape/topics", "connectors/shape/topics"),
            ("connectors/shape/offsets", "connectors/shape/offsets"),
            ("connector-plugins", "connector-plugins"),
            (f"connector-plugins/{SINK}/config", f"connector-plugins/{FILE}SourceConnector/config"),
        ):
            ours, theirs = call("GET", f"{fake.url}/{path}"), there.worker.ask("GET", real_path)
            assert missing(shape(ours), shape(theirs)) == [], path
        validate = "connector-plugins/{}/config/validate"
        ours = call("PUT", f"{fake.url}/{validate.format(SINK)}", {"tasks.max": "x", "name": "n"})
        bad = {"tasks.max": "x", "name": "n", "connector.class": f"{FILE}SourceConnector"}
        theirs = there.worker.ask("PUT", validate.format(f"{FILE}SourceConnector"), bad)
        assert missing(shape(ours), shape(theirs)) == []
        for found in (ours, theirs):
            (error,) = [one["value"]["errors"] for one in found["configs"] if one["value"]["name"] == "tasks.max"]
            assert error[0] == "Invalid value x for configuration tasks.max: Not a number of type INT"
        for url in (fake.url, f"http://{there.worker.id}"):
            with pytest.raises(AssertionError, match=r'404 .*"error_code":.*404.*"message"'):
                call("GET", f"{url}/connectors/none/status")
    there.worker.insist("DELETE", "connectors/shape")


def shape(value: Any) -> Any:
    """Keys and types, without the keys of what may have any."""
    if isinstance(value, dict):
        return {key: "any" if key in ANY else shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def missing(ours: Any, theirs: Any, place: str = "") -> list[str]:
    """What the fake has that the real one has not, or has as another type."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        found = [f"{place}.{key}" for key in set(ours) - set(theirs)]
        for key in set(ours) & set(theirs):
            found += missing(ours[key], theirs[key], f"{place}.{key}")
        return found
    if isinstance(ours, list) and isinstance(theirs, list):
        return missing(ours[0], theirs[0], f"{place}[]") if ours and theirs else []
    return (
        []
        if "NoneType" in (ours, theirs) or (type(ours) is type(theirs) and ours == theirs)
        else [f"{place}: {json.dumps(ours)} is {json.dumps(theirs)}"]
    )
