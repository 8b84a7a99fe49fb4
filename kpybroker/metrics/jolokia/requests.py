"""What Jolokia is asked: by the path of a GET, or by the JSON of a POST."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote

ILLEGAL: Final = "java.lang.IllegalArgumentException"
FORBIDDEN: Final = "java.lang.SecurityException"
REQUESTS_MAX: Final = 100
"""In one POST."""
TEXT_MAX: Final = 4_000
"""Characters of a name, of all attributes of a request, and of a path."""
ATTRIBUTES_MAX: Final = 100
"""Names of attributes in a request; no MBean here has twenty."""
SHOWN_MAX: Final = 100
"""Characters of a text that is not a request, in its error."""
OPERATIONS: Final = ("read", "list", "search", "version")
NOT_ALLOWED: Final = ("write", "exec")
_SEPARATED: Final = re.compile(r"((?:[^/!]|!.|!$)*)(?:/|$)", re.DOTALL)


class RequestError(Exception):
    """`error_type` is a Java class, as Jolokia reports it."""

    def __init__(self, error_type: str, message: str, status: int) -> None:
        super().__init__(message)
        self.error_type = error_type
        self.message = message
        self.status = status


class JolokiaRequest(NamedTuple):
    """`attribute` is None for all, a name, or several. `path` is that of `list`, or into a value."""

    type: str
    mbean: str = ""
    attribute: str | tuple[str, ...] | None = None
    path: tuple[str, ...] = ()
    canonical: bool = True


def split_path(path: str) -> list[str]:
    """Parts between slashes. `!/` is a slash in a part, `!!` an exclamation mark, as is one at the end.

    Raises RequestError for a path that is too long.
    """
    if len(path) > TEXT_MAX:
        raise RequestError(ILLEGAL, f"A path of more than {TEXT_MAX} characters", 400)
    parts: list[str] = []
    position = 0
    while position < len(path):
        match = _SEPARATED.match(path, position)
        assert match is not None
        parts.append(re.sub(r"!(.)", r"\1", match[1], flags=re.DOTALL))
        position = match.end()
    return parts


def from_get(path: str, query: str) -> JolokiaRequest:
    """`path` is what follows `/jolokia`. Raises RequestError."""
    parameters = {key: values[-1] for key, values in parse_qs(query).items()}
    path = parameters.get("p") or unquote(path)
    kind, *rest = split_path(path.strip("/")) or ["version"]
    kind = kind.lower()
    canonical = parameters.get("canonicalNaming", "true") != "false"
    if kind in ("read", "search"):
        if not rest:
            pathinfo = path.removeprefix("/")
            raise RequestError(ILLEGAL, f"Invalid arguments in pathinfo {pathinfo} for command {kind.upper()}", 400)
        names = tuple(rest[1].split(",")) if len(rest) > 1 and rest[1] else ()
        attribute = names[0] if len(names) == 1 else names or None
        return _bounded(JolokiaRequest(kind, rest[0], attribute, tuple(rest[2:]), canonical))
    return JolokiaRequest(_operation(kind), path=tuple(rest), canonical=canonical)


def from_post(body: bytes) -> tuple[list[JolokiaRequest | RequestError], bool]:
    """The requests, and whether they are in an array. Raises RequestError."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestError(ILLEGAL, f"Invalid JSON request: {error}", 400) from None
    if not isinstance(found, list):
        if not isinstance(found, Mapping):
            raise RequestError(ILLEGAL, f"Invalid JSON Request {_shown(found)}", 400)
        return [_from_json(found)], False
    if len(found) > REQUESTS_MAX:
        raise RequestError(ILLEGAL, f"{len(found)} requests at once: send at most {REQUESTS_MAX}", 400)
    return [_from_json(one) for one in found], True


def _from_json(found: Any) -> JolokiaRequest | RequestError:
    if not isinstance(found, Mapping):
        text = f"Not a request within the list of requests. Expected map, but found: {_shown(found)}"
        return RequestError(ILLEGAL, text, 400)
    try:
        if not found.get("type"):
            raise RequestError(ILLEGAL, "No type given", 400)
        kind = _operation(str(found["type"]).lower())
        mbean, attribute = found.get("mbean", ""), found.get("attribute")
        if kind in ("read", "search") and not mbean:
            raise RequestError(ILLEGAL, "Objectname can not be null", 400)
        if not isinstance(mbean, str):
            raise RequestError(ILLEGAL, "Objectname must be a String", 400)
        if isinstance(attribute, list) and all(isinstance(name, str) for name in attribute):
            attribute = tuple(attribute) or None
        if not (attribute is None or isinstance(attribute, str | tuple)):
            raise RequestError(ILLEGAL, "Attribute names must be either a String, Collection or null", 400)
        options = found.get("config")
        naming = options.get("canonicalNaming", True) if isinstance(options, Mapping) else True
        path = tuple(split_path(str(found.get("path") or "").strip("/")))
        if kind not in ("read", "search"):
            mbean, attribute = "", None
        return _bounded(JolokiaRequest(kind, mbean, attribute or None, path, naming not in (False, "false")))
    except RequestError as error:
        return error


def _bounded(request: JolokiaRequest) -> JolokiaRequest:
    """Raises RequestError for what is too long to be matched or responded to in one go."""
    attributes = (request.attribute,) if isinstance(request.attribute, str) else request.attribute or ()
    if len(request.mbean) > TEXT_MAX:
        raise RequestError(ILLEGAL, f"An object name of more than {TEXT_MAX} characters", 400)
    if len(attributes) > ATTRIBUTES_MAX or sum(map(len, attributes)) > TEXT_MAX:
        raise RequestError(ILLEGAL, f"More than {ATTRIBUTES_MAX} attributes, or {TEXT_MAX} characters of them", 400)
    return request


def _operation(kind: str) -> str:
    if kind in NOT_ALLOWED:
        raise RequestError(FORBIDDEN, f"{kind} is not allowed: MBeans are only read here", 403)
    if kind not in OPERATIONS:
        raise RequestError(ILLEGAL, f"No type with name '{kind}' exists", 400)
    return kind


def _shown(found: Any) -> str:
    """JSON, its beginning."""
    return json.dumps(found)[:SHOWN_MAX]
