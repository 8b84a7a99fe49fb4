"""What a message class says about its bytes: fields, versions, tags. The compilers turn it into functions.

Generated classes derive from `Message` (the only base class here: it saves some 500 copies of `__eq__` and
`__repr__`) and hold their fields as constant tuples, so that importing them costs next to nothing;
`struct_fields` makes `Field`s of them when a codec is compiled. Versions are inclusive ranges; FOREVER is
the open upper end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

from kpybroker.wire.constants import ZERO_UUID as ZERO_UUID  # generated messages take all they use from here

FOREVER: Final = 32767
EMPTY: Final[list[Any]] = []
"""Marks an array argument that was not given, for which a new list is made. It must stay empty."""
DEFAULTS: Final[Any] = object()
"""Marks a struct argument that was not given, for which one of defaults is made, where None is another value."""

Range: TypeAlias = "tuple[int, int]"
RawField: TypeAlias = "tuple[str, str, Range, Range | None, Range | None, int | None, bool, Any]"
TaggedFields: TypeAlias = "tuple[tuple[int, bytes], ...]"

PRIMITIVES: Final = frozenset(
    {"bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64"} | {"uuid", "string", "bytes", "records"}
)


SECRET_FIELDS: Final = frozenset({"auth_bytes", "hmac", "salted_password"})
"""Fields of login tokens, passwords and keys: no repr and no JSON shows them."""
HIDDEN: Final = "[hidden]"


class Message:
    """Base of every generated message and nested struct.

    `FIELDS` holds one tuple a field: name, type (`[x]` for an array), versions, nullable versions, tagged
    versions, tag, ignorable, default. `unknown_tagged_fields` keeps tags we do not know, as (tag, bytes).
    """

    __slots__ = ("unknown_tagged_fields",)

    FIELDS: ClassVar[tuple[RawField, ...]] = ()
    VERSIONS: ClassVar[Range] = (0, FOREVER)
    FLEXIBLE_FROM: ClassVar[int] = FOREVER

    unknown_tagged_fields: TaggedFields

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        if self.unknown_tagged_fields != other.unknown_tagged_fields:
            return False
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        inner = ", ".join(
            f"{name}={HIDDEN if name in SECRET_FIELDS else repr(getattr(self, name))}" for name in self.__slots__
        )
        return f"{type(self).__qualname__}({inner})"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct, in all versions."""

    name: str
    type_name: str
    """A primitive, or the name of a struct."""
    array: bool
    versions: Range
    nullable: Range | None
    tagged: Range | None
    tag: int | None
    ignorable: bool
    default: Any
    """A primitive's value, None for null; `()` for an empty array or a struct of defaults."""
    struct: type[Message] | None

    def present(self, version: int) -> bool:
        """Whether the field is on the wire in this version."""
        return self.versions[0] <= version <= self.versions[1]

    def is_tagged(self, version: int) -> bool:
        """Whether this version writes it as a tagged field (KIP-482)."""
        return self.tagged is not None and self.tagged[0] <= version <= self.tagged[1]

    def is_nullable(self, version: int) -> bool:
        """Whether it may be null in this version."""
        return self.nullable is not None and self.nullable[0] <= version <= self.nullable[1]


def struct_fields(message_class: type[Message], struct: type[Message] | None = None) -> Sequence[Field]:
    """The fields of a message, or of one of the structs nested in it."""
    fields = []
    for name, type_text, versions, nullable, tagged, tag, ignorable, default in (struct or message_class).FIELDS:
        type_name = type_text.strip("[]")
        nested = None if type_name in PRIMITIVES else getattr(message_class, type_name)
        array = type_text.startswith("[")
        fields.append(Field(name, type_name, array, versions, nullable, tagged, tag, ignorable, default, nested))
    return fields


def default_value(field: Field) -> Any:
    """A new value, as the constructor makes it when the field is not given."""
    if field.default != ():
        return field.default
    if field.array:
        return []
    assert field.struct is not None
    return field.struct()


def is_flexible(message_class: type[Message], version: int) -> bool:
    """Whether this version uses compact lengths and tagged fields (KIP-482)."""
    return version >= message_class.FLEXIBLE_FROM
