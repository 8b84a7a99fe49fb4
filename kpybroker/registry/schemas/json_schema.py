"""JSON Schema: drafts 4 to 2020-12. Without `$schema` it is draft 7, as in Confluent's registry.

The text must be a schema of its draft, and every `$ref` must lead somewhere: into the schema, to a reference by its
name, or to a draft's own schema. Nothing is fetched from a network.

Canonical: white space is removed, and numbers keep their digits, in Java's spelling. Normalized: keys are sorted too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

import referencing
import referencing.exceptions
from jsonschema.exceptions import SchemaError
from jsonschema.validators import Draft7Validator, validator_for
from jsonschema_specifications import REGISTRY as SPECIFICATIONS
from referencing.jsonschema import DRAFT7, SchemaResource, specification_with

from kpybroker.registry.errors import invalid_schema
from kpybroker.registry.schemas import java_json
from kpybroker.registry.schemas.model import DEPTH_MAX, JSON, Identity, Texts, depth

OLD_DRAFTS: Final = ("draft-03", "draft-04", "draft-06", "draft-07")
"""In these, keys next to `$ref` mean nothing."""
MIXED_MAX: Final = 1000
WHERE_MAX: Final = 100
SHOWN_MAX: Final = 100
Resolver = Any
"""referencing's, whose type parameters differ from draft to draft."""
Raw = Any
"""A schema as JSON: an object or a boolean."""


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:
        raise ValueError("a number's exponent is too great") from None


BLANKS: Final = " \t\r\n"
DECODER: Final = json.JSONDecoder(parse_constant=_no_number)
EXACT: Final = json.JSONDecoder(parse_constant=_no_number, parse_float=_decimal)
"""Both read one value; what follows it is passed over, as by Confluent's registry."""


class JsonSchema:
    """A parsed schema. `root` is its JSON; `resolver` finds what it refers to, in the `documents`."""

    kind = JSON

    def __init__(self, text: str, root: Raw, resolver: Resolver, documents: Sequence[Raw], *, is_old: bool) -> None:
        self._text = text
        self.root = root
        self.documents = documents
        self.resolver = resolver
        self.is_old = is_old

    @cached_property
    def canonical(self) -> str:
        """Keys in the order of the text, numbers with the digits that they have there."""
        return java_json.dumps(self._exact)

    @property
    def normalized(self) -> str:
        """Keys in the order of the alphabet."""
        return java_json.dumps(java_json.with_order(self._exact))

    @property
    def _exact(self) -> Raw:
        exact, _ = EXACT.raw_decode(self._text.lstrip(BLANKS))
        return exact

    @property
    def identity(self) -> Identity:
        """By the canonical text: the order of keys counts, as in Confluent's registry.

        Earlier versions of this one stored other spellings of numbers, and with normalization another order.
        """
        earlier = (
            json.dumps(self.root, ensure_ascii=False, separators=(",", ":"), sort_keys=is_sorted)
            for is_sorted in (False, True)
        )
        return Identity(
            frozenset((self.canonical, f"as sent {self._text}")),
            frozenset((self.canonical, *(f"as sent {text}" for text in earlier))),
        )

    def check_names(self) -> None:
        """All references lead somewhere."""
        waiting: list[tuple[Raw, Resolver]] = [(self.root, self.resolver)]
        seen: set[int] = set()
        while waiting:
            raw, resolver = waiting.pop()
            if id(raw) in seen:
                continue
            seen.add(id(raw))
            resolver = within(resolver, raw) if raw is not self.root else resolver
            reference = raw.get("$ref") if isinstance(raw, dict) else None
            if isinstance(reference, str):
                waiting.append(looked_up(resolver, reference))
            waiting += [(part, resolver) for part in _parts(raw)]

    def formatted(self, form: str) -> str:
        """There is no other format."""
        return self.canonical


