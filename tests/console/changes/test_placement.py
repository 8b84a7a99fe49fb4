"""Leaders and moves of one broker's cluster: what can be refused there. `compat_tests/console/test_kafkas.py` moves
partitions between three.
"""

from __future__ import annotations

import uuid

import pytest

from kpybroker.testing import Broker
from tests.console.changes.conftest import command_of, done, previewed
from tests.console.conftest import MakeClient, RunCommand, rows_of


def test_nothing_is_to_be_elected_where_first_replicas_lead(client: MakeClient) -> None:
    browser = client(allow_changes=True)
    page = previewed(browser, "elect").text
    assert rows_of(page, "Preview")[0] == ["nothing fits"]
    assert "There is nothing to change." in page
    assert "There is nothing to change." in previewed(browser, "elect-unclean", places="orders").text
    assert command_of(previewed(browser, "elect-unclean", places="orders:0").text).endswith(" orders:0")


def test_partitions_that_are_there_already_stay(client: MakeClient) -> None:
    page = previewed(client(allow_changes=True), "move", places="orders:0-1", to="0").text
    assert [row[1:] for row in rows_of(page, "Preview")] == [["0", "0", "0", "stays"], ["1", "0", "0", "stays"]]


@pytest.mark.parametrize(
    ("key", "field", "values"),
    [
        ("move", "to", {"places": "orders", "to": "7"}),
        ("move", "to", {"places": "orders", "to": "one"}),
        ("move", "replicas", {"places": "orders", "replicas": "x"}),
        ("move", "throttle", {"places": "orders", "to": "0", "throttle": "0"}),
        ("move", "places", {"places": "orders:9", "to": "0"}),
        ("move", "places", {"places": ""}),
        ("elect", "places", {"places": "a/b"}),
        ("elect-unclean", "places", {"places": ""}),
        ("move-cancel", "places", {"places": "orders:x"}),
    ],
)
def test_bad_input_marks_its_field(client: MakeClient, key: str, field: str, values: dict[str, str]) -> None:
    page = previewed(client(allow_changes=True), key, **values)
    assert page.status_code == 400
    assert f'name="{field}"' in page.text.split('aria-invalid="true"')[0].rsplit("<", 1)[1]
    assert f'name="places" value="{values["places"]}"' in page.text


def test_moves_under_way_are_on_the_page_of_replication(client: MakeClient) -> None:
    page = client(allow_changes=True).get("/replication").text
    assert rows_of(page, "Moves under way")[0] == ["none"]
    assert 'href="/change/elect?preview=1"' in page
    assert 'href="/change/move"' in page


def test_the_limits_of_moves_that_have_ended_are_removed(
    client: MakeClient, broker: Broker, run_command: RunCommand
) -> None:
    name, browser = f"slow-{uuid.uuid4().hex[:8]}", client(allow_changes=True)
    broker.create_topic(name, 1)
    limits = {
        ("topic", name, "leader.replication.throttled.replicas"): "0:0",
        ("broker", "0", "leader.replication.throttled.rate"): "1000",
    }

    def limit() -> list[list[str]]:
        for (kind, of, key), value in limits.items():
            done(browser, "config", kind=kind, name=of, key=key, value=value)
        page = previewed(browser, "throttle-end").text
        assert [row[:4] for row in rows_of(page, "Preview")] == [[*one, value] for one, value in limits.items()]
        return rows_of(done(browser, "throttle-end").text, "Result")

    assert [row[-1] for row in limit()] == ["removed", "removed"]
    page = previewed(browser, "throttle-end").text
    assert "There is nothing to change." in page
    assert run_command(command_of(page)).code == 0
