"""The site is built once, here: a warning or a broken link fails, and what pages take from the code is on them.

`make docs` builds it in the same way. Without graphviz it is built as text, which has no pictures.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD_S_MAX = 600

pytest.importorskip("sphinx", reason="the docs extra is not installed")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    builder = "html" if shutil.which("dot") else "text"
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", builder, "docs", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=BUILD_S_MAX)
    assert done.returncode == 0, done.stderr
    return out


def words_of(site: Path, page: str) -> str:
    """What a reader of the page sees."""
    text = site / f"{page}.txt"
    if text.exists():
        return text.read_text(encoding="utf-8")
    main = (site / f"{page}.html").read_text(encoding="utf-8").partition('<article role="main"')[2]
    return unescape(re.sub(r"<[^>]*>", "", main.partition("</article>")[0]))


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
    assert text in words_of(site, page)