def parse(text: str, references: Texts, *, is_new: bool = False) -> JsonSchema:
    """Raises RegistryError 42201. Only of a new schema it is checked that all references lead somewhere."""
    root = _loaded(text)
    dialect = root.get("$schema") if isinstance(root, dict) else None
    try:
        validator_for(root, default=Draft7Validator).check_schema(root)
        others = {name: _loaded(referenced) for name, referenced in references.items()}
        resources = [(name, _resource(other)) for name, other in others.items()]
        main = _resource(root)
        registry: Any = SPECIFICATIONS
        registry = registry.with_resources([*resources, *((_file(name), one) for name, one in resources)])
        resolver: Resolver = registry.with_resource("", main).crawl().resolver_with_root(main)
    except SchemaError as error:
        raise invalid_schema(_shown(error)) from None
    except RecursionError:
        raise invalid_schema("it is nested too deep") from None
    except Exception:  # of two libraries, for a text that anyone sent
        raise invalid_schema("it cannot be read as a schema of its draft") from None
    is_old = dialect is None or any(draft in str(dialect) for draft in OLD_DRAFTS)
    parsed = JsonSchema(text, root, resolver, [root, *others.values()], is_old=is_old)
    if is_new:
        parsed.check_names()
    return parsed


def _shown(error: SchemaError) -> str:
    """Where a schema is none of its draft, and what the draft says there."""
    where = "/".join(map(str, error.absolute_path))[:WHERE_MAX]
    value, wanted = (java_json.dumps(one)[:SHOWN_MAX] for one in (error.instance, error.validator_value))
    return f"{value} at /{where} is not what its draft allows, whose {error.validator} is {wanted}"


def _loaded(text: str) -> Raw:
    if depth(text) > DEPTH_MAX:
        raise invalid_schema(f"it is nested deeper than {DEPTH_MAX} levels")
    try:
        value, _ = DECODER.raw_decode(text.lstrip(BLANKS))
        EXACT.raw_decode(text.lstrip(BLANKS))
    except (ValueError, RecursionError):
        raise invalid_schema("the text is no JSON") from None
    if not isinstance(value, dict | bool):
        raise invalid_schema("it is neither an object nor a boolean")
    _check_arrays(value)
    return value


def _check_arrays(root: Raw) -> None:
    """jsonschema compares each value with each other where they cannot be sorted."""
    waiting = [root]
    while waiting:
        value = waiting.pop()
        parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        is_mixed = len(set(map(type, parts))) > 1 or any(isinstance(one, dict | list) for one in parts)
        if isinstance(value, list) and len(value) > MIXED_MAX and is_mixed:
            raise invalid_schema(f"an array has more than {MIXED_MAX} values that are not all texts, or all numbers")
        waiting += [part for part in parts if isinstance(part, dict | list)]


def _resource(root: Raw) -> SchemaResource:
    dialect = root.get("$schema") if isinstance(root, dict) else None
    specification: Any = DRAFT7
    if isinstance(dialect, str):
        specification = specification_with(dialect, default=DRAFT7)
    return specification.create_resource(root)  # type: ignore[no-any-return]


def _file(name: str) -> str:
    """The name with which a schema without `$id` refers to another next to it."""
    return name if "://" in name else f"/{name}"


FRAMES_OF_A_LOOKUP = 30


def _require_frames(count: int) -> None:
    """Raise RecursionError where so many calls within each other do not fit any more.

    A lookup that meets the limit itself is a panic of the library that it calls, which no one catches.
    """
    if count:
        _require_frames(count - 1)


def looked_up(resolver: Resolver, reference: str) -> tuple[Raw, Resolver]:
    """What a `$ref` leads to. Raises RegistryError 42201."""
    _require_frames(FRAMES_OF_A_LOOKUP)
    try:
        found = resolver.lookup(reference)
    except referencing.exceptions.Unresolvable:
        raise invalid_schema(f"$ref {reference[:200]} leads nowhere, and nothing is fetched") from None
    except Exception:  # a pointer into what is not an object, for one
        raise invalid_schema(f"$ref {reference[:200]} leads to nothing that is a schema") from None
    return found.contents, found.resolver


def within(resolver: Resolver, raw: Raw) -> Resolver:
    """The resolver inside a schema, whose `$id` may change the base."""
    if isinstance(raw, dict) and isinstance(raw.get("$id"), str):
        return resolver.in_subresource(_resource(raw))
    return resolver


def _parts(raw: Raw) -> Iterator[Raw]:
    """Objects directly in one; those in values that are no schemas are harmless, unless they look like references."""
    if isinstance(raw, Mapping):
        for key, value in raw.items():
            if key not in ("enum", "const", "default", "examples") and isinstance(value, dict | list):
                yield value
    elif isinstance(raw, list):
        yield from (one for one in raw if isinstance(one, dict | list))
