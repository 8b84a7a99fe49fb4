"""Errors for some of a request's entities, and the handler's response for the others: the two put together.

`depth_of_error` says where in the response the errors of a rule belong. If the broker must not do the work for what the
rule selects, `leave_out` removes that from the request before the handler receives it. `put_errors` then adds to the
handler's response, or replaces in it, one failed element for each, and `in_order_of` restores the request's order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from kpybroker.control.rules.acts import Error
from kpybroker.control.rules.entities import (
    TOP,
    Array,
    Entity,
    Identity,
    Names,
    SeenTopics,
    Shape,
    fields_in,
    identify,
    struct_of,
)
from kpybroker.control.rules.matching import may_name
from kpybroker.control.rules.rule import Match
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.schema import Message


@dataclass(frozen=True, slots=True)
class Failure:
    """An error for `selected` entities of one request, at `depth` of its response. `text` is for a message field."""

    match: Match
    code: ErrorCode
    text: str
    depth: int
    selected: Sequence[Entity]
    is_after_work: bool = False


@dataclass(frozen=True, slots=True)
class ShapedResponse:
    """A response with what is needed to find its elements."""

    shape: Shape
    request: Message
    response: Message
    version: int
    topics: SeenTopics

    @property
    def own_names(self) -> Names:
        """What a rule may name about all of it."""
        return {kind: getattr(self.request, name) for kind, name in self.shape.scalars}


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a response, and where it is."""

    depth: int
    identity: Identity
    names: Names
    elements: list[Any]
    index: int


def depth_of_error(shape: Shape, match: Match, error: Error) -> int:
    """At the innermost array whose elements the rule names; if these have no errors, the next further in, or out."""
    if error.is_top:
        return TOP if shape.has_top else shape.natural_depth
    named = [depth for depth, one in enumerate(shape.response) if _named_kinds(match) & one.kinds]
    if not named:
        return shape.natural_depth
    inward, outward = range(named[-1], len(shape.response)), range(named[-1] - 1, -1, -1)
    return next((depth for depth in (*inward, *outward) if shape.response[depth].error), TOP)


def _named_kinds(match: Match) -> frozenset[str]:
    return frozenset("topic" if kind == "topic_id" else kind for kind in match.named)


def can_leave_out(shape: Shape, depth: int) -> bool:
    """Whether the work for what a rule selects can be left undone, and the rest be done."""
    return shape.leaves_out and depth != TOP and not shape.response[depth].is_response_only


def leave_out(shape: Shape, request: Message, unwanted: Collection[Identity], topics: SeenTopics) -> bool:
    """Remove entities from a request, in place; whether anything is left."""
    return not shape.request or _leave_out(shape.request, request, (), unwanted, topics)


def _leave_out(
    arrays: Sequence[Array], node: Any, outer: Identity, unwanted: Collection[Identity], topics: SeenTopics
) -> bool:
    elements = getattr(node, arrays[0].name)
    if not elements:
        return elements is None
    left = []
    for element in elements:
        identity = outer + identify(arrays[0], element, topics)[0]
        if identity in unwanted:
            continue
        is_emptied = (
            len(arrays) > 1
            and getattr(element, arrays[1].name)
            and not _leave_out(arrays[1:], element, identity, unwanted, topics)
        )
        if not is_emptied:
            left.append(element)
    setattr(node, arrays[0].name, left)
    return bool(left)


def put_errors(shaped: ShapedResponse, failures: Sequence[Failure]) -> None:
    """Put each error where it belongs, in place; of two for one element the first one stays."""
    done: set[tuple[int, Identity]] = set()
    for failure in failures:
        kinds = _kinds_to(shaped.shape, failure.depth)
        explicit = [one for one in failure.selected if not one.is_all and kinds <= {kind for kind, _ in one.identity}]
        wanted = {_restricted(one.identity, kinds) for one in explicit}
        _insert_missing(shaped, explicit, failure.depth)
        decided = frozenset(failure.match.named) - kinds - ({"topic_id"} if "topic" in kinds else set())
        for element in list(elements_at(shaped, failure.depth)):
            place = failure.depth, element.identity
            # What only the response has, or a request for all that there is: the rule decides now.
            is_named = element.identity in wanted or (
                len(explicit) < len(failure.selected) and may_name(failure.match.named, element.names, decided)
            )
            if is_named and place not in done:
                done.add(place)
                _fail(shaped, element, failure)


