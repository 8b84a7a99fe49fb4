"""`Shape`: one of the alternatives that a JSON schema consists of, with one kind each, so that kinds can be compared.

`{"type": ["string", "null"]}` is any of two shapes, `{"type": "string", "enum": [...]}` all of two, and keys without a
type imply one: `properties` an object, `minLength` a string. A `$ref` is what it leads to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kpybroker.registry.schemas.json_schema import Raw, Resolver, looked_up, within

EMPTY, FALSE = "empty", "false"
ALL, ANY, ONE = "allOf", "anyOf", "oneOf"
COMBINED: Final = (ALL, ANY, ONE)
REFERENCES_MAX: Final = 100

KEYS: Final = {
    "string": ("minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "object": (
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "minProperties",
        "maxProperties",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "propertyNames",
        "unevaluatedProperties",
    ),
    "array": (
        "items",
        "prefixItems",
        "additionalItems",
        "minItems",
        "maxItems",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
        "unevaluatedItems",
    ),
}
"""Which keys imply which type."""


class Shape(NamedTuple):
    """`kind`: empty, false, string, number, integer, boolean, null, object, array, enum, const, not, if, or combined.

    `raw` has the keys; `parts` are those of a combined shape.
    """

    kind: str
    raw: Mapping[str, Any]
    resolver: Resolver
    is_old: bool
    parts: tuple[Raw, ...] = ()
    inner: tuple[Shape, ...] = ()

    def shapes(self) -> Iterator[Shape]:
        """Of the parts of a combined shape, equal ones once."""
        yield from self.inner
        seen = set()
        for part in self.parts:
            text = json.dumps(part, sort_keys=True)
            if text not in seen:
                seen.add(text)
                yield shape_of(part, self.resolver, self.is_old)

    def sub(self, raw: Raw) -> Shape:
        """The shape of a schema inside this one."""
        return shape_of(raw, self.resolver, self.is_old)


def shape_of(raw: Raw, resolver: Resolver, is_old: bool) -> Shape:
    """Raises RegistryError 42201 for a reference that leads nowhere."""
    for _ in range(REFERENCES_MAX):
        if isinstance(raw, bool):
            return Shape(EMPTY if raw else FALSE, {}, resolver, is_old)
        resolver = within(resolver, raw)
        reference = raw.get("$ref")
        if not isinstance(reference, str) or not (is_old or len(raw) == 1):
            break
        raw, resolver = looked_up(resolver, reference)
    pieces = [*_typed(raw, resolver, is_old), *_others(raw, resolver, is_old)]
    if not pieces:
        return Shape(EMPTY, raw, resolver, is_old)
    if len(pieces) == 1:
        return pieces[0]
    return Shape(ALL, raw, resolver, is_old, inner=tuple(pieces))


def _typed(raw: Mapping[str, Any], resolver: Resolver, is_old: bool) -> Iterator[Shape]:
    kinds = raw.get("type")
    if isinstance(kinds, str):
        yield Shape(kinds, raw, resolver, is_old)
    elif isinstance(kinds, list):
        inner = tuple(Shape(str(kind), raw, resolver, is_old) for kind in dict.fromkeys(map(str, kinds)))
        yield inner[0] if len(inner) == 1 else Shape(ANY, raw, resolver, is_old, inner=inner)
    else:
        for kind, keys in KEYS.items():
            if any(key in raw for key in keys):
                yield Shape(kind, raw, resolver, is_old)


def _others(raw: Mapping[str, Any], resolver: Resolver, is_old: bool) -> Iterator[Shape]:
    for kind in ("enum", "const", "not", "if"):
        if kind in raw:
            yield Shape(kind, raw, resolver, is_old)
    for kind in COMBINED:
        if isinstance(raw.get(kind), list):
            yield Shape(kind, raw, resolver, is_old, parts=tuple(raw[kind]))
    if not is_old and isinstance(raw.get("$ref"), str):
        yield shape_of(*looked_up(resolver, raw["$ref"]), is_old)
