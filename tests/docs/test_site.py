"""What the site takes from the code is on its pages. Built without pictures, so that graphviz is not needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytest.importorskip("sphinx", reason="the docs extra is not installed")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "text", "docs", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("reference/command-line", "A cluster of so many brokers"),
        ("reference/command-line", "kpybroker group seek copies --to-group readers"),
        ("guides/command-line", "orders.jsonl"),
        ("reference/exit-codes", "a log directory is locked by another broker"),
        ("reference/errors", "OFFSET_OUT_OF_RANGE"),
        ("reference/python-api", "encode(message: Message, version: int)"),
        ("reference/configuration", "log.retention.hours"),
        ("internals/rooms/handlers", "join_group"),
        ("speed/index", "from start to the first"),
        ("guides/ci", "def test_an_order_arrives"),
    ],
)
def test_a_page_has_what_is_taken_from_elsewhere(site: Path, page: str, text: str) -> None:
    assert text in (site / f"{page}.txt").read_text(encoding="utf-8")
