"""No figure on a page is older than its table, and README has what the ledgers have.

A fact is a way to say a figure, looked for in README, all pages but decisions and runs of benchmarks, the Makefile, and
the code: wherever it is said, the number is that of the table, as exact as it is said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from compat_tests import compatibility
from kpybroker.broker.requests.served.apis import SERVED
from tests.docs.front import readme
from tests.support.programs.pytest_runs import run_pytest

ROOT = Path(__file__).resolve().parents[3]
UNIT = r"(?:s|ms|µs|MB|GB|MB/s|minutes?|hours?|times|%)"
FIGURE = re.compile(rf"(?<![\w.,])\d[\d.,]*(?:-| )?{UNIT}(?![\w/])")


class Fact(NamedTuple):
    """`said`: expressions with the figure as their group. `cell`: command, table, row, column."""

    said: tuple[str, ...]
    cell: tuple[str, int, str, str]


FACTS = (
    Fact(
        (
            r"(?:ready|starts) in ([\d.]+) s\b",
            r"recovers nothing and takes ([\d.]+) s\b",
            r"a minute, then ([\d.]+) s\b",
        ),
        ("bench-start", 0, "from start to the first message", "kpybroker"),
    ),
    Fact(
        (r"([\d.]+) MB (?:of memory|(?:when )?idle)\b", r"resident are ([\d.]+) MB"),
        ("bench", 2, "resident memory, idle, MB", "kpybroker"),
    ),
    Fact((r"([\d.]+) MB of Kafka without ZooKeeper",), ("bench", 2, "resident memory, idle, MB", "Kafka")),
    Fact((r"highest resident memory was ([\d.]+) MB",), ("bench", 2, "highest resident memory", "kpybroker")),
    Fact(
        (r"\*\*200 connections with one record each in flight\*\*: ([\d.]+) times Kafka in this run",),
        ("bench", 0, "one-record requests, 200 connections", "ratio"),
    ),
    Fact((r"\*\*Cold replay\*\*: ([\d.]+) \(Java\)",), ("bench", 0, "Java consume 1 KB, cold replay", "share")),
    Fact(
        (r"\*\*Cold replay\*\*: [\d.]+ \(Java\) and ([\d.]+) \(kcat\)",),
        ("bench", 0, "kcat consume 1 KB, cold", "share"),
    ),
    Fact((r"costs about ([\d.]+) µs more for the log",), ("bench-extras", 0, "a control channel", "more, µs")),
    Fact((r"without shortcuts, which takes some ([\d.]+) µs",), ("bench-extras", 0, "a fault of its API", "more, µs")),
    Fact((r"costs some ([\d.]+) µs of processor time more",), ("bench-extras", 0, "the request log", "more, µs")),
    Fact((r"10 000 ACLs a one-record Produce takes ([\d.]+) % longer",), ("bench-extras", 1, "Produce", "lost")),
    Fact((r"longer and a Fetch ([\d.]+) %",), ("bench-extras", 1, "Fetch", "lost")),
    Fact((r"ten thousand small ones take ([\d.]+) MB",), ("bench-extras", 2, "more", "MB")),
    Fact((r"MB, and a start ([\d.]+) s\.",), ("bench-extras", 2, "10 000 small schemas", "start, s")),
    Fact((r"that read texts take ([\d.]+) MB more",), ("bench-extras", 2, "10 000 small schemas", "MB of its workers")),
)


def pages() -> Iterator[tuple[str, str]]:
    """Name and text, in which a line break is a blank."""
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile", *sorted((ROOT / "docs").rglob("*.md"))]
    files += sorted((ROOT / "kpybroker").rglob("*.py"))
    for file in files:
        name = str(file.relative_to(ROOT))
        if "docs/decisions" not in name and "samples" not in name and "/wire/messages/" not in name:
            yield name, " ".join(file.read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return dict(pages())


def agrees(said: str, measured: str) -> bool:
    """Whether a number is the measured one, as exact as it is said."""
    digits = len(said.partition(".")[2])
    return float(said) == round(float(measured.replace(",", "").rstrip("%")), digits)


def test_a_number_agrees_as_exactly_as_it_is_said() -> None:
    assert agrees("0.2", "0.20")
    assert agrees("41", "40.8")
    assert not agrees("33", "31.6")
    assert not agrees("0.20", "0.21")


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.cell[2])
def test_every_figure_is_that_of_its_table(fact: Fact, texts: dict[str, str]) -> None:
    measured = readme.value(*fact.cell)
    found = [(name, said) for name, text in texts.items() for one in fact.said for said in re.findall(one, text)]
    assert found, "the figure is not said anywhere: remove it here"
    assert [(name, said) for name, said in found if not agrees(said, measured)] == []


def test_the_minutes_of_a_benchmark_are_those_of_its_last_run(texts: dict[str, str]) -> None:
    conditions = json.loads((readme.DATA / "bench.json").read_text(encoding="utf-8"))["conditions"]
    took = re.search(r"(\d+) minutes", conditions)
    assert took is not None
    ways = r"(\d+) quiet minutes|latency, CPU, memory \| (\d+) min"
    said = {(name, "".join(one)) for name, text in texts.items() for one in re.findall(ways, text)}
    assert {one for _, one in said} == {took[1]}, said


def test_readme_has_its_parts_in_the_order_of_a_readers_questions() -> None:
    text = readme.README.read_text(encoding="utf-8")
    what, _, rest = text.partition("\n\n")[2].partition("\n\n")
    assert len(re.findall(r"\.(?=\s|$)", what)) == 2, "what it is and for whom, in two sentences"
    parts = (
        "```python\n",
        "```text\n",
        "![",
        "```sh\npip install",
        "**Measured**",
        "**It works**",
        "**It does not have**",
    )
    places = [rest.index(part) for part in (*parts, "| you want to | read |")]
    assert places == sorted(places)
    assert rest.startswith(parts[0])
    needs = re.findall(r"^\| `((?:pip|make) [^`]+)` \| (.+) \| (.+) \| (.+) \|$", rest, re.MULTILINE)
    assert [command for command, *_ in needs] == re.findall(r"^((?:pip|make) \S+(?: \.)?)", rest, re.MULTILINE)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_every_figure_of_the_first_screens_has_a_table(page: str, texts: dict[str, str]) -> None:
    text = texts[page]
    for name in readme.PARTS:
        text = re.sub(rf"<!-- {name}: .*?<!-- end of {name} -->", "", text)
    for fact in FACTS:
        for one in fact.said:
            text = re.sub(one, "", text)
    assert FIGURE.findall(text) == []


def test_the_parts_of_readme_are_those_of_the_ledgers_and_tables() -> None:
    text = readme.README.read_text(encoding="utf-8")
    assert text == readme.written(text), "python -m tests.docs.front.readme"


def test_each_figure_of_readme_leads_to_its_table() -> None:
    titles = re.findall(r"^## (.*)$", (ROOT / "docs" / "speed" / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    places = {re.sub(r"[^\w]+", "-", title.lower()) for title in titles}
    assert {figure[5] for figure in readme.FIGURES} <= places


@pytest.mark.not_quick
def test_the_test_of_readme_has_the_output_that_is_shown(tmp_path: Path) -> None:
    text = readme.README.read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
    assert code is not None
    assert len(code[1].splitlines()) == 5

    def plain(output: str) -> str:
        return re.sub(r"-[0-9a-f]{8}\b", "-ID", " ".join(output.split()))

    run = run_pytest(tmp_path, code[1])
    assert run.counts == {"failed": 1}, run.output
    assert plain(code[2]) in plain(run.output)
    fixed = code[1].replace("kafka_producer.", "producer.").replace(", kafka_producer", "")
    fixed = fixed.replace(":\n", ":\n    producer = kafka_broker.producer(enable_idempotence=True)\n", 1)
    assert run_pytest(tmp_path, fixed).counts == {"passed": 1}


def test_what_is_not_served_is_all_that_kafka_4_3_has_and_this_has_not() -> None:
    """Its API keys are 0 to 92, without a gap."""
    missing = {key for apis in compatibility.NOT_HERE.values() for key in apis}
    assert missing.isdisjoint(int(key) for key in SERVED)
    assert missing | {int(key) for key in SERVED} == set(range(93))
