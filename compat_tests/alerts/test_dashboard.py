"""The dashboard as a file, and its expressions on pages that were scraped: each has data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.alerts.conftest import MakeMeasured
from compat_tests.alerts.expressions import metrics_of
from compat_tests.alerts.promtool import DEPLOY, Question, ask
from compat_tests.alerts.scraped import JOB, Course, Page, scrape, total
from compat_tests.support import quick
from compat_tests.support.waiting import eventually
from kpybroker.system import IS_PORTABLE

DASHBOARD = json.loads((DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8"))
CHOSEN = {"job": JOB, "request": "Produce", "instance": ".*", "topic": ".*", "group": ".*", "__rate_interval": "1m"}
"""What Grafana puts in the place of each variable."""
ROWS = ["Cluster health", "Traffic", "Requests by stage", "Logs and the cleaner", "Groups and lag", "Process"]
CONNECTIONS = "kafka_server_socket_server_metrics_connections_software"
COLUMNS = 24
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DASHBOARD["panels"]
    return found


def expressions() -> Iterator[tuple[str, str]]:
    """The title of each panel with each of its expressions, as Grafana sends it."""
    for panel in panels():
        for target in panel.get("targets", []):
            yield panel["title"], chosen(target["expr"])


def chosen(text: str) -> str:
    return re.sub(r"\$(\w+)", lambda match: CHOSEN[match[1]], text)


@pytest.fixture(scope="module")
def pages(measured: MakeMeasured) -> tuple[Page, Page]:
    """Of a broker before and after somebody has written, read in a group, and asked for a topic that does not exist."""
    broker = measured(auto_create_topics_enable="false")
    quick.create_topic(broker.bootstrap, "orders")
    quick.fill(broker.bootstrap, "orders", ["one"])
    quick.read(broker.bootstrap, [("orders", 0)], 1, group="readers")
    quick.admin_client(broker.bootstrap).list_topics("missing", timeout=quick.DEADLINE_S)
    before = scrape({"broker": broker})
    quick.fill(broker.bootstrap, "orders", ["two"] * 10)
    client = quick.admin_client(broker.bootstrap)

    def with_a_connection() -> Page | None:
        client.list_topics(timeout=quick.DEADLINE_S)
        page = scrape({"broker": broker})
        return page if total(page, CONNECTIONS) else None

    return before, eventually(with_a_connection, "a page with the software of a connection")


on_linux = pytest.mark.skipif(IS_PORTABLE, reason="memory, disks and descriptors of a process are known on Linux only")


@on_linux
def test_every_metric_is_on_a_page(pages: tuple[Page, Page]) -> None:
    there = {series.name for series in pages[1]}
    queries = [
        variable["query"]["query"] for variable in DASHBOARD["templating"]["list"] if variable["type"] == "query"
    ]
    for text in [*(expression for _, expression in expressions()), *queries]:
        assert metrics_of(text)
        assert metrics_of(text) <= there, text


@on_linux
def test_every_expression_has_data(pages: tuple[Page, Page], tmp_path: Path) -> None:
    course = Course().hold(pages[0], 5).hold(pages[1], 1)
    metrics = {series.name for series in pages[1]}
    questions = [Question(course.end_s, f"count({text}) > bool 0", {"{}": 1}) for _, text in expressions()]
    assert len(questions) > 50
    ask(tmp_path, course, metrics, questions)


def test_panels_are_apart_and_have_what_grafana_needs() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= COLUMNS
        cells = {(place["x"] + dx, place["y"] + dy) for dx in range(place["w"]) for dy in range(place["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
        if panel["type"] != "row":
            assert panel["datasource"] == SOURCE
            assert panel["description"].endswith(".")
            assert [target["datasource"] for target in panel["targets"]] == [SOURCE] * len(panel["targets"])
            assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) > 0
    ids = [panel["id"] for panel in panels()]
    assert len(set(ids)) == len(ids)
    assert [panel["title"] for panel in panels() if panel["type"] == "row"] == ROWS


def test_variables_are_known_and_used() -> None:
    variables = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    assert variables["datasource"]["query"] == "prometheus"
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(panels())))
    assert used == {*variables, "__rate_interval"}
