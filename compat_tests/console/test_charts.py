"""Charts in a real browser: known points are drawn, said and kept apart by gaps, in the zone of the whole page."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from compat_tests.console.conftest import OpenPage, barriers
from kpybroker.testing import Broker

STEP_S = 10
POINTS = 60
RATE = 15.0
TOP = 1536.0
PLOT = "[data-chart$='rates.json']"
ON_THE_LINE = """([selector, at]) => {
    const canvas = document.querySelector(`${selector} canvas`);
    const box = canvas.getBoundingClientRect();
    const over = document.querySelector(`${selector} .u-over`).getBoundingClientRect();
    const ratio = canvas.width / box.width;
    const x = Math.round((over.left - box.left + at * over.width) * ratio);
    const column = canvas.getContext("2d").getImageData(x, 0, 1, canvas.height).data;
    const found = [];
    for (let y = 0; y < canvas.height; y += 1)
        if (column[y * 4 + 3] > 200 && column[y * 4 + 2] > column[y * 4] + 30) found.push(y);
    return found.map(y => 1 - (y / ratio - (over.top - box.top)) / over.height);
}"""
"""Where the line is in a column of the canvas: of the height of the plot, from below."""


@pytest.fixture
def charted(address: str, kafka: Broker, open_page: OpenPage) -> Any:
    """Opens the page of a topic whose chart has a steady rate, a gap of a quarter, and a second steady rate."""
    asked: list[str] = []

    def serve(route: Route) -> None:
        asked.append(route.request.url)
        now = time.time()
        times = [now - (POINTS - number) * STEP_S for number in range(POINTS)]
        values = [None if 20 < number < 35 else RATE if number < 30 else TOP for number in range(POINTS)]
        route.fulfill(content_type="application/json", body=json.dumps([times, values]))

    def make(**options: Any) -> tuple[Page, list[str]]:
        page = open_page(f"{address}/topics", **options)
        page.route(re.compile(r"/topics/orders/rates\.json"), serve)
        page.goto(f"{address}/topics/orders")
        expect(page.locator(PLOT)).to_have_attribute("data-drawn", "yes")
        return page, asked

    return make


def test_a_known_load_is_drawn_where_it_is_with_its_gap(charted: Any) -> None:
    page, _ = charted()
    high = page.evaluate(ON_THE_LINE, [PLOT, 0.85])
    assert high
    assert max(high) == pytest.approx(1 / 1.1, abs=0.04)
    assert page.evaluate(ON_THE_LINE, [PLOT, 0.47]) == []


def test_numbers_have_units_and_moments_the_zone_of_the_page(charted: Any, axe_source: str) -> None:
    page, asked = charted(timezone_id="Asia/Kolkata", viewport={"width": 1280, "height": 900})
    chart = page.locator(PLOT)
    expect(chart.locator(".chart-legend")).to_contain_text("last 1.54 k/s · least 15/s · most 1.54 k/s · UTC")
    chart.locator(".u-over").hover(position={"x": 30, "y": 40})
    tip = chart.locator(".chart-tip")
    expect(tip).to_contain_text("UTC · 15/s records")
    in_utc = tip.inner_text().split()[0]
    page.get_by_label("Times").select_option("local")
    expect(chart.locator(".chart-legend")).to_contain_text("Asia/")
    page.get_by_label("Charts of").select_option("6h")
    expect(chart.locator(".chart-legend")).to_contain_text("most")
    page.wait_for_function("() => document.querySelectorAll('[data-chart] canvas').length === 1")
    assert any("range=6h" in url for url in asked)
    assert re.fullmatch(r"\d\d:\d\d:\d\d", in_utc)
    assert barriers(page, axe_source) == []
    page.goto(page.url.rsplit("/topics", 1)[0] + "/topics/orders/messages/0/0")
    moment = page.locator("time").first
    expect(moment).to_have_text(re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+05:30$"))
    page.get_by_label("Times").select_option("relative")
    expect(moment).to_have_text(re.compile(r"^\d+ (s|min|h) ago$"))
    page.get_by_label("Times").select_option("utc")
    expect(moment).to_have_text(re.compile(r"Z$"))


def test_labels_are_neither_cut_nor_over_each_other(charted: Any) -> None:
    for width in (360, 1280):
        page, _ = charted(viewport={"width": width, "height": 800})
        places = page.evaluate(
            """(selector) => {
                const plot = document.querySelector(`${selector} .uplot`).getBoundingClientRect();
                const over = document.querySelector(`${selector} .u-over`).getBoundingClientRect();
                return [over.left - plot.left, plot.right - over.right];
            }""",
            PLOT,
        )
        assert places[0] >= 45  # "1.5 k/s", its tick and the space before it
        assert places[1] >= 10  # half of the last time
