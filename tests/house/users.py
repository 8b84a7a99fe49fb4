"""Who uses a module: what only the test kit uses is in it, and what only tests or docs use is not in the package.

Imports for types and inside functions count as well; imports by a name that is a string do not, and there are none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.house.trees import blocks

PRODUCTION = frozenset(("core", "storage", "coordination", "broker"))
KIT = frozenset(("control", "testing", "pytest_plugin"))
FOR_PROGRAMS = frozenset(("testing", "pytest_plugin"))
"""Packages that other programs import."""
EXEMPT = frozenset(("messages",))
"""Generated: also messages that are only written by others."""
FOR_KIT: frozenset[str] = frozenset()
"""Exceptions: what is a broker's own matter, although the kit is the first to ask."""

Imports = Mapping[str, set[str]]
"""By module, without the name of the package; "" is the package itself."""


def findings(packages: Iterable[Path]) -> Iterator[str]:
    """`file: who uses it` for each module that is in the wrong place."""
    for package in packages:
        files = {_name_of(file, package): file for file in sorted(package.rglob("*.py"))}
        imports = {name: set(_imported(file, files, package.name)) for name, file in files.items()}
        used = _reached(imports, {name for name in imports if name.endswith("__main__")} | FOR_PROGRAMS)
        outside = {name: found for name, found in imports.items() if _room(name) not in KIT}
        by_others = _reached(outside, {name for name in used if _room(name) not in PRODUCTION})
        for name, file in files.items():
            if file.name == "__init__.py" or EXEMPT.intersection(file.parts):
                continue
            if name not in used:
                yield f"{file}: nothing in the package uses it: it belongs where its users are"
            elif name in FOR_KIT & by_others:
                yield f"{file}: others use it as well: it is no exception"
            elif _room(name) in PRODUCTION and name not in by_others | FOR_KIT:
                yield f"{file}: only {', '.join(sorted(KIT))} use it: it belongs there"


def _room(name: str) -> str:
    return name.partition(".")[0]


def _name_of(file: Path, package: Path) -> str:
    parts = file.relative_to(package).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(file: Path, files: Mapping[str, Path], package: str) -> Iterator[str]:
    """Modules of the package that a file imports, and the packages that they are in."""
    for node in blocks(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for parts in (name.split(".") for name in names):
            if parts[0] == package:
                yield from files.keys() & {".".join(parts[1:end]) for end in range(1, len(parts) + 1)}


def _reached(imports: Imports, roots: Iterable[str]) -> set[str]:
    """The roots, and what they import, directly or not, as far as `imports` has it."""
    reached: set[str] = set()
    ahead = list(roots)
    while ahead:
        name = ahead.pop()
        if name in imports and name not in reached:
            reached.add(name)
            ahead += imports[name]
    return reached
