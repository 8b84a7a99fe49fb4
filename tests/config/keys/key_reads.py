"""Which code reads which configuration key, found in the source text.

A read is a string that equals the key, outside docstrings and outside the modules that only declare, describe or
validate keys. It belongs to the function it is in; a string in a constant belongs to the functions that use the
constant.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Set
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
    "config/sources/kraft.py",
    "config/unserved.py",
    "cli/processes/derive.py",
    "broker/handlers/configuration/",
    "client/",
    "pipelines/",
    "wire/messages/",
)
"""Where a key is declared, described, validated or derived, or never named: naming it there gives it no effect."""

CHANGES = ("on_broker_change", "on_change")
"""What a function is given to that is called after a dynamic change."""

LITERAL_PART_MIN = 10
"""Characters of an f-string that must be literal for it to be taken as the name of a key."""


class Read(NamedTuple):
    """One place that reads a key. `function` is "" outside functions."""

    file: str
    function: str


class Text(NamedTuple):
    """A string, or the pattern of an f-string; the innermost function; the module's constant that it is in."""

    text: str | re.Pattern[str]
    function: str
    constant: str


class Source:
    """One module: its path below the package, and what is in it. One walk finds it all, of two million nodes."""

    def __init__(self, file: str, tree: ast.Module) -> None:
        self.file = file
        self.texts: list[Text] = []
        """Outside docstrings."""
        self.users: dict[str, set[str]] = defaultdict(set)
        """Name -> the functions in which it occurs."""
        self.attributes: set[str] = set()
        """The name of every attribute that is read."""
        self.listeners_of_changes: set[Read] = set()
        """The functions that are called after a dynamic change."""
        self._visit(tree, (), "", False)

    def _visit(self, node: ast.AST, functions: tuple[str, ...], constant: str, within_text: bool) -> None:
        if isinstance(node, ast.Name):
            for function in functions:
                self.users[node.id].add(function)
        elif isinstance(node, ast.Attribute):
            if isinstance(node.ctx, ast.Load):
                self.attributes.add(node.attr)
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str) and not within_text:
                self.texts.append(Text(node.value, functions[-1] if functions else "", constant))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions = (*functions, node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not functions:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            constant = target.id if isinstance(target, ast.Name) else constant
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        elif isinstance(node, ast.JoinedStr) and not within_text:
            within_text = True
            for pattern in _pattern(node):
                self.texts.append(Text(pattern, functions[-1] if functions else "", constant))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
            self.listeners_of_changes.add(Read(self.file, ast.unparse(node.args[0]).rpartition(".")[2]))
        for value in vars(node).values():
            if isinstance(value, ast.AST):
                self._visit(value, functions, constant, within_text)
            elif isinstance(value, list):
                for child in value:
                    if isinstance(child, ast.AST):
                        self._visit(child, functions, constant, within_text)


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
    for text, function, constant in module.texts:
        functions = module.users[constant] | {""} if constant else {function}
        for key in _meant(text, known):
            yield from ((key, Read(module.file, name)) for name in functions)


def strings(module: Source) -> set[str]:
    """Every string outside docstrings."""
    return {text for text, _, _ in module.texts if isinstance(text, str)}


def _meant(text: str | re.Pattern[str], known: Set[str]) -> Set[str]:
    if isinstance(text, str):
        return {text} & known
    return {key for key in known if text.fullmatch(key)}


def _pattern(node: ast.JoinedStr) -> Iterator[re.Pattern[str]]:
    parts = [part.value if isinstance(part, ast.Constant) else None for part in node.values]
    if sum(len(str(part)) for part in parts if part is not None) >= LITERAL_PART_MIN:
        yield re.compile("".join(r"[\w.]+" if part is None else re.escape(str(part)) for part in parts))
