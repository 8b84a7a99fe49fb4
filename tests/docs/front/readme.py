"""What README takes from elsewhere: `python -m tests.docs.front.readme` writes it, a test keeps it up to date.

Figures are cells of the benchmarks' tables (docs/speed/data), what is not there is from the ledgers of the handlers and
the tables of settings.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from compat_tests import compatibility
from kpybroker.config.keys.status import HONOURED
from tests.docs.configuration import AREAS

ROOT: Final = Path(__file__).parents[3]
README: Final = ROOT / "README.md"
DATA: Final = ROOT / "docs" / "speed" / "data"
OURS: Final = "kpybroker"
KAFKAS: Final = "Kafka 3.9.1"
START, SPEED, TESTS = "bench-start", "bench", "bench-testing"
KAFKA_4, NEXT_TO_4 = "Kafka 4.3.1", "bench-kafka-4"
ONE_RECORD: Final = "one-record requests, 32 connections, 1 in"
MEMORY: Final = "resident memory, idle, MB"

FIGURES: Final = (
    ("from start to the first message", START, 0, "from start to the first message", "s", "start-and-memory"),
    ("memory when idle, resident", SPEED, 2, MEMORY, "MB", "start-and-memory"),
    ("a test with a topic and a group of its own", TESTS, 0, "each further test with a topic", "ms", "in-a-test-suite"),
    ("stock Java producer, 1 KB, `acks=all`", SPEED, 0, "Java produce 1 KB, acks=all", "MB/s", "all-figures"),
    ("stock Java consumer at the end of the log", SPEED, 0, "Java consume 1 KB, tail", "MB/s", "all-figures"),
    ("requests of one record, 32 connections", SPEED, 0, ONE_RECORD, "/s", "all-figures"),
)
"""What is shown, and which cells it is: command, table, beginning of the row, unit, place on the page of speed."""

FIGURES_4: Final = {
    "from start to the first message": (1, "from start to the first message"),
    MEMORY: (1, MEMORY),
    "Java produce 1 KB, acks=all": (0, "Java produce 1 KB, acks=all"),
    "Java consume 1 KB, tail": (0, "Java consume 1 KB, tail"),
    ONE_RECORD: (0, ONE_RECORD),
}
"""Which of them were measured next to Kafka 4 too, by their rows: table and row of that command's file."""


def table_of(command: str, index: int) -> Any:
    """One table that a benchmark has written."""
    return json.loads((DATA / f"{command}.json").read_text(encoding="utf-8"))["tables"][index]


def value(command: str, index: int, row: str, column: str) -> str:
    """The figure with which a cell begins."""
    table = table_of(command, index)
    at = next(number for number, head in enumerate(table["head"]) if head.startswith(column))
    cell = next(one for one in table["rows"] if one[0].startswith(row))[at]
    return str(cell.split()[0])


def figures() -> list[str]:
    """The table of figures."""
    lines = ["| | kpybroker | Kafka 3.9.1 | kpybroker | Kafka 4.3.1 | |", "|---|---|---|---|---|---|"]
    for name, command, table, row, unit, place in FIGURES:
        cells = [f"{value(command, table, row, column)} {unit}" for column in (OURS, KAFKAS)]
        cells += [
            f"{value(NEXT_TO_4, *FIGURES_4[row], one)} {unit}" if row in FIGURES_4 else "" for one in (OURS, KAFKA_4)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} | [table](docs/speed/index.md#{place}) |")
    return lines


def not_there() -> list[str]:
    """What Kafka has and this has not, with what a client sees."""
    seen = {
        compatibility.KRAFT: "a cluster is coordinated by ZooKeeper or by an embedded tree",
    }
    lines = []
    for subject, apis in compatibility.NOT_HERE.items():
        lines.append(f"- **{subject}** ({len(apis)} APIs): not advertised; {seen[subject]}.")
    lines.append("- Of APIs that are served:")
    lines += [f"  - {', '.join(names)}: {text}." for text, names in compatibility.absent().items()]
    without = {name: sum(row[-1] != HONOURED for row in rows) for name, rows in AREAS}
    total = sum(len(rows) for _, rows in AREAS)
    areas = ", ".join(f"{name} {number}" for name, number in without.items() if number)
    lines.append(
        f"- {sum(without.values())} of {total} settings have no effect, and are named in the log when they are set "
        f"({areas}): [each with its reason](docs/reference/configuration.md)."
    )
    return [one for line in lines for one in wrapped(line)]


def wrapped(line: str) -> list[str]:
    """A line of a list as lines of the width that the pages have."""
    import textwrap

    indent = len(line) - len(line.lstrip()) + 2
    return textwrap.wrap(line, 120, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


PARTS: Final = {"figures": figures, "not there": not_there}


def written(text: str) -> str:
    """README with its parts as they are now."""
    for name, part in PARTS.items():
        begin, end = f"<!-- {name}: written by python -m tests.docs.front.readme -->", f"<!-- end of {name} -->"
        made = "\n".join([begin, "", *part(), "", end])
        assert text.count(begin) == text.count(end) == 1, name
        text = text.partition(begin)[0] + made + text.partition(end)[2]
    return text


if __name__ == "__main__":
    README.write_text(written(README.read_text(encoding="utf-8")), encoding="utf-8")
