"""What a request names, generically: where its topics, partitions, groups and transactional ids are, and their
responses.

An API has a `Shape` for each range of versions: the arrays of its request and of its response, from the outside in, and
which fields identify their elements. An element's *identity* is the identifying values on the way to it, such as
`(("topic", "orders"), ("partition", 0))`. It does not depend on nesting, so that an element of a flat response is found
by the identity of one of a nested request. A topic is identified by its name where that is known, else by its id.

`names` are what a rule may name: the kinds in `NAMED`, from the element, from the elements around it, and from the
request's own fields (`scalars`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.schema import Message, struct_fields

Identity = tuple[tuple[str, Any], ...]
Names = dict[str, Any]
NAMED = ("topic", "topic_id", "partition", "group", "transactional_id")
"""The kinds that a rule's `match` may name."""
TOP = -1
"""The depth of the response itself, around all arrays."""
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Topics(Protocol):
    """The names and ids of the topics that a broker knows."""

    def topic_name(self, topic_id: bytes) -> str | None:
        """None for an unknown id."""

    def topic_id(self, topic: str) -> bytes:
        """ZERO_UUID for an unknown name."""


class SeenTopics:
    """`Topics`, and those of which one request gives name and id: a broker may learn of them by that very request."""

    __slots__ = ("_ids", "_names", "_topics")

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._names: dict[bytes, str] = {}
        self._ids: dict[str, bytes] = {}

    def see(self, name: str, topic_id: bytes) -> None:
        """The request gives both."""
        self._names[topic_id] = name
        self._ids[name] = topic_id

    def topic_name(self, topic_id: bytes) -> str | None:
        """None for an id that neither the request nor the broker knows."""
        return self._names.get(topic_id) or self._topics.topic_name(topic_id)

    def topic_id(self, topic: str) -> bytes:
        """ZERO_UUID for a name that neither the request nor the broker knows."""
        return self._ids.get(topic) or self._topics.topic_id(topic)


@dataclass(frozen=True, slots=True)
class Array:
    """An array field. `keys` are (kind, field) of what identifies an element; the field is "" where it is the element.

    In a response: `error` is the field for an element's error, `failed` the values of other fields of an element that
    failed, and `is_response_only` says that no array of the request corresponds to it.
    """

    name: str
    keys: tuple[tuple[str, str], ...] = ()
    error: str = ""
    failed: Mapping[str, Any] = field(default_factory=dict)
    is_response_only: bool = False

    @property
    def kinds(self) -> frozenset[str]:
        """What its elements are identified by; a topic id counts as a topic."""
        return frozenset("topic" if kind == "topic_id" else kind for kind, _ in self.keys)


def array(name: str, error: str = "", failed: Mapping[str, Any] = NOTHING, **keys: str) -> Array:
    """An `Array` with a keyword for each key: `array("topics", topic="name")`."""
    return Array(name, tuple(keys.items()), error, failed)


AddNames = Callable[[Message, Names], None]
"""(request, names of an element) -> adds names that depend on a value, such as a resource type."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One API in an inclusive range of versions.

    `natural` is the depth in the response at which an error belongs if a rule names nothing: by default that of the
    innermost array with an error. `leaves_out` is False for a request that is handled whole and responded to with
    errors afterwards; `is_always_handled` means that a request from which everything was left out still has a response
    of the handler, which has more than the elements. `has_top` is False where no field is for an error of the whole
    request.
    """

    versions: tuple[int, int]
    request: tuple[Array, ...] = ()
    response: tuple[Array, ...] = ()
    scalars: tuple[tuple[str, str], ...] = ()
    natural: int | None = None
    leaves_out: bool = True
    is_always_handled: bool = False
    has_top: bool = True
    add_names: AddNames | None = None

    @property
    def kinds(self) -> frozenset[str]:
        """What a rule may name about such a request."""
        fixed = {kind for one in (*self.request, *self.response) for kind, _ in one.keys}
        fixed.update(kind for kind, _ in self.scalars)
        if fixed & {"topic", "topic_id"}:
            fixed |= {"topic", "topic_id"}
        return frozenset(fixed)

    @property
    def natural_depth(self) -> int:
        """`natural`, or its default; TOP where no array has an error."""
        if self.natural is not None:
            return self.natural
        depths = [depth for depth, one in enumerate(self.response) if one.error and not one.is_response_only]
        return depths[-1] if depths else TOP


@dataclass(frozen=True, slots=True)
class Entity:
    """A thing that a request names: the innermost element, or one whose inner array is empty.

    `is_all` means that an inner array is null, which asks for all there is; `open_kinds` are then the kinds of these.
    """

    identity: Identity
    names: Names
    is_all: bool = False
    open_kinds: frozenset[str] = frozenset()


def entities(shape: Shape, request: Message, topics: SeenTopics) -> list[Entity]:
    """All entities of a request in its order; one with only the scalars' names if there are no others."""
    names = {kind: getattr(request, name) for kind, name in shape.scalars}
    if shape.add_names is not None:
        shape.add_names(request, names)
    return list(_inside(shape, request, request, 0, Entity((), names), topics))


def _inside(
    shape: Shape, request: Message, node: Any, depth: int, outer: Entity, topics: SeenTopics
) -> Iterator[Entity]:
    if depth == len(shape.request):
        yield outer
        return
    arrays = shape.request[depth]
    elements = getattr(node, arrays.name)
    if elements is None:
        kinds = frozenset[str]().union(*(one.kinds for one in shape.request[depth:]))
        yield Entity(outer.identity, outer.names, is_all=True, open_kinds=kinds | {"topic_id"})
        return
    if not elements:
        yield outer
    for element in elements:
        identity, names = identify(arrays, element, topics)
        names = outer.names | names
        if shape.add_names is not None:
            shape.add_names(request, names)
        yield from _inside(shape, request, element, depth + 1, Entity(outer.identity + identity, names), topics)


def identify(level: Array, element: Any, topics: SeenTopics) -> tuple[Identity, Names]:
    """The part of an element's identity and names that is its own."""
    names = {kind: getattr(element, name) if name else element for kind, name in level.keys}
    if "topic" in names or "topic_id" in names:
        name, topic_id = names.pop("topic", None) or None, names.pop("topic_id", None) or ZERO_UUID
        if topic_id == ZERO_UUID:
            topic_id = topics.topic_id(name) if name is not None else ZERO_UUID
        elif name is None:
            name = topics.topic_name(topic_id)
        else:
            topics.see(name, topic_id)
        known_id = None if topic_id == ZERO_UUID else topic_id
        identity: Identity = (("topic", known_id if name is None else name),)
        own = tuple((kind, names[kind]) for kind, _ in level.keys if kind in names)
        return identity + own, {"topic": name, "topic_id": known_id, **names}
    return tuple(names.items()), names


_fields: dict[tuple[type[Message], type[Message], int], frozenset[str]] = {}


def fields_in(message_class: type[Message], struct: type[Message], version: int) -> frozenset[str]:
    """The fields of a message (`struct` is `message_class`) or of a struct inside, that a version has."""
    key = message_class, struct, version
    if key not in _fields:
        inner = None if struct is message_class else struct
        _fields[key] = frozenset(one.name for one in struct_fields(message_class, inner) if one.present(version))
    return _fields[key]


def struct_of(message_class: type[Message], struct: type[Message], name: str) -> type[Message]:
    """The class of the elements of an array field."""
    inner = None if struct is message_class else struct
    found = next(one.struct for one in struct_fields(message_class, inner) if one.name == name)
    assert found is not None, f"{struct.__name__}.{name} is not an array of structs"
    return found
