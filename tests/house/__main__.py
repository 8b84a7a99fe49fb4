"""Every check of the house, on the whole tree: rooms, users, sizes, docstrings, names, words, section comments.

python -m tests.house
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tests.house import comments, docstrings, names, references, rooms, sizes, users, words
from tests.house.until_fixed import remaining

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ("kpybroker",)
CODE = (*PACKAGE, "protocol_specs", "tests", "compat_tests")
PAGES = ("docs", "README.md", "CONTRIBUTING.md")
PROSE = (*PAGES, "CHANGELOG.md")

CHECKS: dict[str, tuple[Callable[[Iterable[Path]], Iterator[str]], tuple[str, ...]]] = {
    "rooms": (rooms.findings, CODE),
    "users": (users.findings, PACKAGE),
    "long files and functions": (sizes.findings, CODE),
    "wide signatures": (sizes.wide_signatures, CODE),
    "docstrings": (docstrings.findings, PACKAGE),
    "names that do not exist": (references.findings, (*CODE, *PAGES, "conftest.py", "Makefile", "pyproject.toml")),
    "odd names": (names.findings, CODE),
    "words": (words.findings, CODE + PROSE),
    "responses by another name": (words.other_responses, (*CODE, *PAGES)),
    "section comments": (comments.findings, CODE),
}


def main() -> int:
    """Print each finding, and a count for each check; 1 if there is any that is not known."""
    gc.disable()  # trees have no circles, and are what there is to look through: again and again
    found = {name: list(check(ROOT / place for place in places)) for name, (check, places) in CHECKS.items()}
    unknown = remaining((finding for findings in found.values() for finding in findings), ROOT)
    print(*unknown, *(f"{name}: {len(findings)} findings" for name, findings in found.items()), sep="\n")
    return int(bool(unknown))


if __name__ == "__main__":
    sys.exit(main())
