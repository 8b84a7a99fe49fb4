"""JAAS login configuration: files as `-Djava.security.auth.login.config` names them, and values of `sasl.jaas.config`.

    KafkaServer {
        org.apache.kafka.common.security.plain.PlainLoginModule required
        username="admin" password="secret" user_admin="secret";
    };

A file holds named contexts with their login modules; a value holds one module alone. The grammar is that of
javax.security.auth.login.Configuration. The options of a module are not interpreted here. They hold passwords, so no
error and no repr shows a value; errors name the line instead.
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
_SIGN, _END = "sign", "end"


class JaasError(ValueError):
    """A text that is not a JAAS login configuration. The message says where, and shows no value."""


class LoginModule(NamedTuple):
    """One entry of a context: the class of the module, its flag in lower case, its options."""

    name: str
    flag: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.name} {self.flag} with {', '.join(self.options) or 'no options'})"


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


class _Tokens:
    """The tokens of one text; after the last one, `end` tokens."""

    def __init__(self, place: str, text: str) -> None:
        self.place = place
        self._tokens = _tokens(place, text)
        self._line = 1

    def next(self) -> _Token:
        """The next token."""
        token = next(self._tokens, None) or _Token(_END, "", self._line)
        self._line = token.line
        return token

    def name(self, wanted: str) -> str:
        """The next token, which must be a word or in quotes."""
        token = self.next()
        if token.kind in (_SIGN, _END):
            raise self.error(token, f"{wanted} expected")
        return token.text

    def expect(self, sign: str, after: str) -> None:
        """The next token must be this sign."""
        token = self.next()
        if token.kind != _SIGN or token.text != sign:
            raise self.error(token, f"`{sign}` expected after {after}")

    def error(self, token: _Token, problem: str) -> JaasError:
        """An error at this token."""
        end = ", where the text ends" if token.kind == _END else ""
        return JaasError(f"{self.place}: line {token.line}: {problem}{end}")


def parse_jaas(file: str, text: str) -> dict[str, list[LoginModule]]:
    """Context name -> its modules, in order. `file` is for messages only. Raises `JaasError`."""
    tokens = _Tokens(file, text)
    contexts: dict[str, list[LoginModule]] = {}
    while (token := tokens.next()).kind != _END:
        if token.kind == _SIGN:
            raise tokens.error(token, "the name of a context expected")
        tokens.expect("{", "the name of a context")
        contexts[token.text] = list(_modules(tokens))
        tokens.expect(";", "a context")
    return contexts


def parse_login_modules(place: str, text: str) -> list[LoginModule]:
    """The modules of a value of `sasl.jaas.config`. `place` is for messages only. Raises `JaasError`."""
    tokens = _Tokens(place, text)
    modules = []
    while (token := tokens.next()).kind != _END:
        if token.kind == _SIGN:
            raise tokens.error(token, "the class of a login module expected")
        modules.append(_module(tokens, token.text))
    return modules


def _modules(tokens: _Tokens) -> Iterator[LoginModule]:
    while True:
        token = tokens.next()
        if token.kind == _SIGN and token.text == "}":
            return
        if token.kind in (_SIGN, _END):
            raise tokens.error(token, "the class of a login module or `}` expected")
        yield _module(tokens, token.text)


def _module(tokens: _Tokens, name: str) -> LoginModule:
    flag = tokens.next()
    if flag.text.lower() not in FLAGS:
        raise tokens.error(flag, f"one of {', '.join(sorted(FLAGS))} expected after the class of the login module")
    options: dict[str, str] = {}
    while (key := tokens.next()).kind != _SIGN or key.text != ";":
        if key.kind in (_SIGN, _END):
            raise tokens.error(key, "an option of the login module or `;` expected")
        tokens.expect("=", "an option of the login module")
        options[key.text] = tokens.name("a value for an option of the login module")
    return LoginModule(name, flag.text.lower(), options)


def _tokens(place: str, text: str) -> Iterator[_Token]:
    position, line = 0, 1
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise JaasError(f"{place}: line {line} cannot be read as a JAAS login configuration")
        kind = match.lastgroup
        if kind in ("quoted", "single"):
            yield _Token(kind, _ESCAPED.sub(r"\1", match[kind]), line)
        elif kind is not None:
            yield _Token(kind, match[kind], line)
        line += text.count("\n", position, match.end())
        position = match.end()
