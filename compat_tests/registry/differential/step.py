"""`Step`, a request as the generators write it, and `Conversation`, requests that belong together.

A path or a body may name what an earlier response had: `@1` is the first id that the conversation saw, `@g1` the first
guid. So two registries that give other ids can be asked the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

V1: Final = "application/vnd.schemaregistry.v1+json"
JSON_TYPE: Final = "application/json"


class Raw(NamedTuple):
    """A body that is sent as it is."""

    text: str


class Step(NamedTuple):
    """A request. `body` is sent as JSON, unless it is `Raw`; None sends none, and `Raw("null")` sends null."""

    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = {}

    @property
    def content(self) -> str | None:
        """The body as text."""
        if self.body is None:
            return None
        return self.body.text if isinstance(self.body, Raw) else json.dumps(self.body)

    @property
    def shown(self) -> str:
        """One line that says all of it."""
        named = "".join(f" {name}: {value};" for name, value in self.headers.items())
        return f"{self.method} {self.path}{named}{'' if self.content is None else ' ' + self.content}"


class Conversation(NamedTuple):
    """Steps for subjects that only this conversation uses; all of them start with its name."""

    name: str
    steps: tuple[Step, ...]


def conversation(name: str, steps: Iterable[Step]) -> Conversation:
    """`NAME` in paths and bodies stands for the conversation's name; `Order`, a type of schemas, gets it too.

    So no two conversations register the same schema, and an id has no subjects of another one.
    """
    words = {"NAME": name, "Order": "Order" + name.title().replace("-", "").replace("_", "")}
    return Conversation(name, tuple(_named(step, words) for step in steps))


def _named(step: Step, words: Mapping[str, str]) -> Step:
    path = _replaced(step.path, words)
    match step.body:
        case None:
            return step._replace(path=path)
        case Raw(text):
            return step._replace(path=path, body=Raw(_replaced(text, words)))
        case _:
            return step._replace(path=path, body=json.loads(_replaced(json.dumps(step.body), words)))


def _replaced(text: str, words: Mapping[str, str]) -> str:
    for word, other in words.items():
        text = text.replace(word, other)
    return text
