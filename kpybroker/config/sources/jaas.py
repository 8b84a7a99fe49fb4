"""JAAS login files, as `-Djava.security.auth.login.config` names them: named contexts with their login modules.

    Client {
        org.apache.zookeeper.server.auth.DigestLoginModule required
        username="kafka" password="secret";
    };

The grammar is javax.security.auth.login.Configuration's. The options of a module are not interpreted here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})

_TOKEN = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/
    | "(?P<quoted>(?:\\.|[^"\\])*)" | '(?P<single>(?:\\.|[^'\\])*)'
    | (?P<word>[^\s{};="']+) | (?P<sign>[{};=])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class JaasError(ValueError):
    """A file that is not a JAAS login file; the message names it."""


class LoginModule(NamedTuple):
    """One entry of a context: the class of the module, its flag in lower case, its options."""

    name: str
    flag: str
    options: Mapping[str, str]


def parse_jaas(file: str, text: str) -> dict[str, list[LoginModule]]:
    """Context name -> its modules, in order. `file` is for messages only. Raises `JaasError`."""
    tokens = _tokens(file, text)
    contexts: dict[str, list[LoginModule]] = {}
    for name in tokens:
        _expect(file, next(tokens, ""), "{")
        contexts[name] = list(_modules(file, tokens))
        _expect(file, next(tokens, ""), ";")
    return contexts


def _modules(file: str, tokens: Iterator[str]) -> Iterator[LoginModule]:
    while (name := next(tokens, "")) != "}":
        flag = next(tokens, "")
        if flag.lower() not in FLAGS:
            raise JaasError(f"{file}: {flag!r} after {name} is not one of {', '.join(sorted(FLAGS))}")
        options: dict[str, str] = {}
        while (key := next(tokens, "")) != ";":
            _expect(file, next(tokens, ""), "=")
            options[key] = next(tokens, "")
        yield LoginModule(name, flag.lower(), options)


def _tokens(file: str, text: str) -> Iterator[str]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            line = text.count("\n", 0, position) + 1
            raise JaasError(f"{file}: line {line} cannot be read as a JAAS login file")
        position = match.end()
        if match.lastgroup in ("quoted", "single"):
            yield _ESCAPED.sub(r"\1", match[match.lastgroup])
        elif match.lastgroup is not None:
            yield match[match.lastgroup]


def _expect(file: str, found: str, sign: str) -> None:
    if found != sign:
        raise JaasError(f"{file}: {sign} expected, {found or 'the end'!r} found")
