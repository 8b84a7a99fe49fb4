"""Pages that are followed from their first command to their last, and why the others are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.docs.in_order import Page, Reader, steps

FAKE = "needs places that only its reader has"
OTHER = "is followed by another test"
PAGES = (
    Page(
        "start/index",
        (),
        {"make install": OTHER, ". .venv/bin/activate": OTHER, "kpybroker dev": OTHER},
    ),
    Page(
        "guides/testing",
        ("--ephemeral", "--control", "0"),
        {
            "pytest --kafka-bootstrap kafka.example:9093 --kafka-command-config admin.properties": FAKE,
            "pytest --kafka-profile staging": FAKE,
        },
    ),
    Page("guides/retention"),
    Page("guides/groups-and-lag", before=("pip install confluent-kafka", "samples/start/first_message.py")),
    Page(
        "guides/schema-registry",
        ("--ephemeral", "--registry", "0"),
        {"samples/registry/users.sh": FAKE, "samples/registry/read_orders.py": OTHER},
    ),
    Page("guides/faults", ("--ephemeral", "--control", "0")),
    Page("guides/failing-cluster", ("--ephemeral", "--brokers", "3", "--control", "0")),
    Page("guides/client-metrics"),
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_left_out_of_a_page_is_on_it(page: Page) -> None:
    every = steps(page._replace(without={}))
    assert set(page.without) <= set(every)
    assert [step for step in every if step.startswith("pip install")], "the page says nowhere what to install"


@pytest.mark.wide
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_can_be_followed(page: Page, tmp_path: Path) -> None:
    printed = Reader(tmp_path).follow(page)
    assert len(printed) == len(steps(page)) >= 2
