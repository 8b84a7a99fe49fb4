"""Options: `name = value`, with all forms of names and values."""

from __future__ import annotations

from typing import Any

from kpybroker.registry.schemas.model import DEPTH_MAX
from kpybroker.registry.schemas.proto.elements import Kind, Option, Primitive
from kpybroker.registry.schemas.proto.syntax import QUOTES, Syntax

BARE = (Kind.BOOLEAN, Kind.ENUM, Kind.NUMBER)


def read_list(syntax: Syntax) -> list[Option]:
    """The options in brackets behind a field or a value; empty where there are none."""
    found: list[Option] = []
    if not syntax.takes("["):
        return found
    while True:
        found.append(read_option(syntax))
        if syntax.takes("]"):
            return found
        syntax.require(",")


def read_option(syntax: Syntax, separator: str = "=", depth: int = 0) -> Option:
    """One option; in a map the separator is a colon."""
    first = syntax.peek()
    name = syntax.name()
    if first == "[":
        name = f"[{name}]"
    inner: list[str] = []
    while (character := syntax.take()) == ".":
        part = syntax.name(keeps_brackets=True)
        inner += [part] if part.startswith("(") else part.split(".")
        if len(inner) + depth > DEPTH_MAX:
            syntax.refuse(f"options are nested deeper than {DEPTH_MAX} levels")
    if separator == ":" and character == "{":
        syntax.at -= 1
    elif character != separator:
        syntax.refuse(f"expected {separator!r} in an option")
    kind, value = _value(syntax, depth + len(inner))
    for part in reversed(inner):
        is_custom = part.startswith("(")
        value = Option(part[1:-1] if is_custom else part, kind, value, is_custom)
        kind = Kind.OPTION
    return Option(name, kind, value, first == "(")


def _value(syntax: Syntax, depth: int) -> tuple[Kind, Any]:
    if depth > DEPTH_MAX:
        syntax.refuse(f"options are nested deeper than {DEPTH_MAX} levels")
    character = syntax.peek()
    if character == "{":
        return Kind.MAP, _map(syntax, depth + 1)
    if character == "[":
        return Kind.LIST, _list(syntax, depth + 1)
    if character in QUOTES:
        return Kind.STRING, syntax.quoted()
    word = syntax.word()
    if character.isdigit() or character == "-":
        return Kind.NUMBER, word
    return (Kind.BOOLEAN if word in ("true", "false") else Kind.ENUM), word


def _map(syntax: Syntax, depth: int) -> dict[str, Any]:
    """Several values of one key are a list."""
    syntax.require("{")
    found: dict[str, Any] = {}
    while not syntax.takes("}"):
        option = read_option(syntax, ":", depth)
        value = Primitive(option.kind, option.value) if option.kind in BARE else option.value
        if isinstance(value, Option):
            inner = found.setdefault(option.name, {})
            if not isinstance(inner, dict):
                syntax.refuse(f"{option.name} has a value already")
            inner[value.name] = value.value
        elif option.name not in found:
            found[option.name] = value
        else:
            before = found[option.name]
            if not isinstance(before, list):
                before = found[option.name] = [before]
            before += value if isinstance(value, list) else [value]
        if not syntax.takes(","):
            syntax.takes(";")
    return found


def _list(syntax: Syntax, depth: int) -> list[Any]:
    syntax.require("[")
    found: list[Any] = []
    while not syntax.takes("]"):
        kind, value = _value(syntax, depth)
        found.append(Primitive(kind, value) if kind in BARE else value)
        if not syntax.takes(",") and syntax.peek() != "]":
            syntax.refuse("expected ',' or ']'")
    return found
