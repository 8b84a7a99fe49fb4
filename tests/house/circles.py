"""Import circles in `kpybroker/`: imports for types and inside functions count like any other.

import-linter checks the order between packages; this checks modules, and sees what it cannot: a circle inside one
package, and a module that is named by a string.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

Graph = Mapping[str, set[str]]


def module_name(file: Path, root: Path) -> str:
    """`kpybroker/wire/api.py` is `kpybroker.wire.api`, a package's `__init__.py` the package."""
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def import_graph(root: Path, package: str) -> dict[str, set[str]]:
    """Every module of `package` below `root`, with the modules of the package that it imports anywhere in its text."""
    files = {module_name(file, root): file for file in sorted((root / package).rglob("*.py"))}
    return {
        name: set(_imported(ast.parse(file.read_text()), files, name, file.name == "__init__.py")) - {name}
        for name, file in files.items()
    }


def _imported(tree: ast.AST, known: Mapping[str, Path], name: str, is_package: bool) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            parents = name.split(".") if is_package else name.split(".")[:-1]
            above = parents[: len(parents) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{source}.{alias.name}"
                if inner in known:
                    yield inner
                elif source in known:
                    yield source


def circles(graph: Graph) -> list[list[str]]:
    """The strongly connected components of more than one module, largest first (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            position = stack.index(name)
            if len(stack) - position > 1:
                found.append(sorted(stack[position:]))
            del stack[position:]

    for name in graph:
        if name not in index:
            visit(name)
    return sorted(found, key=len, reverse=True)
