"""Section comments have one style: `# --- what follows`, without dashes after it."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

_LOOKS_LIKE_ONE = re.compile(r"#\s*[-=#*~]{2,}")
_RULE = re.compile(r"^#\s*[-=#*~]{2,}\s*|\s*[-=#*~]{2,}\s*$")


def restyled(comment: str) -> str:
    """The comment as it should be: unchanged if it is no section comment; empty if it is only a line of dashes."""
    if not _LOOKS_LIKE_ONE.match(comment):
        return comment
    text = _RULE.sub("", comment)
    return f"# --- {text}" if text else ""


def findings(paths: Iterable[Path]) -> Iterator[str]:
    """`file:line: the comment` for each section comment in another style, in Python files below these folders."""
    for file in (file for path in paths for file in sorted(path.rglob("*.py"))):
        text = file.read_text(encoding="utf-8")
        if not _LOOKS_LIKE_ONE.search(text):
            continue
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and (style := restyled(token.string)) != token.string:
                yield f"{file}:{token.start[0]}: {token.string!r}: write {style!r}"
