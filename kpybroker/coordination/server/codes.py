"""Numbers of the protocol: operations, errors, special xids (org.apache.zookeeper.ZooDefs, KeeperException.Code)."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from kpybroker.core import tree as t


class OpCode(IntEnum):
    """ZooDefs.OpCode: those that a client may send."""

    CREATE = 1
    DELETE = 2
    EXISTS = 3
    GET_DATA = 4
    SET_DATA = 5
    GET_ACL = 6
    SET_ACL = 7
    GET_CHILDREN = 8
    SYNC = 9
    PING = 11
    GET_CHILDREN_2 = 12
    CHECK = 13
    MULTI = 14
    CREATE_2 = 15
    RECONFIG = 16
    CHECK_WATCHES = 17
    REMOVE_WATCHES = 18
    CREATE_CONTAINER = 19
    CREATE_TTL = 21
    MULTI_READ = 22
    AUTH = 100
    SET_WATCHES = 101
    SASL = 102
    GET_EPHEMERALS = 103
    GET_ALL_CHILDREN_NUMBER = 104
    SET_WATCHES_2 = 105
    ADD_WATCH = 106
    WHO_AM_I = 107
    CLOSE_SESSION = -11
    ERROR = -1


class ErrorCode(IntEnum):
    """KeeperException.Code: those that are sent here."""

    OK = 0
    SYSTEM_ERROR = -1
    RUNTIME_INCONSISTENCY = -2
    MARSHALLING_ERROR = -5
    UNIMPLEMENTED = -6
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    INVALID_ACL = -114
    AUTH_FAILED = -115
    NO_WATCHER = -121
    RECONFIG_DISABLED = -123


NOTIFICATION_XID: Final = -1
"""Of the header of a watch event. Pings (-2), credentials (-4) and watches set again (-8) have xids of their own too,
which the response repeats like any other."""

SYNC_CONNECTED: Final = 3
"""Watcher.Event.KeeperState, in every watch event."""

_CODES: Final[dict[type[t.TreeError], ErrorCode]] = {
    t.NoNode: ErrorCode.NO_NODE,
    t.NodeExists: ErrorCode.NODE_EXISTS,
    t.BadVersion: ErrorCode.BAD_VERSION,
    t.NotEmpty: ErrorCode.NOT_EMPTY,
    t.NoChildrenForEphemerals: ErrorCode.NO_CHILDREN_FOR_EPHEMERALS,
    t.NoAuth: ErrorCode.NO_AUTH,
    t.InvalidAcl: ErrorCode.INVALID_ACL,
    t.BadArguments: ErrorCode.BAD_ARGUMENTS,
    t.RolledBack: ErrorCode.OK,
    t.RuntimeInconsistency: ErrorCode.RUNTIME_INCONSISTENCY,
}


def code_of(error: t.TreeError) -> ErrorCode:
    """The code of an error that an operation on the embedded tree may raise."""
    return _CODES.get(type(error), ErrorCode.SYSTEM_ERROR)
