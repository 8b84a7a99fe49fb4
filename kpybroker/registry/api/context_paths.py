"""Paths below `/contexts/{context}`: the same requests, for subjects and ids of that context.

They are rewritten before they are matched, as Confluent's registry does: `/contexts/x/subjects/a` is
`/subjects/:.x:a`, a list gets the context as its prefix, and an id gets it as its subject. A subject that names a
context keeps it.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode

from kpybroker.registry.store import contexts

ROOT: Final = "/contexts/"
SETTINGS: Final = ("config", "mode")
LISTS: Final = ("/schemas", "/subjects")


def rewritten(path: str, query: str) -> tuple[str, str]:
    """A path with its percent signs and without a slash at its end, and a query. Raises ValueError for no context."""
    if not path.startswith(ROOT):
        return path, query
    first, slash, rest = path.removeprefix(ROOT).partition("/")
    context = contexts.named(unquote(first))
    if not slash:
        return f"{ROOT}{_quoted(contexts.mark(context) or context)}", query
    mark = contexts.mark(context)
    segments = rest.split("/")
    if segments[0] in SETTINGS and len(segments) == 1:
        return "/" + "/".join([*segments, *([_quoted(mark)] if mark else [])]), query
    at = _subject_at(segments)
    if at is not None and not _names_context(unquote(segments[at])):
        segments[at] = _quoted(mark) + segments[at]
    made = "/" + "/".join(segments)
    return made, _query(made, query, mark)


def _subject_at(segments: list[str]) -> int | None:
    """Which part of the path is a subject."""
    if segments[0] in SETTINGS:
        return 1
    if "subjects" in segments[:2] and (at := segments.index("subjects") + 1) < len(segments):
        return at
    return None


def _query(path: str, query: str, mark: str) -> str:
    name = "subjectPrefix" if path in LISTS else "subject" if path.startswith("/schemas/ids/") else None
    if name is None:
        return query
    given = parse_qsl(query, keep_blank_values=True)
    old = dict(given).get(name, "")
    new = old if _names_context(old) else mark + old
    return urlencode([*((key, value) for key, value in given if key != name), (name, new)])


def _names_context(text: str) -> bool:
    return text.startswith((contexts.START, contexts.ALL))


def _quoted(text: str) -> str:
    return quote(text, safe=":.-_~")
