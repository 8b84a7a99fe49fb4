"""JSON as Kafka reads and writes it with Jackson, the order of the keys included.

What is read is checked value by value: a wrong type is a `ZnodeError`, as a missing key is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from kpybroker.wire.map_order import scala_immutable_order, scala_mutable_order

T = TypeVar("T")


class ZnodeError(ValueError):
    """A node holds what cannot be read."""


Order = Callable[[tuple[str, ...]], Sequence[str]]


def ordered(values: Mapping[str, Any], order: Order) -> dict[str, Any]:
    return {key: values[key] for key in order(tuple(values))}


def mutable(values: Mapping[str, Any], literal: int = 0) -> dict[str, Any]:
    return ordered(values, lambda keys: scala_mutable_order(keys, literal))


def immutable(values: Mapping[str, Any]) -> dict[str, Any]:
    return ordered(values, scala_immutable_order)


def to_json(values: Mapping[str, Any]) -> bytes:
    text = json.dumps(values, separators=(",", ":"), ensure_ascii=False)
    # Jackson writes the hexadecimal digits of control characters in upper case.
    return re.sub(r"(?<!\\)((?:\\\\)*\\u00)([01][0-9a-f])", lambda m: m[1] + m[2].upper(), text).encode()


def parse(what: str, data: bytes | None, build: Callable[[dict[str, Any]], T]) -> T:
    try:
        values = json.loads(data or b"")
        if not isinstance(values, dict):
            raise ValueError("not a JSON object")
        return build(values)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ZnodeError(f"{what} cannot be read ({error!r}): {data!r}") from error


def integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is not an integer")
    return value


def integers(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list")
    if all(type(item) is int for item in value):
        return tuple(value)
    return tuple(integer(item) for item in value)


def string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value
