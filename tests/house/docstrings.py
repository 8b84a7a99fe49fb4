"""Public names without a docstring, or with one that only repeats the name.

Not counted: names that start with an underscore and what is inside them, special methods, functions in functions,
and `wire/messages`, which is generated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
FILLER = frozenset(("a", "an", "the", "of", "to", "for", "this", "is", "its", "it", "in", "and"))


def findings(paths: Iterable[Path]) -> Iterator[str]:
    """`file:line name` for each public module, class, function or method whose docstring says nothing."""
    for file in (file for path in paths for file in sorted(path.rglob("*.py"))):
        if "messages" not in file.parts:
            for line, name in _undocumented(ast.parse(file.read_text()), file):
                yield f"{file}:{line} {name}"


def _undocumented(tree: ast.Module, file: Path) -> Iterator[tuple[int, str]]:
    if (not ast.get_docstring(tree) and not file.name.startswith("_")) or (
        file.name == "__init__.py" and not ast.get_docstring(tree)
    ):
        yield 1, "(module)"
    yield from _inside(tree, "")


def _inside(scope: ast.Module | ast.ClassDef, prefix: str) -> Iterator[tuple[int, str]]:
    for node in _top_level(scope) if isinstance(scope, ast.Module) else scope.body:
        if not isinstance(node, Definition) or node.name.startswith("_"):
            continue
        if not _is_overload(node) and _says_nothing(ast.get_docstring(node), node.name):
            yield node.lineno, prefix + node.name
        if isinstance(node, ast.ClassDef):
            yield from _inside(node, f"{prefix}{node.name}.")


def _top_level(tree: ast.Module) -> list[ast.stmt]:
    nested = [inner for node in tree.body if isinstance(node, ast.If | ast.Try) for inner in node.body]
    return [*tree.body, *nested]


def _is_overload(node: Definition) -> bool:
    return any(isinstance(d, ast.Name) and d.id in ("overload", "setter") for d in node.decorator_list) or any(
        isinstance(d, ast.Attribute) and d.attr == "setter" for d in node.decorator_list
    )


def _says_nothing(docstring: str | None, name: str) -> bool:
    """None, or no word beyond those of the name and filler."""
    if not docstring:
        return True
    words = {word.rstrip("s") for word in re.findall(r"[a-z0-9]+", docstring.lower())} - FILLER
    of_name = {word.lower().rstrip("s") for word in re.findall(r"[A-Z]+[a-z0-9]*|[a-z0-9]+", name)}
    return words <= of_name
