"""`Call`: a request as handlers see it, and `Result`, what they return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from starlette.datastructures import QueryParams

from kpybroker.registry.errors import RegistryError
from kpybroker.registry.rules import entities, scope
from kpybroker.registry.service import Service
from kpybroker.registry.store import contexts

NOT_FOUND = 404
DIGITS_MAX = 10
INT_MAX = 2**31 - 1


class Call(NamedTuple):
    """`path` are the parts of the path that vary, decoded; `body` is its JSON object, empty for none."""

    service: Service
    path: Mapping[str, str]
    query: QueryParams
    body: dict[str, Any]

    @property
    def subject(self) -> str:
        """Of the path, with its context unless that is the default one."""
        return contexts.normal(self.path["subject"])

    def of_alias(self, path: str) -> Call:
        """The same request for the subject that an alias stands for; `path` is the route's."""
        if "/subjects/{subject}" not in path:
            return self
        real = self.service.read(lambda state, _: scope.unaliased(state, self.subject))
        return self._replace(path={**self.path, "subject": real})

    def parameter(self, name: str, default: str = "") -> str:
        """Of the query: the first one with this name."""
        return next(iter(self.query.getlist(name)), default)

    def flag(self, name: str) -> bool:
        """A parameter that is true or false."""
        return self.parameter(name).lower() == "true"

    def qualified(self, made: dict[str, Any], subject: str) -> dict[str, Any]:
        """A schema with the references that `referenceFormat` asks for."""
        return entities.qualified(made, subject) if self.parameter("referenceFormat") == "qualified" else made

    def number(self, name: str, default: int) -> int:
        """A parameter that is a whole number. Raises RegistryError 404, as for a path that does not exist."""
        text = self.parameter(name)
        digits = text[1:] if text[:1] in ("-", "+") else text
        if not text:
            return default
        if not (digits.isascii() and digits.isdigit() and len(digits) <= DIGITS_MAX and abs(int(text)) <= INT_MAX):
            raise RegistryError(NOT_FOUND, "HTTP 404 Not Found")
        return int(text)

    def page(self, found: list[Any]) -> list[Any]:
        """The part of a list that `offset` and `limit` choose."""
        offset, limit = max(0, self.number("offset", 0)), self.number("limit", -1)
        return found[offset:] if limit <= 0 else found[offset : offset + limit]


class Text(NamedTuple):
    """A result that is a schema's text and no JSON value around it."""

    text: str


class Empty:
    """Status 204, and no body."""


Result = Any
"""A JSON value, `Text` or `Empty`."""
