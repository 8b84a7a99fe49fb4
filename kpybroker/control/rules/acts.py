"""What a fault does to a request that it selects. One dataclass an act; milliseconds and bytes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kpybroker.wire.errors import ErrorCode


class Side(Enum):
    """Whether an act happens before or after the broker does what the request asks for."""

    BEFORE = "before"
    AFTER = "after"


class Damage(Enum):
    """What is wrong with a batch: its checksum, its length, its magic, or its records (under a correct checksum)."""

    CRC = "crc"
    LENGTH = "length"
    MAGIC = "magic"
    RECORD = "record"


@dataclass(frozen=True, slots=True)
class Error:
    """Respond with an error: where it belongs for what the rule names, or `is_top`: for the request as a whole."""

    code: ErrorCode
    is_top: bool = False
    after_work: bool = False


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait; `jitter_ms` is the largest difference from `delay_ms`, in both directions."""

    delay_ms: int
    jitter_ms: int = 0
    after_work: bool = False


@dataclass(frozen=True, slots=True)
class Hold:
    """Wait until the fault is released or removed."""

    after_work: bool = False


@dataclass(frozen=True, slots=True)
class NeverAnswer:
    """No response, not even to later requests on the connection. With `is_reading` these are still received."""

    is_reading: bool = True
    after_work: bool = False


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close the connection; `is_reset`: with RST instead of FIN."""

    side: Side
    is_reset: bool = False


@dataclass(frozen=True, slots=True)
class Truncate:
    """Send only the first bytes of the response frame, its size included, then close the connection."""

    size: int


@dataclass(frozen=True, slots=True)
class Slice:
    """Send the response frame in pieces of `size` bytes."""

    size: int
    every_ms: int = 1


@dataclass(frozen=True, slots=True)
class Corrupt:
    """Damage the first batch of each selected partition in a Fetch response."""

    damage: Damage


@dataclass(frozen=True, slots=True)
class Throttle:
    """Set `throttle_time_ms` in the response."""

    throttle_ms: int


@dataclass(frozen=True, slots=True)
class Blackhole:
    """Receive and ignore all that the client sends from now on, on every connection."""


@dataclass(frozen=True, slots=True)
class Observe:
    """Only count."""


Act = Error | Delay | Hold | NeverAnswer | Disconnect | Truncate | Slice | Corrupt | Throttle | Blackhole | Observe


def is_after_work(act: Act) -> bool:
    """Whether the act changes, delays or drops a response that the broker has made."""
    match act:
        case Error() | Delay() | Hold() | NeverAnswer():
            return act.after_work
        case Disconnect():
            return act.side is Side.AFTER
        case Truncate() | Slice() | Corrupt() | Throttle():
            return True
        case _:
            return False


WORK_DONE_BY = frozenset((ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND))
"""Errors that a broker reports after it has begun, or done, the work: the default of `after_work` is true for them."""
