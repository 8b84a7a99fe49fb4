"""Which requests, and which of the things in them, a rule selects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kpybroker.control.rules.entities import Entity, Names, Shape
from kpybroker.control.rules.rule import Condition, Match, Test
from kpybroker.wire.schema import Message


def select(match: Match, shape: Shape, found: Sequence[Entity], request: Message) -> list[Entity]:
    """The entities that the rule selects in a request of a matching API and client; empty if it does not match."""
    if not all(_holds(condition, request) for condition in match.when):
        return []
    open_kinds = frozenset[str]().union(*(one.kinds for one in shape.response if one.is_response_only))
    return [one for one in found if may_name(match.named, one.names, open_kinds | one.open_kinds)]


def may_name(named: Mapping[str, Test], names: Names, open_kinds: frozenset[str] = frozenset()) -> bool:
    """Whether a rule names this: each of its kinds is here and passes, or is among those that are decided later."""
    for kind, test in named.items():
        value = names.get(kind)
        if value is None and kind in open_kinds:
            continue
        if value is None or not test(value):
            return False
    return True


def _holds(condition: Condition, request: Message) -> bool:
    return any(condition.test(value) for value in values_at(request, condition.path))


def values_at(node: Any, path: Sequence[str]) -> Iterator[Any]:
    """All values at the end of a path of fields; arrays are looked through, and a null has no fields."""
    if isinstance(node, list):
        for element in node:
            yield from values_at(element, path)
    elif not path:
        yield node
    elif isinstance(node, Message) and path[0] in node.__slots__:
        yield from values_at(getattr(node, path[0]), path[1:])
