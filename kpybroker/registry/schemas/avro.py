"""Avro: a schema as a tree with full names, and its texts.

A named type occurs once in the tree and is then referred to by the same object, so trees may have cycles. Comparing
needs aliases, defaults and properties as they were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kpybroker.registry.errors import invalid_schema
from kpybroker.registry.schemas import avro_defaults, java_json
from kpybroker.registry.schemas.avro_reader import Reader
from kpybroker.registry.schemas.avro_tree import PRIMITIVES, Node
from kpybroker.registry.schemas.avro_writer import Form, value_of
from kpybroker.registry.schemas.model import AVRO, DEPTH_MAX, Identity, Texts

TOO_DEEP: Final = f"it is nested deeper than {DEPTH_MAX} levels"


class AvroSchema:
    """A parsed schema: `root` is the tree of its `text`. Some of `known`, types of references, it only names."""

    kind = AVRO

    def __init__(self, text: str, root: Node, known: Mapping[str, Node], named_only: Iterable[str]) -> None:
        self._sent = text
        self.root = root
        self._types = known
        self._known = frozenset(named_only)

    @property
    def canonical(self) -> str:
        """As Java writes it."""
        return self._text(self.root, Form.CANONICAL, self._known)

    @property
    def normalized(self) -> str:
        """As `normalize=true` stores it: written in that form, read again, and written as Java does."""
        value = self._value_of(self.root, Form.NORMALIZED, self._known)
        return self._text(Reader(dict(self._types), is_strict=False).read(value), Form.CANONICAL, self._known)

    @property
    def identity(self) -> Identity:
        """As Java compares schemas, with the types of references in it: it is the same with and without them."""
        whole = frozenset((self._text(self.root, Form.IDENTITY),))
        return Identity(whole, whole)

    def check_names(self) -> None:
        """Those of types, fields and symbols."""
        Reader(dict(self._types), is_strict=True).read(_loaded(self._sent, is_new=True))

    def formatted(self, form: str) -> str:
        """`resolved` has the types of references in it."""
        return self._text(self.root, Form.CANONICAL) if form == "resolved" else self.canonical

    def _text(self, root: Node, form: Form, known: Iterable[str] = ()) -> str:
        return java_json.dumps(self._value_of(root, form, known))

    @staticmethod
    def _value_of(root: Node, form: Form, known: Iterable[str]) -> object:
        """Types that are defined further down are written where they are used, which can be deeper than in the text."""
        try:
            value: object = value_of(root, form, known)
        except RecursionError:
            raise invalid_schema(TOO_DEEP) from None
        if java_json.nesting(value) > DEPTH_MAX:
            raise invalid_schema(TOO_DEEP)
        return value


def parse(text: str, references: Texts, *, is_new: bool = False) -> AvroSchema:
    """Raises RegistryError 42201. Only of a new schema names and defaults are checked: old ones others accepted."""
    names: dict[str, Node] = {}
    lax = Reader(names, is_strict=False)
    roots = [lax.read(_loaded(referenced, is_new=False)) for referenced in references.values()]
    known = dict(names)
    root = Reader(names, is_strict=is_new).read(_loaded(text, is_new=is_new))
    if is_new:
        avro_defaults.check(root)
    return AvroSchema(text, root, known, (node.name or node.kind for node in roots))


def _loaded(text: str, *, is_new: bool) -> object:
    try:
        value: object = java_json.loads(text, is_lax=not is_new)
    except RecursionError:
        raise invalid_schema(TOO_DEEP) from None
    except ValueError:
        if not is_new and text.strip() in PRIMITIVES:
            return text.strip()
        raise invalid_schema("the text is no JSON") from None
    if java_json.nesting(value) > DEPTH_MAX:
        raise invalid_schema(TOO_DEEP)
    return value
