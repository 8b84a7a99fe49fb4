"""JSON as Kafka reads and writes it with Jackson, the order of the keys included.

Every value read is checked: a wrong type is a `ZnodeError`, and so is a missing key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from kpybroker.wire.map_order import scala_immutable_order, scala_mutable_order

T = TypeVar("T")


class ZnodeError(ValueError):
    """A node's value cannot be read: not JSON, a missing key, a wrong type or an unsupported version."""


Order = Callable[[tuple[str, ...]], Sequence[str]]


def ordered(values: Mapping[str, Any], order: Order) -> dict[str, Any]:
    """The same entries, with keys in the given order."""
    return {key: values[key] for key in order(tuple(values))}


def mutable(values: Mapping[str, Any], literal: int = 0) -> dict[str, Any]:
    """Keys in the order of Scala's mutable.Map; for `literal` see `map_order.scala_mutable_order`."""
    return ordered(values, lambda keys: scala_mutable_order(keys, literal))


def immutable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Keys in the order of Scala's immutable.Map."""
    return ordered(values, scala_immutable_order)


def to_json(values: Mapping[str, Any]) -> bytes:
    """JSON as Jackson writes it: no spaces, UTF-8, keys in the order given."""
    text = json.dumps(values, separators=(",", ":"), ensure_ascii=False)
    # Jackson writes the hexadecimal digits of control characters in upper case.
    return re.sub(r"(?<!\\)((?:\\\\)*\\u00)([01][0-9a-f])", lambda m: m[1] + m[2].upper(), text).encode()


def parse(what: str, data: bytes | None, build: Callable[[dict[str, Any]], T]) -> T:
    """What `build` makes of a JSON object; any error in it becomes a ZnodeError that names `what`."""
    try:
        values = json.loads(data or b"")
        if not isinstance(values, dict):
            raise ValueError("not a JSON object")
        return build(values)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ZnodeError(f"{what} cannot be read ({error!r}): {data!r}") from error


def integer(value: Any) -> int:
    """`value`, if it is an integer and no boolean; else TypeError."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is not an integer")
    return value


def integers(value: Any) -> tuple[int, ...]:
    """A list of integers as a tuple; else TypeError."""
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list")
    if all(type(item) is int for item in value):
        return tuple(value)
    return tuple(integer(item) for item in value)


def string(value: Any) -> str:
    """`value`, if it is text; else TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value
