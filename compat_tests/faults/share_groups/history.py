"""What the members of a share group did under faults: what each got, what it acknowledged, which faults there were.

Plain values; `check.py` judges them. Times are of one monotonic clock, in nanoseconds. What a client knows of a moment
at the broker is an interval: from when it asked until it had the response.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Final, NamedTuple

Partition = tuple[str, int]
UNKNOWN: Final = 0
"""In `Delivery.times`, of a client that does not give it."""
KEPT_MAX: Final = 100


class Kind(Enum):
    """What a member says of a record."""

    ACCEPT = 1
    RELEASE = 2
    REJECT = 3


class Delivery(NamedTuple):
    """A record that a member acquired between `asked_ns` and `received_ns`; `value` is what it read there.

    By which `leader`, where that is known. One that `was_replaced` by another does not know what that one was sent: it
    may deliver what was accepted, as Kafka's does.
    """

    member: str
    partition: Partition
    offset: int
    value: bytes
    times: int
    asked_ns: int
    received_ns: int
    leader: int | None = None
    was_replaced: bool = False


class Acknowledgement(NamedTuple):
    """What a member said of a record; `done_ns` is None where no response said that it is persisted.

    `is_refused`: the response said that the record is not the member's.
    """

    member: str
    partition: Partition
    offset: int
    kind: Kind
    sent_ns: int
    done_ns: int | None
    is_refused: bool = False


class Kept(NamedTuple):
    """A record that a member says nothing of before `until_ns`."""

    member: str
    partition: Partition
    offset: int
    until_ns: int


class Span(NamedTuple):
    """From and to when something was the case."""

    from_ns: int
    to_ns: int


@dataclass(slots=True)
class ShareHistory:
    """Of one group that began at the start of each partition.

    `disturbances` are times in which locks may have ended unseen: a broker was killed, a leader changed. `lost` are
    fetches, by member, whose responses did not arrive: they may have acquired anything. `given_up` are moments at which
    a member closed a session or its connections, which ends all its locks. `kept` has the latest records that members
    say nothing of, and `thefts` what others said of these. `is_drained`: at the end the group had nothing left to
    deliver. What was `deleted`, below these offsets, need not have come to an end, even if it is there again.
    """

    lock_ms: int
    delivery_count_limit: int
    log: dict[Partition, dict[int, bytes]] = field(default_factory=dict)
    deliveries: list[Delivery] = field(default_factory=list)
    acknowledgements: list[Acknowledgement] = field(default_factory=list)
    kept: deque[Kept] = field(default_factory=partial(deque, maxlen=KEPT_MAX))
    thefts: list[Acknowledgement] = field(default_factory=list)
    disturbances: list[Span] = field(default_factory=list)
    lost: list[tuple[str, Span]] = field(default_factory=list)
    given_up: list[tuple[str, Span]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    is_drained: bool = False
    deleted: dict[Partition, int] = field(default_factory=dict)
