"""What is too long or too wide: files, functions, signatures.

A function's length is from its `def` to its end, docstring included. A signature's width is the parameters that a
caller may pass: `self` and `cls` are none, and `*args` is not counted. The commands of click are no wider for their
options. Generated messages are left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60
PARAMETERS_MAX = 6

Function = ast.FunctionDef | ast.AsyncFunctionDef


def findings(paths: Iterable[Path]) -> Iterator[str]:
    """`file:line: name: what is too long`, for Python files below these folders."""
    for file in _files(paths):
        text = file.read_text(encoding="utf-8")
        if text.count("\n") > FILE_LINES_MAX:
            yield f"{file}: more than {FILE_LINES_MAX} lines"
        for name, function in _functions(ast.parse(text), ""):
            assert function.end_lineno is not None
            if function.end_lineno - function.lineno + 1 > FUNCTION_LINES_MAX:
                yield f"{file}:{function.lineno}: {name}: more than {FUNCTION_LINES_MAX} lines"


def wide_signatures(paths: Iterable[Path]) -> Iterator[str]:
    """`file:line: name: how wide`, for Python files below these folders."""
    for file in _files(paths):
        for name, function in _functions(ast.parse(file.read_text(encoding="utf-8")), ""):
            if _width(function) > PARAMETERS_MAX and not _is_command(function):
                yield f"{file}:{function.lineno}: {name}: more than {PARAMETERS_MAX} parameters"


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    found = (file for path in paths for file in sorted(path.rglob("*.py")))
    return (file for file in found if "messages" not in file.parts)


def _functions(scope: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, Function):
            yield prefix + node.name, node
        yield from _functions(node, f"{prefix}{node.name}." if isinstance(node, Function | ast.ClassDef) else prefix)


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
