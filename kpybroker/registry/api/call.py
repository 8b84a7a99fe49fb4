"""`Call`: a request as handlers see it, and `Result`, what they return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from starlette.datastructures import QueryParams

from kpybroker.registry.errors import RegistryError
from kpybroker.registry.service import Service
from kpybroker.registry.store import contexts

UNPROCESSABLE = 422


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

    def flag(self, name: str) -> bool:
        """A parameter that is true or false."""
        return self.query.get(name, "").lower() == "true"

    def number(self, name: str, default: int) -> int:
        """A parameter that is a whole number. Raises RegistryError 404, as for a path that does not exist."""
        try:
            return int(self.query.get(name) or default)
        except ValueError:
            raise RegistryError(UNPROCESSABLE, f"{name} is no number") from None

    def page(self, found: list[Any]) -> list[Any]:
        """The part of a list that `offset` and `limit` choose."""
        offset, limit = max(0, self.number("offset", 0)), self.number("limit", -1)
        return found[offset:] if limit < 0 else found[offset : offset + limit]


class Text(NamedTuple):
    """A result that is a schema's text and no JSON value around it."""

    text: str


class Empty:
    """Status 204, and no body."""


Result = Any
"""A JSON value, `Text` or `Empty`."""
