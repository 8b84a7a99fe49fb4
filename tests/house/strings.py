"""Modules of a package that are imported by a string, which no linter and no editor follows.

A literal or an f-string that begins with the package's name counts, in a call of `import_module` or `__import__`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from pathlib import Path

ALLOWED = frozenset(("kpybroker/wire/api.py",))
"""Generated messages: 100 modules, found by the name of their API."""
IMPORTERS = frozenset(("import_module", "__import__"))


def named_modules(root: Path, package: str, allowed: Collection[str] = ALLOWED) -> Iterator[str]:
    """`file:line: what it imports` for each such call below `root / package`, outside the allowed files."""
    for file in sorted((root / package).rglob("*.py")):
        if str(file.relative_to(root)) in allowed:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _called(node.func) in IMPORTERS and node.args:
                text = _start(node.args[0])
                if text.split(".")[0] == package:
                    yield f"{file.relative_to(root)}:{node.lineno}: imports {text!r} by a string"


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _start(argument: ast.expr) -> str:
    """The literal, or the literal that an f-string begins with."""
    if isinstance(argument, ast.JoinedStr) and argument.values:
        argument = argument.values[0]
    return argument.value if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else ""
