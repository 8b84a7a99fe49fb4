"""The data files of the charts: what the benchmarks write, and that the page has the same tables."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from compat_tests.bench.measuring import report
from tests.support.programs.samples import ROOT, module_of

DATA = sorted((ROOT / "docs" / "speed" / "data").glob("*.json"))


@pytest.fixture(scope="module")
def charts() -> ModuleType:
    return module_of(ROOT / "docs" / "_ext" / "charts.py")


@pytest.fixture(scope="module")
def growth() -> ModuleType:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(ROOT / "docs" / "_ext")
        return module_of(ROOT / "docs" / "_ext" / "growth.py")


def test_a_run_becomes_data_and_markdown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- written by make bench: begin -->\nold\n<!-- written by make bench: end -->\nafter\n")
    monkeypatch.setattr(report, "PAGES", tmp_path)
    monkeypatch.setattr(report, "DATA", tmp_path)
    sentence = "2026-11-23, two cores. " * 10
    report.write_page("bench", [sentence.strip(), "### All", report.Table(["", "ratio"], [["raw", "1.40 (1 to 2)"]])])
    written = json.loads((tmp_path / "bench.json").read_text())
    assert written["conditions"] == sentence.strip()
    assert written["tables"] == [{"title": "All", "head": ["", "ratio"], "rows": [["raw", "1.40 (1 to 2)"]]}]
    assert "### All\n\n|  | ratio |\n| --- | --- |\n| raw | 1.40 (1 to 2) |\n<!--" in page.read_text()
    assert max(map(len, page.read_text().splitlines())) <= 120


def test_a_table_that_is_too_wide_is_two() -> None:
    head = ["", *"abcdefg", "CPU", "share"]
    wide = report.Table(head, [["raw", *"1234567", "8", "9"], ["tail", *"1234567", "", ""]])
    speed, costs = wide.markdown().split("\n\n")
    assert speed.splitlines()[0] == "|  | a | b | c | d | e | f | g |"
    assert [line.split(" | ")[0] for line in speed.splitlines()[2:]] == ["| raw", "| tail"]
    assert costs == "|  | CPU | share |\n| --- | --- | --- |\n| raw | 8 | 9 |"


def test_a_wide_table_is_cut_before_its_processor_time_or_where_a_page_ends() -> None:
    for head, second in (("broker CPU s", "broker CPU s"), ("broker MB", "9")):
        columns = [str(number) for number in range(report.COLUMNS_MAX + 3)]
        columns[5] = head
        first, rest = report.Table(columns, [columns]).markdown().split("\n\n")
        assert rest.startswith(f"| 0 | {second} |")
        assert second not in first.splitlines()[0].split(" | ")


@pytest.mark.parametrize("file", DATA, ids=lambda file: file.stem)
def test_a_page_has_the_rows_of_the_data(file: Path) -> None:
    page = "".join(page.read_text(encoding="utf-8") for page in sorted(report.PAGES.glob("*.md")))
    written = json.loads(file.read_text(encoding="utf-8"))
    if f"<!-- written by make {written['command']}: begin -->" not in page:
        pytest.skip("kept by hand")
    for table in written["tables"]:
        assert report.Table(table["head"], table["rows"]).markdown() in page


def test_a_figure_is_what_a_cell_begins_with(charts: ModuleType) -> None:
    assert charts.figure("57.1 (56.7 to 57.3)") == 57.1
    assert charts.figure("1,245") == 1245
    assert charts.figure("1.15 **missed**") == 1.15
    with pytest.raises(ValueError, match="does not begin with a number"):
        charts.figure("yes")


def test_a_chart_has_a_bar_for_each_row_a_legend_an_axis_and_a_text(charts: ModuleType) -> None:
    svg, text = charts.ratio_chart([("a & b", 0.5), ("c", 9.0)], title="rate to Kafka's", most=4.0)
    legend = 2
    assert svg.count("<rect") == 2 + legend
    assert "a &amp; b" in svg
    assert svg.rindex('class="worse"') < svg.rindex('class="better"')
    assert "kpybroker is better" in svg
    assert '<text x="312" y="116" class="title">rate to Kafka&#x27;s</text>' in svg
    assert text == "rate to Kafka's. a & b: 0.50; c: 9.00"


def test_no_value_of_a_chart_is_on_its_line(charts: ModuleType) -> None:
    svg, _ = charts.ratio_chart([("near", 0.97)], title="x", most=1.5)
    (at,) = re.findall(r'<text x="(\d+)" y="\d+" text-anchor="end" class="value">0.97', svg)
    line = max(float(x) for x in re.findall(r'<line x1="([\d.]+)"[^>]*stroke-dasharray', svg)[-1:])
    assert line < charts.WIDTH - charts.VALUE_WIDTH < int(at) <= charts.WIDTH


def test_growth_is_a_line_of_each_broker_with_its_values(growth: ModuleType, charts: ModuleType) -> None:
    head = ["", "unit", "Kafka 3.9.1, 100", "Kafka 3.9.1, 1,000", "kpybroker, 100", "kpybroker, 1,000", "limit"]
    table = charts.Table("Topics", head, [["start", "s", "2.0", "40", "0.5", "1,500 **missed**", "\u2264 4"]])
    panel = growth.panel(table, "start")
    assert panel.title == "Topics: start, s"
    assert panel.lines == {"Kafka 3.9.1": [(100, 2), (1000, 40)], "kpybroker": [(100, 0.5), (1000, 1500)]}
    svg, text = growth.growth_chart([panel] * 4)
    assert svg.count('class="line better"') == svg.count('class="line worse"') == 4
    assert svg.count("<circle") == 4 * 4
    assert text.startswith("Topics: start, s: Kafka 3.9.1 2 at 100, 40 at 1,000; kpybroker 0.5 at 100, 1500 at 1,000; ")


def test_a_step_of_ten_is_as_long_everywhere(growth: ModuleType) -> None:
    scale = growth.Scale(1, 1000, 0, 30)
    assert [round(scale(value)) for value in (1, 10, 100, 1000)] == [0, 10, 20, 30]
    assert growth.Scale(5, 5, 0, 30)(5) == 15


@pytest.mark.parametrize(("row", "says"), [("stop", "Topics has no row 'stop'"), ("alone", r"of \['kpybroker'\]")])
def test_growth_needs_its_row_and_both_brokers(growth: ModuleType, charts: ModuleType, row: str, says: str) -> None:
    table = charts.Table("Topics", ["", "unit", "Kafka 3.9.1, 100", "kpybroker, 100"], [["alone", "s", "", "1"]])
    with pytest.raises(ValueError, match=says):
        growth.panel(table, row)
