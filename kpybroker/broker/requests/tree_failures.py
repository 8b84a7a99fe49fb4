"""What a client receives when the coordination tree loses a change, or refuses it for a reason of its own.

A session that ends in the middle of a request is NOT_CONTROLLER: another broker has that role then, or this one again
in a moment, and clients may ask again. Kafka says UNKNOWN_SERVER_ERROR, after which no client does.
"""

from __future__ import annotations

from typing import Final

from kpybroker.core.tree import SessionExpired, SystemFailure
from kpybroker.wire.errors import ErrorCode, KafkaError

CODES: Final[dict[type[object], ErrorCode]] = {
    SessionExpired: ErrorCode.NOT_CONTROLLER,
    SystemFailure: ErrorCode.KAFKA_STORAGE_ERROR,  # the disk of the embedded tree is full, or fails
}

ENDED: Final = "The session of the broker in the coordination tree ended during the change. Try it again."


def error_of(failure: object) -> KafkaError:
    """The error for a request, or for a part of one, that met this `TreeError`."""
    code = CODES.get(type(failure), ErrorCode.UNKNOWN_SERVER_ERROR)
    if code is ErrorCode.NOT_CONTROLLER:
        return KafkaError(code, ENDED)
    return KafkaError(code) if code is ErrorCode.UNKNOWN_SERVER_ERROR else KafkaError(code, str(failure))
