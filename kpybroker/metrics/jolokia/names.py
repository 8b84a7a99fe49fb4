"""Object names and patterns of them, as ``javax.management.ObjectName`` has them."""

from __future__ import annotations

import re
from fnmatch import translate
from typing import Final, NamedTuple

from kpybroker.metrics.jolokia.requests import ILLEGAL, RequestError

_PROPERTY: Final = re.compile(r'([^,=:*?]+)=("(?:[^"\\]|\\.)*"|[^,=:"]*)(?:,|$)')
PROPERTIES_MAX: Final = 32
"""In a name: no MBean here has ten, and each of a pattern is a regular expression."""
_WILDCARDS: Final = frozenset("*?")


class ObjectName(NamedTuple):
    """`properties` in the order of the text. `is_open`: others may follow (`,*`)."""

    domain: str
    properties: tuple[tuple[str, str], ...]
    is_open: bool = False

    @property
    def is_pattern(self) -> bool:
        """Whether it can match more than one name."""
        return self.is_open or _has_wildcard(self.domain) or any(_has_wildcard(value) for _, value in self.properties)

    def text(self, *, canonical: bool) -> str:
        """The name; canonical with its keys in order, as Jolokia writes it unless a request says otherwise."""
        parts = [f"{key}={value}" for key, value in (sorted(self.properties) if canonical else self.properties)]
        return f"{self.domain}:{','.join([*parts, *(['*'] if self.is_open else [])])}"


def parse_name(text: str) -> ObjectName:
    """Raises RequestError, with the words of Java."""
    domain, _, rest = text.partition(":")
    if not rest:
        raise _invalid("Key properties cannot be empty")
    is_open = False
    found: dict[str, str] = {}
    position = 0
    while position < len(rest):
        if rest.startswith("*,", position) or (rest[position] == "*" and position + 1 == len(rest)):
            is_open = True
            position += 2
            continue
        match = _PROPERTY.match(rest, position)
        if match is None:
            raise _invalid(_what_is_wrong(rest[position:]))
        if match[1] in found:
            raise _invalid(f"key `{match[1]}' already defined")
        if len(found) == PROPERTIES_MAX:
            raise _invalid(f"More than {PROPERTIES_MAX} key properties")
        found[match[1]] = match[2]
        position = match.end()
    return ObjectName(domain, tuple(found.items()), is_open)


def _what_is_wrong(rest: str) -> str:
    """With what begins as a property."""
    if rest.startswith("*"):
        return "Invalid character found after '*': end of name or ',' expected"
    key, equals, value = rest.partition("=")
    if wrong := set(key) & set(",:*?"):
        return f"Invalid character '{min(wrong)}' in key part of property"
    if not equals:
        return "Unterminated key property part"
    if not key:
        return "Invalid key (empty)"
    if value.startswith('"'):
        return "Missing termination quote"
    wrong = set(value.partition(",")[0]) & set('=:"')
    return f"Invalid character '{min(wrong, default='')}' in value part of property"


def _invalid(reason: str) -> RequestError:
    return RequestError(ILLEGAL, f"Invalid object name. {reason}", 400)


class Matcher:
    """Whether names match a pattern. Work is bounded by the product of the two lengths, whatever the pattern is."""

    def __init__(self, pattern: ObjectName) -> None:
        self._domain = re.compile(_glob(pattern.domain))
        self._is_open = pattern.is_open
        self._properties = {key: re.compile(_glob(value)) for key, value in pattern.properties}

    def may_match(self, domain: str, keys: dict[str, str], tags: tuple[str, ...]) -> bool:
        """Whether an MBean of this domain with these properties, and any values of `tags`, can match."""
        if not self._domain.match(domain):
            return False
        for key, wanted in self._properties.items():
            if key in keys:
                if not wanted.match(keys[key]):
                    return False
            elif key not in tags:
                return False
        return self._is_open or all(key in self._properties for key in keys)

    def matches_tags(self, tags: tuple[tuple[str, str], ...]) -> bool:
        """Of a name whose other properties match."""
        present = dict(tags)
        for key in present:
            if not self._is_open and key not in self._properties:
                return False
        return all(wanted.match(value) for key, value in tags if (wanted := self._properties.get(key)))

    def wants(self, keys: frozenset[str]) -> bool:
        """Whether all properties of the pattern are in a name with these keys."""
        return self._properties.keys() <= keys


def _has_wildcard(value: str) -> bool:
    return bool(_WILDCARDS & set(re.sub(r"\\.", "", value)))


def _glob(value: str) -> str:
    """A regular expression. What a backslash precedes in a quoted value is no wildcard."""
    parts = re.findall(r"\\.|[^\\]", value, re.DOTALL)
    literal = {"[": "[[]", "\\*": "\\[*]", "\\?": "\\[?]"}
    return translate("".join(literal.get(part, part) for part in parts))
