"""Subjects of a schema registry and their versions: read, checked, registered, deleted. Of Confluent's API, so of any.

What never lives here: schemas by id, which decode messages (`registry`).
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from kpybroker.client.connect.errors import CommandError, usage
from kpybroker.client.schemas import http

BOUNDS: Final = http.Bounds(bytes_max=4 * 1024 * 1024)
UNPROCESSABLE: Final = 422
CONFLICT: Final = 409
DENIED: Final = frozenset((http.UNAUTHORIZED, http.FORBIDDEN))
KINDS: Final = ("AVRO", "JSON", "PROTOBUF")
LEVELS: Final = (
    *("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE"),
    *("FULL", "FULL_TRANSITIVE"),
)
"""Which versions a new one must be compatible with, and in which direction."""


class Reference(NamedTuple):
    """What a schema refers to: by which name, and where that is."""

    name: str
    subject: str
    version: int


class New(NamedTuple):
    """A schema that is to be registered."""

    kind: str
    text: str
    references: tuple[Reference, ...] = ()

    def body(self) -> dict[str, Any]:
        """As the API has it."""
        found: dict[str, Any] = {"schema": self.text, "schemaType": self.kind}
        if self.references:
            found["references"] = [one._asdict() for one in self.references]
        return found


class Version(NamedTuple):
    """A version of a subject."""

    number: int
    id: int
    kind: str
    text: str
    references: tuple[Reference, ...]


class RegistryError(CommandError):
    """What the registry refuses; `code` is Confluent's, such as 40401."""

    def __init__(self, cause: str, fix: str, code: int, exit_code: int = 1) -> None:
        super().__init__(cause, fix, exit_code)
        self.code = code


class Subjects:
    """Of any threads. `login` is USER:PASSWORD."""

    def __init__(self, url: str, login: str | None = None) -> None:
        self.url = url
        self._client = http.new_client(login)

    def names(self) -> list[str]:
        """All subjects. Raises CommandError."""
        return sorted(map(str, self._ask("GET", "/subjects", list)))

    def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        """The numbers of a subject's versions, those that were deleted softly too if asked for. Raises CommandError."""
        query = "?deleted=true" if deleted else ""
        return [int(one) for one in self._ask("GET", f"{_path(subject)}/versions{query}", list)]

    def version(self, subject: str, number: int | str) -> Version:
        """One version, or `latest`. Raises CommandError."""
        found = self._ask("GET", f"{_path(subject)}/versions/{number}", dict)
        try:
            references = tuple(
                Reference(str(one["name"]), str(one["subject"]), int(one["version"]))
                for one in found.get("references") or ()
            )
            kind = str(found.get("schemaType") or "AVRO")
            return Version(int(found["version"]), int(found["id"]), kind, str(found["schema"]), references)
        except (KeyError, TypeError, ValueError):
            raise self._strange() from None

    def level(self, subject: str) -> str:
        """The compatibility that new versions must have. Raises CommandError."""
        found = self._ask("GET", f"/config/{quote(subject, safe='')}?defaultToGlobal=true", dict)
        return str(found.get("compatibilityLevel") or found.get("compatibility") or "")

    def own_level(self, subject: str) -> str | None:
        """The compatibility that was set for this subject; None where that of all subjects is used. Raises
        CommandError.
        """
        try:
            found = self._ask("GET", f"/config/{quote(subject, safe='')}", dict)
        except RegistryError as error:
            if error.code // 100 == http.NOT_FOUND:
                return None
            raise
        return str(found.get("compatibilityLevel") or found.get("compatibility") or "") or None

    def set_level(self, subject: str, level: str | None) -> None:
        """Set the subject's own compatibility, or with None use that of all subjects. Raises CommandError."""
        path = f"/config/{quote(subject, safe='')}"
        if level is None:
            self._ask("DELETE", path, (str, dict))
        else:
            self._ask("PUT", path, dict, {"compatibility": level})

    def number_of(self, subject: str, new: New) -> int | None:
        """The version that has this schema already; None for none. Raises CommandError."""
        try:
            return int(self._ask("POST", _path(subject), dict, new.body()).get("version", 0)) or None
        except RegistryError as error:
            if error.code // 100 == http.NOT_FOUND:
                return None
            raise

    def check(self, subject: str, new: New) -> list[str]:
        """Why the schema is not compatible with those before it; empty if it is, or is the first.

        Raises CommandError.
        """
        path = f"/compatibility{_path(subject)}/versions?verbose=true"
        try:
            found = self._ask("POST", path, dict, new.body())
        except RegistryError as error:
            if error.code // 100 == http.NOT_FOUND:
                return []
            raise
        if found.get("is_compatible"):
            return []
        return [str(one) for one in found.get("messages") or ()] or ["the registry does not say why"]

    def register(self, subject: str, new: New) -> int:
        """Register a schema; its id. Raises CommandError."""
        return int(self._ask("POST", f"{_path(subject)}/versions", dict, new.body()).get("id", 0))

    def delete(self, subject: str, number: int, *, permanent: bool) -> None:
        """Delete a version: softly, or one that was deleted softly for good. Raises CommandError."""
        query = "?permanent=true" if permanent else ""
        self._ask("DELETE", f"{_path(subject)}/versions/{number}{query}", int)

    def _ask(self, method: str, path: str, kind: type | tuple[type, ...], body: dict[str, Any] | None = None) -> Any:
        """The JSON of a response, which is of this kind. Raises CommandError."""
        status, found = http.exchange(self._client, method, self.url + path, BOUNDS, body)
        if status == http.OK and isinstance(found, kind):
            return found
        if status in DENIED:
            raise http.BadStatus(self.url + path, status)
        if status == http.OK or not isinstance(found, dict):
            raise self._strange()
        code = int(found.get("error_code") or status)
        cause = f"{found.get('message') or 'the registry refuses'} (error {code})"
        bad = status in (UNPROCESSABLE, CONFLICT)
        fix = "correct the schema" if bad else "look at the registry's log"
        raise RegistryError(cause, fix, code, 2 if bad else 1)

    def _strange(self) -> CommandError:
        return CommandError(f"{http.shown(self.url)} is no schema registry's", "check --schema-registry")


def _path(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}"


def parse_references(text: str) -> tuple[Reference, ...]:
    """Lines of NAME SUBJECT VERSION. Raises CommandError."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if not words:
            continue
        if len(words) != 3 or not (words[2].isascii() and words[2].isdigit()):
            raise usage(f"{line.strip()[:100]!r} is no reference", "write NAME SUBJECT VERSION in each line")
        found.append(Reference(words[0], words[1], int(words[2])))
    return tuple(found)


def pretty(text: str) -> str:
    """JSON with one value a line, so that two can be compared; another text as it is."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
