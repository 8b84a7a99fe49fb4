"""What is too long or too wide: files, functions, signatures.

A function's length is from its `def` to its end, docstring included. A signature's width is the parameters that a
caller may pass: `self` and `cls` are none, and `*args` is not counted. The commands of click are no wider for their
options. Generated messages are left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60
PARAMETERS_MAX = 6

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Measured(NamedTuple):
    """A function, with its class before its name."""

    name: str
    line: int
    lines: int
    width: int
    is_command: bool


def findings(paths: Iterable[Path]) -> Iterator[str]:
    """`file:line: name: what is too long`, for Python files below these folders."""
    for file in _files(paths):
        if file.read_text(encoding="utf-8").count("\n") > FILE_LINES_MAX:
            yield f"{file}: more than {FILE_LINES_MAX} lines"
        for function in _measured(file):
            if function.lines > FUNCTION_LINES_MAX:
                yield f"{file}:{function.line}: {function.name}: more than {FUNCTION_LINES_MAX} lines"


def wide_signatures(paths: Iterable[Path]) -> Iterator[str]:
    """`file:line: name: how wide`, for Python files below these folders."""
    for file in _files(paths):
        for function in _measured(file):
            if function.width > PARAMETERS_MAX and not function.is_command:
                yield f"{file}:{function.line}: {function.name}: more than {PARAMETERS_MAX} parameters"


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    found = (file for path in paths for file in sorted(path.rglob("*.py")))
    return (file for file in found if "messages" not in file.parts)


@cache
def _measured(file: Path) -> Sequence[Measured]:
    """The functions of a file, which two checks ask for."""
    found = []
    for name, function in _functions(ast.parse(file.read_text(encoding="utf-8")), ""):
        assert function.end_lineno is not None
        lines = function.end_lineno - function.lineno + 1
        found.append(Measured(name, function.lineno, lines, _width(function), _is_command(function)))
    return found


def _functions(scope: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    """Those of a module, or within a statement: expressions have none, and are most of a tree."""
    for block in ("body", "handlers", "cases", "orelse", "finalbody"):
        for node in getattr(scope, block, ()):
            if isinstance(node, Function):
                yield prefix + node.name, node
            inner = f"{prefix}{node.name}." if isinstance(node, Function | ast.ClassDef) else prefix
            yield from _functions(node, inner)


def _width(function: Function) -> int:
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def _is_command(function: Function) -> bool:
    """Whether click makes a command of it: a decorator is `command` or `group`, or such a method of a group."""
    for decorator in function.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(called, ast.Attribute) and called.attr in ("command", "group"):
            return True
    return False
