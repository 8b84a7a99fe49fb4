"""What the coordinators of groups and of transactions have in common: the state machine, and how the kinds differ."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from kpybroker.core.machine import Now, Outcome, Ticket
from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.yield_budget import WorkBudget

if TYPE_CHECKING:
    from kpybroker.wire.records.batch import BatchHeader
    from kpybroker.wire.records.default_record import Record

AnyOutcome = Outcome[Any, Any]
Done = Callable[[Any, ErrorCode], None]
Run = Callable[[AnyOutcome], None]


class Machine(Protocol):
    """A log-backed state machine (`core.machine`): `GroupMachine` or `TransactionMachine`."""

    @property
    def deadline(self) -> float | None:
        """When `expire` is due next, by the monotonic clock in seconds; None if no timer runs."""

    def handle(self, request: Any, ticket: Ticket, now: Now) -> AnyOutcome:
        """Take a request; its reply carries `ticket`, in this outcome or in a later one."""

    def expire(self, now: Now) -> AnyOutcome:
        """Run the timers that are due."""

    def settle(self, done: Done, error: ErrorCode, now: Now) -> AnyOutcome:
        """A write or read is committed, or has failed."""

    def replay(self, record: Any, offset: int, producer_id: int = -1) -> None:
        """Apply a record that is in the log; with a producer id it belongs to a transaction."""

    def ids(self) -> list[str]:
        """The groups or transactional ids it knows."""

    def activate(self, ids: Iterable[str], now: Now, budget: WorkBudget) -> Generator[None, None, AnyOutcome]:
        """Start the timers of these ids, once their log is loaded; yields whenever the budget is spent."""

    def unload(self, now: Now) -> AnyOutcome:
        """Leadership is lost: reply to every request that waits."""


M = TypeVar("M", bound=Machine)


@dataclass(frozen=True, slots=True)
class CoordinatorKind(Generic[M]):
    """What distinguishes the coordinators of groups from those of transactions."""

    topic: str
    partitions_key: str
    """The setting for how many partitions the topic will have, until it exists."""
    load_buffer_key: str
    """The setting for how many bytes are read at once while loading."""
    name: str
    """For the log: `GroupCoordinator 1`."""
    manager_name: str
    """For the log: `GroupMetadataManager brokerId=1`."""
    contents: str
    """What is loaded, in words."""
    logger: logging.Logger
    manager_logger: logging.Logger
    new_machine: Callable[[int], M]
    """For a leader epoch."""
    encode: Callable[[Any], tuple[bytes, bytes | None]]
    """A record as key and value."""
    decode: Callable[[bytes, bytes | None], Any]
    """The record; None for one of a later Kafka. Raises ProtocolError."""
    codec: Codec
    commit_timeout_s: float
    """How long a request waits for its records to be committed."""
    tasks: dict[str, Callable[[], Awaitable[None]]]
    """Started with the first partition."""
    replay_control: Callable[[M, BatchHeader, Record], None] | None = None
    """Applies a transaction marker."""
    perform: Callable[[M, Any, Run], None] | None = None
    """Carries out an effect that is not a log line; its result goes to `Run` as an outcome."""
