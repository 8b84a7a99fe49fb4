"""How a request of a member is refused, and how it gets its response: the same for every kind of group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from kpybroker.core.machine import Step, Ticket
from kpybroker.core.modern_group.state import MemberT, ModernGroup
from kpybroker.wire.errors import ErrorCode, KafkaError


class Heartbeat(Protocol):
    """What every kind of heartbeat says: who it is, and in which epoch."""

    @property
    def member_id(self) -> str:
        """Of its sender."""

    @property
    def member_epoch(self) -> int:
        """0 joins, below that it leaves."""


GroupT = TypeVar("GroupT", bound=ModernGroup[Any, Any])
RequestT = TypeVar("RequestT", bound=Heartbeat)

_JAVA_SPACE: Final = "".join(map(chr, range(0x21)))
"""What Java removes from the ends of a text."""

# What a failed append means to a member (CoordinatorOperationExceptionHelper); unlisted errors pass unchanged.
_WRITE_ERRORS = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def write_error(error: ErrorCode) -> ErrorCode:
    """The error that a member gets for a failed append."""
    return _WRITE_ERRORS.get(error, error)


def respond(ticket: Ticket, result: Any, step: Step[Any], error: ErrorCode) -> None:
    """What was written or read is committed: send the result, or one of its class with the error."""
    step.reply(ticket, result if error is ErrorCode.NONE else type(result)(write_error(error)))


@dataclass(frozen=True, slots=True)
class Heartbeats(Generic[GroupT, RequestT]):
    """What a kind does with a heartbeat: `leave` returns what removes the member, `stay` is all other epochs.

    `result` is the class of its response: with an error and its text, all else is as it is when nothing was done.
    """

    result: Callable[..., Any]
    leave: Callable[[Step[Any], GroupT, RequestT], Sequence[Any]]
    stay: Callable[[Step[Any], GroupT, RequestT, Ticket, Sequence[object]], None]
    when_left: Mapping[str, object] = field(default_factory=dict)

    def handle(
        self, step: Step[Any], group: GroupT, request: RequestT, ticket: Ticket, first: Sequence[object] = ()
    ) -> bool:
        """Handle a heartbeat of any epoch; False if it was refused. `first` are records that the batch begins with."""
        try:
            if request.member_epoch < 0:
                records = self.leave(step, group, request)
                result = self.result(ErrorCode.NONE, None, request.member_id, request.member_epoch, **self.when_left)
                step.write(records, partial(respond, ticket, result))
            else:
                self.stay(step, group, request, ticket, first)
        except KafkaError as error:
            step.reply(ticket, self.result(error.code, error.message))
            return False
        return True


def settle_member(group: ModernGroup[Any, Any], member_id: str) -> None:
    """What a heartbeat wrote is in the log, or failed: a group and a member that are not there hold nothing."""
    if group.written_up_to == 0:
        group.release()  # nothing of it got into the log
    if member_id not in group.members:
        group.forget_live(member_id)


# --- checks


def require_text(value: str | None, name: str) -> None:
    """Raises INVALID_REQUEST for a text without a letter; None is no text."""
    if value is not None and not value.strip(_JAVA_SPACE):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")


def member_or_raise(group: ModernGroup[MemberT, Any], member_id: str) -> MemberT:
    """The member. Raises UNKNOWN_MEMBER_ID."""
    member = group.members.get(member_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")
    return member


def too_large(kind: str, max_size: int) -> KafkaError:
    """There is no place for one more member."""
    text = f"The {kind} group has reached its maximum capacity of {max_size} members."
    return KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, text)


def fenced_epoch(kind: str, received: int, current: int, detail: str = "") -> KafkaError:
    """A member is in another epoch than it says, and not in the one before."""
    return KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The {kind} group member has a {'greater' if received > current else 'smaller'} member epoch ({received}) "
        f"than the one known by the group coordinator ({current}){detail}. "
        "The member must abandon all its partitions and rejoin.",
    )
