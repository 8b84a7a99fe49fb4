"""Every check of the house, on the whole tree: rooms, users of modules, docstrings, words, section comments.

python -m tests.house
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tests.house import comments, docstrings, rooms, users, words

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ("kpybroker",)
CODE = (*PACKAGE, "protocol_specs", "tests", "compat_tests")
PROSE = ("docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")

CHECKS: dict[str, tuple[Callable[[Iterable[Path]], Iterator[str]], tuple[str, ...]]] = {
    "rooms": (rooms.findings, PACKAGE),
    "users": (users.findings, PACKAGE),
    "docstrings": (docstrings.findings, PACKAGE),
    "words": (words.findings, CODE + PROSE),
    "section comments": (comments.findings, CODE),
}


def main() -> int:
    """Print each finding, and a count for each check; 1 if there is any finding."""
    failed = False
    for name, (check, places) in CHECKS.items():
        found = list(check(ROOT / place for place in places))
        failed = failed or bool(found)
        print(*found, f"{name}: {len(found)} findings", sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
