"""`Names`: what the name of a type or an extension means where it is used.

Searched from the innermost scope outwards, as in the language. Known are the types of the file, of all its references,
whether it imports them or not, and those of Google and Confluent, which need no import.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple

from kpybroker.registry.schemas.proto.builtin import FILES
from kpybroker.registry.schemas.proto.elements import EnumType, Extend, File, MessageType

CONFLUENT: Final = ("confluent.Meta", "confluent.type.Decimal")
CONFLUENT_EXTENSIONS: Final = tuple(f"confluent.{of}_meta" for of in ("file", "message", "field", "enum", "enum_value"))


class Known(NamedTuple):
    """A type: what it is, and for the entry of a map that map."""

    kind: str
    """`message` or `enum`."""
    map: str | None = None


@dataclass(slots=True)
class Names:
    """`scope` is where names are resolved now: the package's parts and the messages around."""

    types: dict[str, Known]
    extensions: dict[str, bool]
    """Whether an extension is repeated, by its full name."""
    package: list[str] = field(default_factory=list)
    scope: list[str] = field(default_factory=list)

    @contextmanager
    def within(self, name: str) -> Iterator[None]:
        """In the scope of a message."""
        self.scope.append(name)
        try:
            yield
        finally:
            self.scope.pop()

    def type(self, name: str) -> str | None:
        """The full name of a type, without a dot in front; None for none."""
        return self._resolved(name, self.types)

    def extension(self, name: str) -> str | None:
        """The same of an extension."""
        return self._resolved(name, self.extensions)

    def _resolved(self, name: str, known: Mapping[str, Any]) -> str | None:
        if name.startswith("."):
            return name[1:] if name[1:] in known else None
        around = [*self.package, *self.scope]
        for length in range(len(around), -1, -1):
            full = ".".join([*around[:length], name])
            if full in known:
                return full
        return None


def names_of(file: File, references: Iterable[File]) -> Names:
    """Of a file, with the scope of its package."""
    types, extensions = _builtin()
    names = Names(dict(types), dict(extensions))
    for one in (*references, file):
        package = one.package.split(".") if one.package else []
        _add_extends(names, package, one.extends)
        _add(names, package, one.types)
    names.package = file.package.split(".") if file.package else []
    return names


def _add(names: Names, prefix: list[str], types: Iterable[MessageType | EnumType]) -> None:
    for one in types:
        path = [*prefix, one.name]
        if isinstance(one, EnumType):
            names.types[".".join(path)] = Known("enum")
            continue
        names.types[".".join(path)] = Known("message", _map_of(one) if one.is_map_entry else None)
        _add_extends(names, path, one.extends)
        _add(names, path, one.types)


def _map_of(entry: MessageType) -> str | None:
    kinds = {field.name: field.type for field in entry.fields}
    return f"map<{kinds['key']}, {kinds['value']}>" if {"key", "value"} <= kinds.keys() else None


def _add_extends(names: Names, prefix: list[str], extends: Iterable[Extend]) -> None:
    for extend in extends:
        for one in extend.fields:
            names.extensions[".".join([*prefix, one.name])] = one.label == "repeated"


@cache
def _builtin() -> tuple[Mapping[str, Known], Mapping[str, bool]]:
    """Made once, when the first schema is read."""
    types = {name: Known("message") for name in CONFLUENT}
    for descriptor in FILES:
        waiting = list(descriptor.message_types_by_name.values())
        types |= {one.full_name: Known("enum") for one in descriptor.enum_types_by_name.values()}
        while waiting:
            message = waiting.pop()
            types[message.full_name] = Known("message")
            types |= {one.full_name: Known("enum") for one in message.enum_types}
            waiting += message.nested_types
    return types, dict.fromkeys(CONFLUENT_EXTENSIONS, False)
