"""Kerberos principals and the users that they are: `sasl.kerberos.principal.to.local.rules`.

Kafka's `KerberosName`, ``KerberosRule`` and ``KerberosShortNamer``. A rule is `DEFAULT`, or

    RULE:[components:format](pattern)s/from/to/g/L

It applies to principals with that number of components, whose format (`$0` is the realm, `$1` and `$2` the components)
matches the pattern. `/L` and `/U` change the case. The first rule that applies decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_PRINCIPAL = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_RULE = re.compile(
    r"(?P<default>DEFAULT)|RULE:\[(?P<components>\d*):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<from>[^/]*)/(?P<to>[^/]*)/(?P<all>g)?)?/?(?P<case>[LU])?"
)
_PARAMETER = re.compile(r"\$(\d*)")
_JAVA_REFERENCE = re.compile(r"\\(.)|\$(\d)", re.DOTALL)
_NOT_SIMPLE = re.compile("[/@]")


class NoMatchingRule(Exception):
    """No rule makes a user of the principal, or one makes a name that is none. It names the principal."""


class KerberosName(NamedTuple):
    """`primary/instance@REALM`; both later parts may be absent."""

    primary: str
    instance: str | None
    realm: str | None

    def __str__(self) -> str:
        instance = "" if self.instance is None else f"/{self.instance}"
        realm = "" if self.realm is None else f"@{self.realm}"
        return self.primary + instance + realm


def parse_name(principal: str) -> KerberosName:
    """Raises ValueError for a name with an `@` that is malformed; one without is a primary alone, as in Kafka."""
    match = _PRINCIPAL.fullmatch(principal)
    if match is not None:
        return KerberosName(*match.groups())
    if "@" in principal:
        raise ValueError(f"Malformed Kerberos name: {principal}")
    return KerberosName(principal, None, None)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `components` is None for DEFAULT, which takes the primary of names in the default realm."""

    components: int | None = None
    format: str = ""
    match: re.Pattern[str] | None = None
    source: re.Pattern[str] | None = None
    target: str = ""
    is_repeated: bool = False
    case: str | None = None

    def apply(self, parameters: Sequence[str], default_realm: str) -> str | None:
        """The user; None if the rule does not apply. `parameters`: the realm, then the components.

        Raises NoMatchingRule for a result that is no simple name.
        """
        result = self._result(parameters, default_realm)
        if result is None:
            return None
        if _NOT_SIMPLE.search(result):
            raise NoMatchingRule(f"Non-simple name {result} after a rule of sasl.kerberos.principal.to.local.rules")
        return result.lower() if self.case == "L" else result.upper() if self.case == "U" else result

    def _result(self, parameters: Sequence[str], default_realm: str) -> str | None:
        if self.components is None:
            return parameters[1] if parameters[0] == default_realm else None
        if len(parameters) - 1 != self.components:
            return None
        base = _PARAMETER.sub(lambda match: parameters[int(match[1])], self.format)
        if self.match is not None and not self.match.fullmatch(base):
            return None
        return base if self.source is None else self.source.sub(self.target, base, count=0 if self.is_repeated else 1)


def parse_rule(text: str) -> Rule:
    """Raises ValueError with what is wrong."""
    match = _RULE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"Invalid rule: {text.strip()}")
    if match["default"]:
        return Rule()
    components = int(match["components"] or -1)
    numbers = [int(number) if number else components + 1 for number in _PARAMETER.findall(match["format"])]
    if any(number > components for number in numbers):
        raise ValueError(f"Invalid rule: {text.strip()}: a parameter of the format is not one of its components")
    try:
        source = None if match["from"] is None else re.compile(match["from"])
        pattern = None if match["match"] is None else re.compile(match["match"])
        if "\\" in _JAVA_REFERENCE.sub("", match["to"] or ""):
            raise re.error("the replacement ends with a backslash that escapes nothing")
        target = _JAVA_REFERENCE.sub(_python_reference, match["to"] or "")
        if source is not None:
            _check_target(source, target)
    except (re.error, IndexError) as error:
        raise ValueError(f"Invalid rule: {text.strip()}: {error}") from None
    return Rule(components, match["format"], pattern, source, target, bool(match["all"]), match["case"])


def _python_reference(match: re.Match[str]) -> str:
    """`$1` of a Java replacement, and its escaped characters."""
    if match[2] is not None:
        return rf"\g<{match[2]}>"
    return r"\\" if match[1] == "\\" else match[1]


def _check_target(source: re.Pattern[str], target: str) -> None:
    """Raise re.error where the target names a group that the source has not."""
    groups = [int(number) for number in re.findall(r"\\g<(\d+)>", target)]
    if any(number > source.groups for number in groups):
        raise re.error("the replacement names a group that the pattern does not have")


class ShortNames(NamedTuple):
    """The rules of a listener, in order."""

    rules: tuple[Rule, ...]
    default_realm: str

    def user(self, name: KerberosName) -> str:
        """The user that a principal is. Raises NoMatchingRule."""
        if name.realm is None and name.instance is None:
            return name.primary
        parameters = [name.realm or "", name.primary, *([] if name.instance is None else [name.instance])]
        for rule in self.rules:
            user = rule.apply(parameters, self.default_realm)
            if user is not None:
                return user
        raise NoMatchingRule(f"No rules apply to {name}")


def parse_rules(texts: Sequence[str], default_realm: str) -> ShortNames:
    """The rules as the key has them, `DEFAULT` if there is none. Raises ValueError."""
    return ShortNames(tuple(parse_rule(text) for text in texts) or (Rule(),), default_realm)
