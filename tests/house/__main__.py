"""Every check of the house, on the whole tree: circles, modules named by string, rooms, docstrings, words, comments.

python -m tests.house
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.house import circles, comments, docstrings, rooms, strings, words

ROOT = Path(__file__).resolve().parents[2]


def import_circles() -> Iterator[str]:
    """Each circle of modules in `kpybroker`."""
    for circle in circles.circles(circles.import_graph(ROOT, "kpybroker")):
        yield f"import circle of {len(circle)}: {', '.join(circle)}"


CHECKS: dict[str, Callable[[], Iterator[str]]] = {
    "import circles": import_circles,
    "modules named by string": lambda: strings.named_modules(ROOT, "kpybroker"),
    "rooms": lambda: rooms.findings(ROOT / "kpybroker"),
    "docstrings": lambda: iter(docstrings.missing([docstrings.PACKAGE])),
    "words": lambda: words.findings(ROOT / place for place in words.PLACES if (ROOT / place).exists()),
    "section comments": lambda: comments.findings(ROOT / place for place in comments.PLACES),
}


def main() -> int:
    """Print each finding, and a count for each check; 1 if there is any finding."""
    failed = False
    for name, check in CHECKS.items():
        found = list(check())
        failed = failed or bool(found)
        print(*found, f"{name}: {len(found)} findings", sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
