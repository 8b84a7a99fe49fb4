"""Each of our cells in the comparisons of tools is a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "tools-compared.md"


def cells() -> list[str]:
    """The last column of each table, row by row."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    rows = [row for row in rows if not row.startswith("| operation |")]
    return [row.rstrip(" |").rpartition("|")[2].strip() for row in rows]


def test_every_operation_is_shown_by_a_test() -> None:
    files = [path for folder in ("tests", "compat_tests") for path in (ROOT / folder).rglob("test_*.py")]
    known = {name for path in files for name in re.findall(r"def (test_\w+)\(", path.read_text())}
    found = cells()
    assert len(found) > 65
    for cell in found:
        assert re.fullmatch(r"`test_\w+`", cell), f"no test: {cell}"
        assert cell.strip("`") in known, f"{cell} does not exist"
