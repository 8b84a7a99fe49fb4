"""Names of classes, functions and fields that say too little, and what to call such a thing instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

REPLACEMENTS = {
    "Plan": "the name of what is planned",
    "Wanted": "Filter, Query, or the name of what is wanted",
    "cuts_hard": "has_hard_limits",
    "let_go": "release or close",
    "mention": "mark",
    "rarely": "the name of what it returns",
    "to_the_back": "move_to_end",
}
_ANY = re.compile(rf"\b_?(?:{'|'.join(REPLACEMENTS)})\b")


def findings(paths: Iterable[Path]) -> Iterator[str]:
    """`file:line: name: what is better`, where such a name is defined in Python files below these folders."""
    for file in (file for path in paths for file in sorted(path.rglob("*.py"))):
        text = file.read_text(encoding="utf-8")
        if "messages" not in file.parts and _ANY.search(text):
            for line, name in _defined(ast.parse(text)):
                if name.lstrip("_") in REPLACEMENTS:
                    yield f"{file}:{line}: {name}: rather {REPLACEMENTS[name.lstrip('_')]}"


def _defined(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
