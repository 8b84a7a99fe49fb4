"""The fields of a rule: what each is, how it is checked, and what a client sees. Checks, messages and docs are one.

`MATCH`, `ACTS`, `OPTIONS` and `TRIGGER` are tables by field name. The reference of the docs is generated from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from kpybroker.control.rules.acts import Damage, Side
from kpybroker.control.rules.errors import FaultError, nearest
from kpybroker.control.rules.rule import Test, Texts, Values
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.errors import ErrorCode

T = TypeVar("T")
Read = Callable[[Any, str], Any]
"""(value, where) -> what it means; `where` is the field in messages. Raises FaultError."""


@dataclass(frozen=True, slots=True)
class Field:
    """`shape` says what to write, `doc` what it means."""

    read: Read
    shape: str
    doc: str


@dataclass(frozen=True, slots=True)
class ActField(Field):
    """`options` are the fields that may be given with this act; `sees` is what a client notices."""

    options: tuple[str, ...] = ()
    sees: str = ""


# --- checks


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _refused(value: Any, where: str, expected: str) -> FaultError:
    text = repr(value)
    return FaultError(f"`{where}` is {text if len(text) <= 60 else text[:57] + '...'}", f"give {expected}")


def integer(lowest: int, highest: int = 2**31 - 1) -> Read:
    """An integer in a range."""

    def read(value: Any, where: str) -> int:
        if not _is_integer(value) or not lowest <= value <= highest:
            raise _refused(value, where, f"an integer from {lowest} to {highest}")
        result: int = value
        return result

    return read


def chance(value: Any, where: str) -> float:
    """A number from 0 to 1."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise _refused(value, where, "a number from 0 to 1")
    return float(value)


def true(value: Any, where: str) -> bool:
    """Nothing but true: a rule leaves out what it does not want."""
    if value is not True:
        raise _refused(value, where, "true, or leave it out")
    return True


