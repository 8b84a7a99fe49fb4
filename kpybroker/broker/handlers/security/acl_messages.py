"""What the three ACL APIs share: values from and to their messages, with the checks that Kafka's requests make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.security.acls import (
    EntryFilter,
    Filter,
    PatternFilter,
    PatternType,
    Permission,
    by_code,
)
from kpybroker.wire.errors import ErrorCode, KafkaError, ProtocolError

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker
    from kpybroker.broker.security.acls import Acls


class FilterMessage(Protocol):
    """A filter, as DescribeAcls and DeleteAcls send it."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def read_filters(messages: Sequence[FilterMessage], version: int) -> list[Filter]:
    """Raises ProtocolError where Kafka ends the connection: UNKNOWN is asked for, or prefixes before version 1."""
    return [_read_filter(message, version) for message in messages]


def _read_filter(message: FilterMessage, version: int) -> Filter:
    pattern_type = by_code(PatternType, message.pattern_type_filter)
    if version == 0 and pattern_type is PatternType.ANY:
        pattern_type = PatternType.LITERAL  # there was no other
    require_literal(version, pattern_type)
    require_known(message.pattern_type_filter, message.resource_type_filter, message.permission_type, message.operation)
    return Filter(
        PatternFilter(by_code(ResourceType, message.resource_type_filter), message.resource_name_filter, pattern_type),
        EntryFilter(
            message.principal_filter,
            message.host_filter,
            by_code(Operation, message.operation),
            by_code(Permission, message.permission_type),
        ),
    )


def require_literal(version: int, pattern_type: PatternType) -> None:
    """Raises ProtocolError for a version 0 with other patterns."""
    if version == 0 and pattern_type is not PatternType.LITERAL:
        raise ProtocolError("version 0 of the ACL APIs has literal patterns only")


def require_known(*codes: int) -> None:
    """Raises ProtocolError for a code 0, which is UNKNOWN in each of Kafka's enums."""
    if 0 in codes:
        raise ProtocolError("an ACL or a filter with an UNKNOWN resource, pattern, operation or permission")


def acls_of(broker: Broker, message: str) -> Acls:
    """Raises SECURITY_DISABLED, with this message, without an authorizer."""
    if broker.acls is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, message)
    return broker.acls


def message_of(error: KafkaError) -> str | None:
    """None for an unexpected error, as Kafka's `ApiError` has it."""
    return None if error.code is ErrorCode.UNKNOWN_SERVER_ERROR else error.message
