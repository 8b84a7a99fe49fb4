"""Walks through the tree of a file, in no order that matters. That of `ast` takes twice as long."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def walked(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node."""
    ahead = [tree]
    while ahead:
        node = ahead.pop()
        yield node
        for value in vars(node).values():
            if isinstance(value, ast.AST):
                ahead.append(value)
            elif isinstance(value, list):
                ahead += [child for child in value if isinstance(child, ast.AST)]


def blocks(tree: ast.AST) -> Iterator[ast.AST]:
    """The module and its statements, in each other: not the expressions, which are most of a tree."""
    ahead = [tree]
    while ahead:
        node = ahead.pop()
        yield node
        for block in ("body", "handlers", "cases", "orelse", "finalbody"):
            ahead += getattr(node, block, ())