def boolean(value: Any, where: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise _refused(value, where, "true or false")
    return value


def one_of(names: Mapping[str, T]) -> Read:
    """One of some words."""

    def read(value: Any, where: str) -> T:
        if not isinstance(value, str):
            raise _refused(value, where, f"one of {', '.join(names)}")
        if value not in names:
            raise FaultError(f"`{where}` is {value!r}", nearest(value, names))
        return names[value]

    return read


def _each(value: Any, where: str, expected: str, is_right: Callable[[Any], bool]) -> list[Any]:
    """The values of a list, or the one value."""
    values = value if isinstance(value, list) else [value]
    if not values or not all(is_right(one) for one in values):
        raise _refused(value, where, f"{expected}, or a list of these")
    return values


def texts(value: Any, where: str) -> Texts:
    """A text, in which `*` and `?` are wild, or a list of texts."""
    return Texts(tuple(_each(value, where, "a string", lambda one: isinstance(one, str))))


def integers(value: Any, where: str) -> Values:
    """An integer of 0 or more, or a list of these."""
    return Values(frozenset(_each(value, where, "an integer of 0 or more", lambda one: _is_integer(one) and one >= 0)))


def topic_ids(value: Any, where: str) -> Values:
    """A topic id as Kafka prints it, or a list of these."""
    return Values(frozenset(uuid(one, where) for one in _each(value, where, "a string", lambda v: isinstance(v, str))))


def uuid(text: str, where: str) -> bytes:
    """The bytes of a UUID as Kafka prints it: 22 characters of base64."""
    import base64
    import binascii

    try:
        found = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        found = b""
    if len(found) != 16:
        raise _refused(text, where, "a topic id as Kafka prints it, of 22 characters")
    return found


def versions(value: Any, where: str) -> tuple[int, int]:
    """A version, or a list of the first and the last one."""
    ends = value if isinstance(value, list) else [value, value]
    if len(ends) != 2 or not all(_is_integer(one) and one >= 0 for one in ends) or ends[0] > ends[1]:
        raise _refused(value, where, "a version, or a list of the first and the last one")
    return ends[0], ends[1]


API_NAMES = {info.name: key for key, info in API_INFO.items()}


def apis(value: Any, where: str) -> frozenset[ApiKey]:
    """An API by name or key, or a list of these."""
    return frozenset(_api(one, where) for one in _each(value, where, "an API by name or key", lambda one: True))


def _api(value: Any, where: str) -> ApiKey:
    if _is_integer(value) and value in API_INFO:
        return ApiKey(value)
    if not isinstance(value, str):
        raise _refused(value, where, "the name or the key of an API")
    if value not in API_NAMES:
        raise FaultError(f"`{where}` is {value!r}, which is not an API", nearest(value, API_NAMES))
    return API_NAMES[value]


def error_code(value: Any, where: str) -> ErrorCode:
    """An error by name or code."""
    names = {code.name: code for code in ErrorCode if code is not ErrorCode.NONE}
    if _is_integer(value) and value in names.values():
        return ErrorCode(value)
    if not isinstance(value, str):
        raise _refused(value, where, "the name or the code of an error")
    if value not in names:
        raise FaultError(f"`{where}` is {value!r}, which is not an error", nearest(value, names))
    return names[value]


def tested(value: Any, where: str) -> Test:
    """A value to find in a request, or a list of values; a text may have `*` and `?`, and also tests bytes."""
    values = value if isinstance(value, list) else [value]
    if not values or not all(one is None or isinstance(one, str | int | float) for one in values):
        raise _refused(value, where, "a string, a number, true, false, null, or a list of these")
    wild = Texts(tuple(one for one in values if isinstance(one, str)))
    plain = [one for one in values if not isinstance(one, str)]

    def test(found: Any) -> bool:
        if isinstance(found, bytes):
            found = _text(found)
        is_plain = any(found == one and isinstance(found, bool) is isinstance(one, bool) for one in plain)
        return is_plain or (bool(wild.patterns) and wild(found))

    return test


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


# --- the fields

_ANY_OF = "a string (`*`, `?`), or a list"

MATCH: Mapping[str, Field] = {
    "api": Field(apis, "a name or key, or a list", "The API, such as `Produce` or 0. Default: every API."),
    "version": Field(versions, "9, or [0, 8]", "The version of the request, or its first and last one."),
    "broker": Field(integers, "an id, or a list", "The broker that receives the request."),
    "client_id": Field(texts, _ANY_OF, "The client id. Brokers use their id, or `broker-N-fetcher-M` to replicate."),
    "principal": Field(texts, _ANY_OF, "The authenticated principal, such as `User:alice`."),
    "listener": Field(texts, _ANY_OF, "The name of the listener, such as `PLAINTEXT`."),
    "topic": Field(texts, _ANY_OF, "A topic by name, also where the request has its id."),
    "topic_id": Field(topic_ids, "22 characters, or a list", "A topic by id, also where the request has its name."),
    "partition": Field(integers, "an index, or a list", "A partition by index."),
    "group": Field(texts, _ANY_OF, "A consumer group."),
    "transactional_id": Field(texts, _ANY_OF, "A transactional id."),
    "when": Field(
        lambda value, where: value,
        "{path: value}",
        "Fields of the decoded request: all paths must lead to one of their values. Arrays are looked through.",
    ),
    "predicate": Field(true, "true", "The test process decides about each request that the rest matches."),
}

_SIDES = one_of({side.value: side for side in Side})
_PIECE = integer(1)

ACTS: Mapping[str, ActField] = {
    "error": ActField(
        error_code,
        "a name or code",
        "Responds with this error for the matched topics, partitions, groups or transactional ids. The rest of the "
        "request is handled.",
        ("level", "after_work"),
        "The error, as from a broker that has this problem. With acks=0 the connection is closed, as in Kafka.",
    ),
    "delay_ms": ActField(
        integer(0),
        "milliseconds",
        "Waits on the broker's clock.",
        ("jitter_ms", "after_work"),
        "A slow broker; above its request timeout it disconnects and retries.",
    ),
    "hold": ActField(
        true,
        "true",
        "Waits until the fault is released or removed.",
        ("after_work",),
        "A request timeout if it is held that long; otherwise a late response.",
    ),
    "never_answer": ActField(
        true,
        "true",
        "Sends no response, to this request and to all later ones on the connection.",
        ("after_work", "reading"),
        "A request timeout; then it connects again.",
    ),
    "disconnect": ActField(
        _SIDES,
        "`before` or `after` the work",
        "Closes the connection instead of responding.",
        (),
        "A disconnect with the request in flight. After the work, a retry repeats what is done already.",
    ),
    "reset": ActField(
        _SIDES,
        "`before` or `after` the work",
        "Resets the connection (RST) instead of responding.",
        (),
        '"Connection reset by peer"; otherwise as `disconnect`.',
    ),
    "truncate_bytes": ActField(
        integer(0),
        "bytes",
        "Sends so much of the response frame, with its four bytes of size, and closes the connection.",
        (),
        "A disconnect in the middle of a response.",
    ),
    "slice_bytes": ActField(
        _PIECE,
        "bytes",
        "Sends the response frame in pieces of this size.",
        ("every_ms",),
        "Nothing but time, if it reassembles frames correctly.",
    ),
    "corrupt_batch": ActField(
        one_of({damage.value: damage for damage in Damage}),
        "`crc`, `length`, `magic` or `record`",
        "Damages the first batch of each matched partition in a Fetch response. What is stored stays intact.",
        (),
        "A corrupt record: an error of the consumer, or a fetch that is repeated.",
    ),
    "throttle_ms": ActField(
        integer(0),
        "milliseconds",
        "Sets `throttle_time_ms` in the response.",
        (),
        "It pauses for that long before its next request.",
    ),
    "blackhole": ActField(
        true,
        "true",
        "Receives and ignores everything from this client id and host from now on, on every connection.",
        (),
        "Request timeouts, also after it has connected again.",
    ),
    "observe": ActField(true, "true", "Only counts.", (), "Nothing."),
}

OPTIONS: Mapping[str, Field] = {
    "level": Field(
        one_of({"entity": False, "top": True}),
        "`entity` or `top`",
        "`top` reports the error for the request as a whole, as the API does. Default: `entity`.",
    ),
    "after_work": Field(
        boolean,
        "true or false",
        "Does the work first. Default: false, but true for the errors REQUEST_TIMED_OUT and "
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND.",
    ),
    "jitter_ms": Field(integer(0), "milliseconds", "The largest random difference from `delay_ms`, up and down."),
    "every_ms": Field(integer(0), "milliseconds", "The time between two pieces. Default: 1."),
    "reading": Field(
        boolean, "true or false", "With false, later requests stay in the socket's buffers. Default: true."
    ),
}

TRIGGER: Mapping[str, Field] = {
    "nth": Field(integer(1), "a number", "Only the nth matching request."),
    "times": Field(integer(1), "a number", "The first so many matching requests."),
    "once": Field(true, "true", "The same as `times: 1`."),
    "always": Field(true, "true", "Every matching request. This is the default."),
    "skip": Field(integer(0), "a number", "So many matching requests pass first."),
    "probability": Field(chance, "0 to 1", "The share of matching requests, drawn with `seed`."),
    "seed": Field(integer(0), "a number", "Of the random draws of this fault. Default: 0."),
    "for_ms": Field(integer(1), "milliseconds", "Only for so long, on the broker's clock, after the fault was added."),
}
