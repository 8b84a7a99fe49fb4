"""The syntax tree of a .proto file: what is declared, in the order of the text, without comments and places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum as Values
from enum import auto
from typing import Any, Final, NamedTuple

TAG_MAX: Final = 536_870_911
"""What `max` stands for."""
SCALAR_NUMBERS: Final = {
    "double": 1,
    "float": 2,
    "int64": 3,
    "uint64": 4,
    "int32": 5,
    "fixed64": 6,
    "fixed32": 7,
    "bool": 8,
    "string": 9,
    "bytes": 12,
    "uint32": 13,
    "sfixed32": 15,
    "sfixed64": 16,
    "sint32": 17,
    "sint64": 18,
}
"""Types that are no messages and no enums, with their numbers in descriptors."""
Label = str
"""`required`, `optional`, `repeated`, or empty for none."""


class Kind(Values):
    """Of an option's value."""

    STRING = auto()
    BOOLEAN = auto()
    NUMBER = auto()
    ENUM = auto()
    MAP = auto()
    LIST = auto()
    OPTION = auto()


class Primitive(NamedTuple):
    """A value in a map or a list that is no text."""

    kind: Kind
    value: str


class Option(NamedTuple):
    """`value` is a text, a map of texts to values, a list, or (for Kind.OPTION) the option behind a dot.

    A value in a map or a list is a text, a Primitive, a map, a list or (in a list of options) an Option.
    """

    name: str
    kind: Kind
    value: Any
    is_custom: bool = False
    """Written in parentheses."""


Range = str | int | tuple[int, int]
"""Of `reserved` and `extensions`: a name, a number, or the first and the last number."""


class Ranges(NamedTuple):
    """One `reserved` or `extensions` statement."""

    values: Sequence[Range]
    options: Sequence[Option] = ()


class Field(NamedTuple):
    """Its type is as it was written; a map is `map<key, value>`."""

    label: Label
    type: str
    name: str
    number: int
    default: str | None = None
    json_name: str | None = None
    options: Sequence[Option] = ()


class Group(NamedTuple):
    """A field of proto2 with a message of its own."""

    label: Label
    name: str
    number: int
    fields: Sequence[Field]


@dataclass(slots=True)
class OneOf:
    """Fields of which one can be set."""

    name: str
    fields: list[Field] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


class Constant(NamedTuple):
    """A value of an enum."""

    name: str
    number: int
    options: Sequence[Option] = ()


@dataclass(slots=True)
class EnumType:
    """An enum, with its constants in the order of the text."""

    name: str
    constants: list[Constant] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    reserved: list[Ranges] = field(default_factory=list)


@dataclass(slots=True)
class Extend:
    """Fields that are added to another message."""

    name: str
    fields: list[Field] = field(default_factory=list)


@dataclass(slots=True)
class MessageType:
    """A message. `types` are those within it."""

    name: str
    types: list[MessageType | EnumType] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)
    oneofs: list[OneOf] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    extensions: list[Ranges] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    reserved: list[Ranges] = field(default_factory=list)

    @property
    def is_map_entry(self) -> bool:
        """As protoc makes one for a map."""
        found = [one.value for one in self.options if one.name == "map_entry" and not one.is_custom]
        return bool(found) and str(found[0]).lower() == "true"


class Method(NamedTuple):
    """An rpc."""

    name: str
    request: str
    response: str
    is_request_stream: bool = False
    is_response_stream: bool = False
    options: Sequence[Option] = ()


@dataclass(slots=True)
class Service:
    """A service, with its methods in the order of the text."""

    name: str
    methods: list[Method] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class File:
    """A .proto file. `syntax` is None where it has no such line."""

    syntax: str | None = None
    package: str | None = None
    imports: list[str] = field(default_factory=list)
    public_imports: list[str] = field(default_factory=list)
    types: list[MessageType | EnumType] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
