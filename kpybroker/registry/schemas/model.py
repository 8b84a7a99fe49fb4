"""What all types of schemas share: `Definition`, which identifies a schema, and the Protocol `Parsed`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from kpybroker.registry.schemas.guids import guid

AVRO: Final = "AVRO"
JSON: Final = "JSON"
PROTOBUF: Final = "PROTOBUF"
KINDS: Final = (JSON, PROTOBUF, AVRO)
"""In the order in which Confluent's registry lists them."""

DEPTH_MAX: Final = 200
"""How deep brackets may be nested: parsers recurse, some of them in C."""


class Reference(NamedTuple):
    """A schema that another one uses under `name`: a version of a subject."""

    name: str
    subject: str
    version: int


class Definition(NamedTuple):
    """What makes two schemas the same schema: type, text, references, and what is attached to it (as JSON, or None)."""

    kind: str
    text: str
    references: tuple[Reference, ...] = ()
    metadata: str | None = None
    rule_set: str | None = None

    @property
    def guid(self) -> str:
        """A UUID that depends on the schema only, so another registry has the same."""
        return guid(self.text, self.references, self.metadata, self.rule_set)


Texts = Mapping[str, str]
"""Texts of all that a schema refers to, by the name of the reference, the deepest first."""


class Identity(NamedTuple):
    """What a schema is, however it is written, as texts that are only compared."""

    own: frozenset[str]
    """Of a schema that is stored."""
    sought: frozenset[str]
    """Of one that is looked for: what is stored is the same schema if it has one of these."""

    def finds(self, stored: Identity) -> bool:
        """Whether the schema that is looked for is the stored one."""
        return not self.sought.isdisjoint(stored.own)


class Parsed(Protocol):
    """A schema that was read. `canonical` and `normalized` are texts that parse to the same schema."""

    @property
    def kind(self) -> str:
        """AVRO, JSON or PROTOBUF."""

    @property
    def canonical(self) -> str:
        """Without what has no meaning in the type's syntax: white space, the order of known keys."""

    @property
    def normalized(self) -> str:
        """Also without what has none in the type's semantics, such as the order of attributes."""

    @property
    def identity(self) -> Identity:
        """Which schema it is."""

    def check_names(self) -> None:
        """Raises RegistryError 42201 for names that a new schema cannot have, or that lead nowhere.

        What is registered may have them.
        """

    def formatted(self, form: str) -> str:
        """The text for the parameter `format`; an unknown one gives the canonical text, as in Confluent's registry."""


def depth(text: str) -> int:
    """How deep brackets are nested in a text, strings left out."""
    deepest = now = 0
    quote = ""
    is_escaped = False
    for character in text:
        if quote:
            if is_escaped:
                is_escaped = False
            elif character == "\\":
                is_escaped = True
            elif character == quote:
                quote = ""
        elif character == '"':
            quote = character
        elif character in "[{(<":
            now += 1
            deepest = max(deepest, now)
        elif character in "]})>":
            now -= 1
    return deepest
