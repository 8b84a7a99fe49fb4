"""Bodies of requests: from JSON to the members that are known, each in its type.

What Confluent's registry converts is converted here too: a number is taken for a text, `"1"` for a number. A member
that cannot be converted is refused with 400 and its name, null counts as missing, and unknown members are passed over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from kpybroker.registry.errors import RegistryError

BAD_REQUEST: Final = 400
NO_BODY: Final = 422
INT_MAX: Final = 2**31 - 1
DIGITS_MAX: Final = 20

Reader = Callable[[str, Any], Any]
"""From a member's name and its value, which is not null, to what it means; None for nothing."""
Members = Mapping[str, Reader]


def loaded(content: bytes) -> Any:
    """The JSON value that a body is; None for a body without one. Raises RegistryError 400."""
    try:
        text = content.decode("utf-8").strip()
        return json.loads(text, parse_constant=_no_number) if text else None
    except (ValueError, RecursionError):
        raise RegistryError(BAD_REQUEST, "The body is no JSON.") from None


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no JSON")


def members(value: Any, known: Members) -> dict[str, Any]:
    """Of the object that a body is. Raises RegistryError 400, and 422 for no body."""
    if value is None:
        raise RegistryError(NO_BODY, "The request needs a body, a JSON object.")
    if not isinstance(value, dict):
        raise RegistryError(BAD_REQUEST, "The body is no JSON object.")
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise RegistryError(BAD_REQUEST, "The body has half a surrogate pair, which is no text.") from None
    return _members("", value, known)


def _members(place: str, value: Mapping[str, Any], known: Members) -> dict[str, Any]:
    """Null stays where the member was sent: it removes a setting."""
    return {
        name: None if value[name] is None else read(place + name, value[name])
        for name, read in known.items()
        if name in value
    }


def _wrong(name: str, kind: str) -> RegistryError:
    return RegistryError(BAD_REQUEST, f"{name} must be {kind}.")


def text(name: str, value: Any) -> str:
    """A text; numbers and truth values are written as one."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        raise _wrong(name, "a text")
    return json.dumps(value)


def whole(name: str, value: Any) -> int | None:
    """A number of 32 bits. A fraction is cut off, and a text without anything is none."""
    if isinstance(value, str):
        written = value.strip()
        if not written:
            return None
        digits = written.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= DIGITS_MAX):
            raise _wrong(name, "a whole number")
        value = int(written)
    if isinstance(value, bool) or not isinstance(value, int | float) or not -INT_MAX - 1 <= value <= INT_MAX:
        raise _wrong(name, "a whole number")
    return int(value)


def flag(name: str, value: Any) -> bool | None:
    """True or false; a whole number is false for 0."""
    if isinstance(value, str):
        if not value.strip():
            return None
        found = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
        if value.strip() in found:
            return found[value.strip()]
    if isinstance(value, bool | int):
        return bool(value)
    raise _wrong(name, "true or false")


def list_of(read: Reader) -> Reader:
    """A list whose members are of one type; null stays null."""

    def found(name: str, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise _wrong(name, "a list")
        return [None if one is None else read(f"{name}[{number}]", one) for number, one in enumerate(value)]

    return found


def map_of(read: Reader) -> Reader:
    """An object with names of the sender's choice; null is no value."""

    def found(name: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _wrong(name, "an object")
        if any(one is None for one in value.values()):
            raise _wrong(f"every value of {name}", "there")
        return {key: read(f"{name}.{key[:100]}", one) for key, one in sorted(value.items())}

    return found


def object_of(known: Members, *, keeps_empty: bool = True) -> Reader:
    """An object with known members; those that are null are left out, and empty ones too unless they are kept."""

    def found(name: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _wrong(name, "an object")
        made = _members(f"{name}.", value, known)
        return {key: one for key, one in made.items() if one is not None and (keeps_empty or one not in ({}, []))}

    return found


def one_of(*names: str) -> Reader:
    """One of some words."""

    def found(name: str, value: Any) -> str:
        if value not in names:
            raise _wrong(name, f"one of {', '.join(names)}")
        return str(value)

    return found


def set_of_texts(name: str, value: Any) -> list[str]:
    """A list in which each text is once, in the order of the alphabet."""
    found = list_of(text)(name, value)
    if None in found:
        raise _wrong(f"every member of {name}", "there")
    return sorted(set(found))


METADATA: Final = object_of(
    {"tags": map_of(set_of_texts), "properties": map_of(text), "sensitive": set_of_texts}, keeps_empty=False
)
RULE: Final = object_of(
    {
        "name": text,
        "doc": text,
        "kind": one_of("TRANSFORM", "CONDITION"),
        "mode": one_of("UPGRADE", "DOWNGRADE", "UPDOWN", "READ", "WRITE", "WRITEREAD"),
        "type": text,
        "tags": set_of_texts,
        "params": map_of(text),
        "expr": text,
        "onSuccess": text,
        "onFailure": text,
        "disabled": flag,
    }
)
RULE_SET: Final = object_of({name: list_of(RULE) for name in ("migrationRules", "domainRules", "encodingRules")})
TAGS: Final = list_of(
    object_of({"schemaEntity": object_of({"entityPath": text, "entityType": text}), "tags": list_of(text)})
)
SCHEMA: Final[Members] = {
    "schema": text,
    "schemaType": text,
    "references": list_of(object_of({"name": text, "subject": text, "version": whole})),
    "metadata": METADATA,
    "ruleSet": RULE_SET,
    "id": whole,
    "version": whole,
    "schemaTagsToAdd": TAGS,
    "schemaTagsToRemove": TAGS,
    "propagateSchemaTags": flag,
}
"""Of a registration, a look-up and a test of compatibility."""
CONFIG: Final[Members] = {
    "compatibility": text,
    "compatibilityGroup": text,
    "alias": text,
    "normalize": flag,
    "validateFields": flag,
    "validateRules": flag,
    "defaultMetadata": METADATA,
    "overrideMetadata": METADATA,
    "defaultRuleSet": RULE_SET,
    "overrideRuleSet": RULE_SET,
}
MODE: Final[Members] = {"mode": text}
