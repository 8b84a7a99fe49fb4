"""A client of a schema registry's REST interface: schemas by id, what they refer to, and the latest of a subject.

Schemas never change, so they are kept. A registry that fails is left alone for AWAY_S, so that the messages of a page
wait for it once; an id that it does not know is remembered as long.

Not confluent-kafka's SchemaRegistryClient: its time limit is for each piece of a response (23 bytes took it 23 seconds
with a limit of 2), it reads a response of any size, and it takes proxies from the environment.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.schemas import http, proto

SCHEMA_BYTES_MAX: Final = 4 << 20
KEPT_MAX: Final = 1000
REFERENCES_MAX: Final = 100
AWAY_S: Final = 10.0
WAIT_S_MAX: Final = 4.0
"""How long all schemas together may keep one page waiting; one request more may be under way."""


class Schema(NamedTuple):
    """Its type (AVRO, JSON, PROTOBUF), its text, and by name those that it refers to, the deepest first."""

    kind: str
    text: str
    references: tuple[tuple[str, str], ...] = ()


class Away(CommandError):
    """The registry cannot be asked."""


class Registry:
    """Of any threads. `now` is a monotonic clock in seconds, `login` is USER:PASSWORD."""

    def __init__(self, url: str, now: Callable[[], float] = time.monotonic, *, login: str | None = None) -> None:
        self._url = url
        self._now = now
        self._client = http.new_client(login)
        self._lock = threading.Lock()
        self._schemas: OrderedDict[int, Schema | CommandError] = OrderedDict()
        self._forget_at: dict[int, float] = {}
        self._away_until = 0.0
        self._why: Away | None = None

    def schema(self, number: int) -> Schema:
        """The schema with this id. Raises CommandError, at once where that is known already; Away is one of them."""
        with self._lock:
            found = self._kept(number)
            if found is None:
                found = self._fetched(number)
                self._schemas[number] = found
                while len(self._schemas) > KEPT_MAX:
                    self._forget_at.pop(self._schemas.popitem(last=False)[0], None)
        if isinstance(found, CommandError):
            raise found
        return found

    def latest(self, subject: str) -> int:
        """The id of a subject's latest schema. Raises CommandError."""
        try:
            found = self._get(f"/subjects/{quote(subject, safe='')}/versions/latest").get("id")
        except http.BadStatus as error:
            if error.status != http.NOT_FOUND:
                raise
            raise CommandError(f"the registry has no subject {subject}", "register its schema first") from None
        if isinstance(found, bool) or not isinstance(found, int):
            raise CommandError(f"{http.shown(self._url)} is no schema registry's", "check --schema-registry")
        return found

    def _kept(self, number: int) -> Schema | CommandError | None:
        if self._forget_at.get(number, float("inf")) <= self._now():
            del self._forget_at[number], self._schemas[number]
        return self._schemas.get(number)

    def _fetched(self, number: int) -> Schema | CommandError:
        """What is to be kept. Raises CommandError where the registry is away."""
        if self._why is not None and self._now() < self._away_until:
            raise self._why
        try:
            schema = self._get(f"/schemas/ids/{number}")
            kind = str(schema.get("schemaType") or "AVRO")
            serialized = "?format=serialized" if kind == "PROTOBUF" else ""
            if serialized:
                schema = self._get(f"/schemas/ids/{number}{serialized}")
            references: dict[str, str] = {}
            self._collect(schema, serialized, references)
            text = _text(schema)
            if serialized and proto.is_text(text) and proto.is_here():
                *others, (_, text) = proto.compiled(text, references).items()
                references = dict(others)
            return Schema(kind, text, tuple(references.items()))
        except http.BadStatus as error:
            if error.status != http.NOT_FOUND:
                raise self._away(error) from None
            why = f"the registry has no schema {number}"
        except proto.NotCompiled as error:
            why = error.cause
        except (KeyError, TypeError, ValueError):
            why = f"the registry's references of schema {number} lack their parts"
        except CommandError as error:
            raise self._away(error) from None
        self._forget_at[number] = self._now() + AWAY_S
        return CommandError(why, "name the registry that the producer uses")

    def _away(self, error: CommandError) -> Away:
        self._why, self._away_until = Away(error.cause, error.fix), self._now() + AWAY_S
        return self._why

    def _collect(self, schema: dict[str, Any], serialized: str, found: dict[str, str]) -> None:
        """Texts of all that is referred to, by the name of the reference."""
        for one in schema.get("references") or ():
            name = str(one["name"])
            if name in found:
                continue
            if len(found) >= REFERENCES_MAX:
                raise CommandError(f"a schema refers to more than {REFERENCES_MAX} others", "use another decoder")
            found[name] = ""
            path = f"/subjects/{quote(str(one['subject']), safe='')}/versions/{int(one['version'])}{serialized}"
            inner = self._get(path)
            self._collect(inner, serialized, found)
            del found[name]  # after those that it refers to
            found[name] = _text(inner)

    def _get(self, path: str) -> dict[str, Any]:
        url = self._url + path
        try:
            schema = json.loads("\n".join(http.lines(self._client, url, SCHEMA_BYTES_MAX)))
        except (ValueError, RecursionError):
            schema = None
        if not isinstance(schema, dict) or not isinstance(schema.get("schema"), str):
            raise CommandError(f"{http.shown(url)} is no schema registry's", "check --schema-registry")
        return schema


def _text(schema: dict[str, Any]) -> str:
    text: str = schema["schema"]
    return text


class Patience:
    """A registry for one page: after WAIT_S_MAX of waiting, only schemas that are kept are used."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._waited_s = 0.0

    def schema(self, number: int) -> Schema:
        """As `Registry.schema`."""
        if self._waited_s > WAIT_S_MAX:
            raise CommandError("the schema registry is slow", "load the page again")
        began = time.monotonic()
        try:
            return self._registry.schema(number)
        finally:
            self._waited_s += time.monotonic() - began
