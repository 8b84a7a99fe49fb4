"""Section comments have one style: `# --- what follows`, without dashes after it.

python -m tests.house.comments [--fix] [PATH...]
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

PLACES = ("kpybroker", "protocol_specs", "tests", "compat_tests")
_LOOKS_LIKE_ONE = re.compile(r"#\s*[-=#*~]{2,}")
_RULE = re.compile(r"^#\s*[-=#*~]{2,}\s*|\s*[-=#*~]{2,}\s*$")


def restyled(comment: str) -> str:
    """The comment as it should be: unchanged if it is no section comment; empty if it is only a line of dashes."""
    if not _LOOKS_LIKE_ONE.match(comment):
        return comment
    text = _RULE.sub("", comment)
    return f"# --- {text}" if text else ""


def section_comments(file: Path) -> Iterator[tuple[int, str]]:
    """(line, comment) for each comment in another style."""
    for token in tokenize.generate_tokens(io.StringIO(file.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT and restyled(token.string) != token.string:
            yield token.start[0], token.string


def files_in(paths: Iterable[Path]) -> Iterator[Path]:
    """Python files, and those below folders."""
    for path in paths:
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def findings(paths: Iterable[Path]) -> Iterator[str]:
    """`file:line: the comment` for each section comment in another style."""
    for file in files_in(paths):
        for line, comment in section_comments(file):
            yield f"{file}:{line}: {comment!r}: write {restyled(comment)!r}"


def fix(file: Path) -> None:
    """Rewrite the section comments of one file."""
    lines = file.read_text(encoding="utf-8").split("\n")
    for line, comment in section_comments(file):
        lines[line - 1] = lines[line - 1].replace(comment, restyled(comment)).rstrip()
    file.write_text("\n".join(lines), encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Print the findings and their number, or fix them; 1 if there are any left."""
    paths = [Path(argument) for argument in arguments if argument != "--fix"] or [Path(place) for place in PLACES]
    if "--fix" in arguments:
        for file in files_in(paths):
            if any(section_comments(file)):
                fix(file)
    found = list(findings(paths))
    print(*found, f"{len(found)} findings", sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
