"""Requests of Jolokia's protocol 7.2, responded to from one reading of the broker each. HTTP's status is 200 for all.

Only those readers run that have an MBean which a pattern of the request can match.

Matching and writing are done in slices, so that requests of clients pass in between.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import trio

from kpybroker import __version__
from kpybroker.http.messages import HttpError, Request, Response
from kpybroker.metrics.jolokia.attributes import Attributes, RatesOf, may_match, mbeans
from kpybroker.metrics.jolokia.names import Matcher, ObjectName, parse_name
from kpybroker.metrics.jolokia.requests import ILLEGAL, JolokiaRequest, RequestError, from_get, from_post

if TYPE_CHECKING:
    from kpybroker.broker.loop.clock import Clock
    from kpybroker.metrics.mbeans import Family
    from kpybroker.metrics.reading import Reading

Read = Callable[[Callable[["Family"], bool]], Awaitable[Sequence["Reading"]]]

PATH: Final = "/jolokia"
PROTOCOL: Final = "7.2"
SLICE: Final = 500
"""MBeans between two checkpoints."""
PIECES: Final = 2000
"""Of JSON, in one write."""
EVERY: Final = "*:*"
ATTRIBUTE_TEXT: Final = "Attribute exposed for management"
MBEAN_TEXT: Final = "Information on the management interface of the MBean"
NO_INSTANCE: Final = "javax.management.InstanceNotFoundException"
NO_ATTRIBUTE: Final = "javax.management.AttributeNotFoundException"


class Jolokia:
    """`read` reads the families of the broker for which its argument is true. `rates` are those of the ticker now."""

    def __init__(self, read: Read, rates: Callable[[], RatesOf], clock: Clock) -> None:
        self._read = read
        self._rates = rates
        self._clock = clock

    async def respond(self, request: Request) -> Response:
        """Raises HttpError for a verb that Jolokia has not."""
        if request.verb not in ("GET", "HEAD", "POST"):
            raise HttpError(f"{request.verb} is not allowed", f"GET or POST {PATH}", 405)
        if request.verb == "HEAD":
            return Response(200)
        in_array = False
        asked: list[JolokiaRequest | RequestError]
        try:
            if request.verb == "POST":
                asked, in_array = from_post(request.body)
            else:
                asked = [from_get(request.path.removeprefix(PATH), request.query)]
        except RequestError as error:
            asked = [error]
        matchers = []
        for pattern in _patterns(asked):
            matchers.append(Matcher(pattern))
            await trio.lowlevel.checkpoint()
        readings = await self._read(lambda family: any(may_match(matcher, family) for matcher in matchers))
        found = []
        for one in asked:
            found.append(await self._result(one, readings))
            await trio.lowlevel.checkpoint()
        return Response(200, stream=_stream(found if in_array else found[0]))

    async def _result(self, asked: JolokiaRequest | RequestError, readings: Sequence[Reading]) -> dict[str, Any]:
        now = int(self._clock.time_ms() / 1000)
        if isinstance(asked, RequestError):
            return _failed(asked, now)
        try:
            if asked.mbean:
                parse_name(asked.mbean)
        except RequestError as error:
            return _failed(error, now)
        try:
            value = await self._value(asked, readings)
        except RequestError as error:
            return {"request": _echo(asked)} | _failed(error, now)
        return {"request": _echo(asked), "value": value, "timestamp": now, "status": 200}

    async def _value(self, asked: JolokiaRequest, readings: Sequence[Reading]) -> Any:
        if asked.type == "version":
            info = {"product": "kpybroker", "version": __version__}
            return {"agent": __version__, "protocol": PROTOCOL, "config": {}, "info": info}
        if asked.type == "list":
            return _part_of_list(await self._listed(readings, canonical=asked.canonical), asked)
        pattern = parse_name(asked.mbean)
        found = await self._matching(asked.mbean, readings, canonical=asked.canonical)
        if asked.type == "search":
            return list(found)
        if not found:
            what = f"No MBean with pattern {asked.mbean} found for reading attributes"
            detail = what if pattern.is_pattern else asked.mbean
            raise RequestError(NO_INSTANCE, detail, 404)
        if pattern.is_pattern:
            return _inner(await _chosen_of_all(asked, found), asked.path)
        (only,) = found.values()
        return _inner(_chosen(asked, only), asked.path)

    async def _matching(self, mbean: str, readings: Sequence[Reading], *, canonical: bool) -> dict[str, Attributes]:
        found: dict[str, Attributes] = {}
        now_s = self._clock.monotonic()
        for one in mbeans(readings, Matcher(parse_name(mbean)), self._rates(), now_s):
            if one is None:
                await trio.lowlevel.checkpoint()
            else:
                found.setdefault(one[0].text(canonical=canonical), {}).update(one[1])
        return found

    async def _listed(self, readings: Sequence[Reading], *, canonical: bool) -> dict[str, Any]:
        listed: dict[str, Any] = {}
        for index, (name, values) in enumerate((await self._matching(EVERY, readings, canonical=canonical)).items()):
            domain, _, properties = name.partition(":")
            described = {
                key: {"rw": False, "type": _java_type(key, value), "desc": ATTRIBUTE_TEXT}
                for key, value in values.items()
            }
            listed.setdefault(domain, {})[properties] = {"attr": described, "desc": MBEAN_TEXT}
            if index % SLICE == SLICE - 1:
                await trio.lowlevel.checkpoint()
        return listed


def _patterns(asked: Iterable[JolokiaRequest | RequestError]) -> Iterator[ObjectName]:
    """What has to be read for these requests."""
    for one in asked:
        if isinstance(one, JolokiaRequest) and one.type != "version":
            try:
                yield parse_name(EVERY if one.type == "list" else one.mbean)
            except RequestError:
                continue  # its own response says so


def _chosen(asked: JolokiaRequest, values: Attributes) -> Any:
    """All attributes, one value, or those that are asked for."""
    names = (asked.attribute,) if isinstance(asked.attribute, str) else asked.attribute or ()
    for name in names:
        if name not in values:
            raise RequestError(NO_ATTRIBUTE, f"No such attribute: {name}", 404)
    if isinstance(asked.attribute, str):
        return values[asked.attribute]
    return {name: values[name] for name in names} if names else values


async def _chosen_of_all(asked: JolokiaRequest, found: dict[str, Attributes]) -> dict[str, Attributes]:
    """Of a pattern: MBeans without an attribute that is asked for are left out."""
    if asked.attribute is None:
        return found
    names = (asked.attribute,) if isinstance(asked.attribute, str) else asked.attribute
    chosen: dict[str, Attributes] = {}
    for index, (mbean, values) in enumerate(found.items()):
        if some := {name: values[name] for name in names if name in values}:
            chosen[mbean] = some
        if index % SLICE == SLICE - 1:
            await trio.lowlevel.checkpoint()
    if not chosen:
        raise RequestError(ILLEGAL, f"No matching attributes [{', '.join(names)}] found on MBeans [{asked.mbean}]", 400)
    return chosen


def _part_of_list(listed: dict[str, Any], asked: JolokiaRequest) -> Any:
    """What is at the path: of a domain, an MBean with its properties in any order, and so on."""
    domain, properties, *rest = (*asked.path, "", "")[: max(len(asked.path), 2)]
    if not domain:
        return listed
    if not properties:
        return listed.get(domain, {})
    name = parse_name(f"{domain}:{properties}")
    value = listed.get(domain, {}).get(name.text(canonical=asked.canonical).partition(":")[2])
    if value is None:
        raise RequestError(ILLEGAL, f"No MBean '{domain}:{properties}' found", 400)
    for depth, part in enumerate(rest):
        if not isinstance(value, dict) or part not in value:
            raise RequestError(
                ILLEGAL, "Path given but extracted value is empty" if depth else f"Illegal path element {part}", 400
            )
        value = value[part]
    return value


def _inner(value: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        if not isinstance(value, dict):
            return None
        if part not in value:
            raise RequestError(ILLEGAL, f"there is no {part!r} on the path {'/'.join(path)}", 400)
        value = value[part]
    return value


def _echo(asked: JolokiaRequest) -> dict[str, Any]:
    echo: dict[str, Any] = {"type": asked.type}
    if asked.mbean:
        echo["mbean"] = parse_name(asked.mbean).text(canonical=True)
    if asked.attribute:
        echo["attribute"] = (
            asked.attribute if isinstance(asked.attribute, str) or len(asked.attribute) > 1 else asked.attribute[0]
        )
    if asked.path:
        echo["path"] = "/".join(part.replace("!", "!!").replace("/", "!/") for part in asked.path)
    return echo


def _failed(error: RequestError, now: int) -> dict[str, Any]:
    text = f"{error.error_type} : {error.message}"
    return {"error_type": error.error_type, "error": text, "status": error.status, "timestamp": now}


def _java_type(attribute: str, value: float) -> str:
    if attribute == "Value":
        return "java.lang.Object"
    return "long" if isinstance(value, int) else "double"


def _json(value: Any) -> Iterator[str]:
    """Pieces of bounded size: large objects and lists a member at a time."""
    if isinstance(value, dict) and value:
        for index, (key, member) in enumerate(value.items()):
            yield f"{',' if index else '{'}{json.dumps(key)}:"
            yield from _json(member)
        yield "}"
    elif isinstance(value, list) and value:
        for index, member in enumerate(value):
            yield "," if index else "["
            yield from _json(member)
        yield "]"
    else:
        yield json.dumps(value)


async def _stream(value: Any) -> AsyncGenerator[bytes, None]:
    waiting: list[str] = []
    for piece in _json(value):
        waiting.append(piece)
        if len(waiting) >= PIECES:
            yield "".join(waiting).encode()
            waiting = []
            await trio.lowlevel.checkpoint()
    yield "".join(waiting).encode()
