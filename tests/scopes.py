"""Which tests are one worker's, and in which order they begin. `conftest.py` asks it.

A scope is a file, from its first test to its last, so that what its fixtures start is started once; or several files
that share more. What takes longest begins first, by `times.txt`, so that at the end
no worker is left alone with it.

    python -m tests.scopes .cache/test-costs.txt    # writes times.txt from what a run with --costs-to has measured
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("times.txt")
TABLE_S_MIN = 3
"""Quicker files are not in the table: when they run does not matter."""

CLIENTS = "clients and tools"
SPARK = "Spark"
SITE = "site of the docs"
FILES_OF_SITE = frozenset(("compat_tests/docs/test_site.py", "tests/docs/test_site.py"))
FOLDERS_OF_CLIENTS = (
    "compat_tests/clients/",
    "compat_tests/command_line/",
    "compat_tests/storage/",
    "compat_tests/tools/",
)
APART = frozenset(
    (
        "compat_tests/clients/test_delivery.py",
        "compat_tests/clients/transactions/test_open_transactions.py",
        "compat_tests/clients/test_restart.py",
        "compat_tests/command_line/test_metrics.py",
        "compat_tests/storage/test_compaction.py",
        "compat_tests/storage/test_compaction_files.py",
        "compat_tests/storage/test_log_rules.py",
        "compat_tests/storage/test_portable.py",
    )
)
"""Next to files that use the session's broker, those that start brokers of their own."""


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def scope_of(nodeid: str) -> str:
    """Tests of one scope are one worker's. Those of its broker are two scopes, which end with `test_log_files`."""
    file = file_of(nodeid)
    if file.startswith("compat_tests/spark/"):
        return SPARK
    if file in FILES_OF_SITE:
        return SITE
    return CLIENTS if file.startswith(FOLDERS_OF_CLIENTS) and file not in APART else file


@cache
def seconds_by_scope() -> Mapping[str, float]:
    """What the table says each scope takes."""
    seconds: dict[str, float] = {}
    for line in TABLE.read_text().splitlines():
        took, file = line.split()
        seconds[scope_of(file)] = seconds.get(scope_of(file), 0) + float(took)
    return seconds


def in_order(ids: list[str]) -> list[str]:
    """The longest scopes first, each in one piece; those of no known length as they were collected."""
    seconds = seconds_by_scope()
    begins: dict[str, int] = {}
    for position, nodeid in enumerate(ids):
        begins.setdefault(scope_of(nodeid), position)
    return sorted(
        ids,
        key=lambda nodeid: (
            -seconds.get(scope_of(nodeid), 0),
            begins[scope_of(nodeid)],
            "test_log_files" in nodeid,
        ),
    )


def write_table(costs: str) -> None:
    """Write `times.txt` from the lines of a costs file: processor seconds, seconds, file."""
    lines = [line.split(maxsplit=2)[1:] for line in costs.splitlines()]
    times = sorted((-float(took), file) for took, file in lines if file.endswith(".py"))
    TABLE.write_text("".join(f"{-took:.0f} {file}\n" for took, file in times if -took >= TABLE_S_MIN))


if __name__ == "__main__":
    write_table(Path(sys.argv[1]).read_text())