def elements_at(shaped: ShapedResponse, depth: int) -> Iterator[Element]:
    """All elements of a response at a depth. Their lists may be changed in place."""
    return _elements(shaped, depth, shaped.response, 0, (), shaped.own_names)


def _elements(
    shaped: ShapedResponse, wanted: int, node: Any, depth: int, outer: Identity, outer_names: Names
) -> Iterator[Element]:
    level = shaped.shape.response[depth]
    elements = getattr(node, level.name) or []
    for index, element in enumerate(elements):
        own, names = identify(level, element, shaped.topics)
        identity, names = outer + own, outer_names | names
        if shaped.shape.add_names is not None:
            shaped.shape.add_names(shaped.request, names)
        if depth == wanted:
            yield Element(depth, identity, names, elements, index)
        else:
            yield from _elements(shaped, wanted, element, depth + 1, identity, names)


def _kinds_to(shape: Shape, depth: int) -> frozenset[str]:
    return frozenset[str]().union(*(one.kinds for one in shape.response[: depth + 1]))


def _restricted(identity: Identity, kinds: frozenset[str]) -> Identity:
    return tuple(pair for pair in identity if pair[0] in kinds)


def _insert_missing(shaped: ShapedResponse, wanted: Sequence[Entity], depth: int) -> None:
    """An empty element for each entity, and for those around it, where there is none."""
    if not wanted:
        return
    known: list[dict[Identity, Any]] = []
    for number in range(depth + 1):
        known.append({one.identity: one.elements[one.index] for one in elements_at(shaped, number)})
    kinds = [_kinds_to(shaped.shape, number) for number in range(depth + 1)]
    for entity in wanted:
        node: Any = shaped.response
        for number, level in enumerate(shaped.shape.response[: depth + 1]):
            identity = _restricted(entity.identity, kinds[number])
            if identity not in known[number]:
                known[number][identity] = _empty(shaped, node, level, entity)
                getattr(node, level.name).append(known[number][identity])
            node = known[number][identity]


def _empty(shaped: ShapedResponse, node: Any, level: Array, entity: Entity) -> Any:
    """A new element of an array of `node`, with its keys."""
    message_class = type(shaped.response)
    struct = struct_of(message_class, type(node), level.name)
    made = struct()
    for kind, name in level.keys:
        value = entity.names.get(kind)
        if value is not None and name in fields_in(message_class, struct, shaped.version):
            setattr(made, name, value)
    return made


def _fail(shaped: ShapedResponse, element: Element, failure: Failure) -> None:
    """Replace an element by one that has its keys and the error; one without a request keeps all that it says."""
    level, old = shaped.shape.response[element.depth], element.elements[element.index]
    present = fields_in(type(shaped.response), type(old), shaped.version)
    new = old if level.is_response_only else type(old)()
    for _, name in level.keys:
        setattr(new, name, getattr(old, name))
    changes = {**level.failed, level.error: failure.code, "error_message": failure.text}
    for name, value in changes.items():
        if name in present:
            setattr(new, name, value)
    element.elements[element.index] = new


def in_order_of(shaped: ShapedResponse, found: Sequence[Entity]) -> None:
    """Sort the response's elements, in place, by the order in which the request named them; unnamed ones are last."""
    ranks: list[dict[Identity, int]] = []
    for depth in range(len(shaped.shape.response)):
        kinds, of_depth = _kinds_to(shaped.shape, depth), dict[Identity, int]()
        for rank, entity in enumerate(found):
            of_depth.setdefault(_restricted(entity.identity, kinds), rank)
        ranks.append(of_depth)
    _sort(shaped, shaped.response, (), ranks)


def _sort(shaped: ShapedResponse, node: Any, outer: Identity, ranks: Sequence[Mapping[Identity, int]]) -> None:
    """`ranks` has a mapping for each level from here inwards."""
    if not ranks:
        return
    level = shaped.shape.response[len(shaped.shape.response) - len(ranks)]
    elements = getattr(node, level.name)
    if not elements:
        return
    placed = [(outer + identify(level, one, shaped.topics)[0], one) for one in elements]
    placed.sort(key=lambda pair: ranks[0].get(pair[0], inf))
    elements[:] = [one for _, one in placed]
    for identity, one in placed:
        _sort(shaped, one, identity, ranks[1:])
