"""`ssl.principal.mapping.rules`: from the distinguished name of a client's certificate to the name of its principal.

Kafka's `SslPrincipalMapper` (KIP-371). Rules are separated by commas and tried in order: `DEFAULT` keeps the name,
`RULE:pattern/replacement/` with `L` or `U` at the end rewrites a name that the whole pattern matches. Patterns are
regular expressions, and `$1` in a replacement is a group, as in Java. A pattern that only Java understands is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

DEFAULT: Final = "DEFAULT"

_PART: Final = r"((?:\\.|[^\\/])*)"
_RULE: Final = re.compile(rf"\s*(?:(DEFAULT)|RULE:{_PART}/{_PART}/([LU]?))?\s*(?:,|$)")
_CASES: Final[dict[str, Callable[[str], str]]] = {"": str, "L": str.lower, "U": str.upper}


class RuleError(ValueError):
    """Rules that cannot be read."""


@dataclass(frozen=True, slots=True)
class PrincipalRule:
    """One rule; `pattern` None keeps the name."""

    pattern: re.Pattern[str] | None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """The name of the principal; None where the pattern does not match all of `name`."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        return _CASES[self.case](self.pattern.sub(self._expanded, name))

    def _expanded(self, match: re.Match[str]) -> str:
        return expand(self.replacement, match)


def parse_rules(text: str) -> Sequence[PrincipalRule]:
    """The rules of a value of `ssl.principal.mapping.rules`. Raises RuleError."""
    rules = []
    at = 0
    text = text.strip()
    while at < len(text):
        match = _RULE.match(text, at)
        if match is None or match.end() == at:
            raise RuleError(f"Invalid rule: `{text[at:]}`")
        at = match.end()
        default, pattern, replacement, case = match.groups()
        if default:
            rules.append(PrincipalRule(None))
        elif pattern is not None:
            rules.append(_rule(pattern, replacement, case))
    return tuple(rules)


def _rule(pattern: str, replacement: str, case: str) -> PrincipalRule:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise RuleError(f"Invalid rule: the pattern `{pattern}` cannot be used: {error}") from error
    return PrincipalRule(compiled, replacement, case)


def principal_name(rules: Sequence[PrincipalRule], name: str) -> str | None:
    """What the first rule that applies makes of a distinguished name; None where none applies."""
    return next((made for rule in rules if (made := rule.apply(name)) is not None), None)


def expand(replacement: str, match: re.Match[str]) -> str:
    """A replacement of Java's: `$1` is a group, and `\\` quotes the character after it. A group that does not exist
    is kept as text; digits belong to the number while that names a group.
    """
    groups = match.re.groups
    out = []
    at = 0
    while at < len(replacement):
        character = replacement[at]
        at += 1
        if character == "\\" and at < len(replacement):
            out.append(replacement[at])
            at += 1
        elif character == "$" and (digits := re.match(r"[0-9]+", replacement[at:])):
            taken = _group_digits(digits.group(), groups)
            out.append((match.group(int(taken)) or "") if taken else "$")
            at += len(taken)
        else:
            out.append(character)
    return "".join(out)


def _group_digits(digits: str, groups: int) -> str:
    """As many of the digits as name a group; "" where the first one names none."""
    if int(digits[0]) > groups:
        return ""
    taken = digits[0]
    for digit in digits[1:]:
        if int(taken + digit) > groups:
            break
        taken += digit
    return taken
