"""Which code reads which configuration key, found in the source text.

A read is a string that equals the key, outside docstrings and outside the modules that only declare, describe or
validate keys. It belongs to the function it is in; a string in a constant belongs to the functions that use the
constant.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import kpybroker

PACKAGE = Path(kpybroker.__file__).parent
NO_EFFECT = (
    "config/keys/",
    "config/docs/",
    "config/development.py",
    "config/dynamic.py",
    "config/relations.py",
    "config/interpret.py",
    "config/fix.py",
    "config/listeners.py",
    "config/unserved.py",
    "cli/processes/derive.py",
    "broker/handlers/configuration/",
    "client/",
    "pipelines/",
    "wire/messages/",
)
"""Where a key is declared, described, validated or derived, or never named: naming it there gives it no effect."""

LITERAL_PART_MIN = 10
"""Characters of an f-string that must be literal for it to be taken as the name of a key."""


class Read(NamedTuple):
    """One place that reads a key. `function` is "" outside functions."""

    file: str
    function: str


class Source(NamedTuple):
    """One module: its path below the package, and its tree."""

    file: str
    tree: ast.Module


def sources() -> Iterator[Source]:
    """Every module whose code can give a key its effect, one after the other: together their trees are millions of
    objects, which garbage collection would visit again and again.
    """
    files = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
    for file, path in files.items():
        if not file.startswith(NO_EFFECT):
            yield Source(file, ast.parse(path.read_text()))


def key_reads(module: Source, known: Set[str]) -> Iterator[tuple[str, Read]]:
    """The reads of the known keys."""
    users = _users_of_names(module.tree)
    for text, function, constant in _texts(module.tree):
        functions = users[constant] | {""} if constant else {function}
        for key in _meant(text, known):
            yield from ((key, Read(module.file, name)) for name in functions)


def attributes(module: Source) -> set[str]:
    """The name of every attribute that is read."""
    return {
        node.attr
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


def strings(module: Source) -> set[str]:
    """Every string outside docstrings."""
    return {text for text, _, _ in _texts(module.tree) if isinstance(text, str)}


def listeners_of_changes(module: Source) -> set[Read]:
    """The functions that are called after a dynamic change."""
    return {
        Read(module.file, ast.unparse(node.args[0]).rpartition(".")[2])
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("on_broker_change", "on_change")
    }


def _meant(text: str | re.Pattern[str], known: Set[str]) -> Set[str]:
    if isinstance(text, str):
        return {text} & known
    return {key for key in known if text.fullmatch(key)}


@lru_cache(1)
def _texts(tree: ast.Module) -> Sequence[tuple[str | re.Pattern[str], str, str]]:
    """(the string, or the pattern of an f-string; the innermost function; the module's constant it is in)."""

    def visit(node: ast.AST, function: str, constant: str) -> Iterator[tuple[str | re.Pattern[str], str, str]]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not function:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            constant = target.id if isinstance(target, ast.Name) else constant
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, function, constant
        elif isinstance(node, ast.JoinedStr):
            yield from ((pattern, function, constant) for pattern in _pattern(node))
            return
        for child in ast.iter_child_nodes(node):
            yield from visit(child, function, constant)

    return tuple(visit(tree, "", ""))


def _pattern(node: ast.JoinedStr) -> Iterator[re.Pattern[str]]:
    parts = [part.value if isinstance(part, ast.Constant) else None for part in node.values]
    if sum(len(str(part)) for part in parts if part is not None) >= LITERAL_PART_MIN:
        yield re.compile("".join(r"[\w.]+" if part is None else re.escape(str(part)) for part in parts))


def _users_of_names(tree: ast.Module) -> dict[str, set[str]]:
    """Name -> the functions in which it occurs."""
    users: dict[str, set[str]] = defaultdict(set)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Name):
                    users[node.id].add(function.name)
    return users
