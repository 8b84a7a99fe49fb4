"""Leaders and moves of one broker's cluster: what can be refused there. `compat_tests/console/test_kafkas.py` moves
partitions between three.
"""

from __future__ import annotations

import pytest

from tests.console.changes.conftest import command_of, previewed
from tests.console.conftest import MakeClient, rows_of


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
